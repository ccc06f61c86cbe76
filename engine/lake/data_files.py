"""Data files that Spark wrote and no version has yet: whoever commits them makes them rows."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import InternalError
from engine.lake import failures, log

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame

#: how the names of the folders begin that full refreshes write into
PREFIX = "full-"
#: nobody writes for so long
_OLD_S = 2 * 86_400

#: properties of a table that say how its files are written
_OF_FILES = ("delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns", "delta.parquet.compression.codec")


@dataclass(frozen=True)
class Written:
    """As a commit to the table adds them."""

    files: list[AddAction | RemoveAction]
    rows: int


def write(frame: DataFrame, path: str, name: str, properties: Mapping[str, str]) -> Written:
    """Into a new folder inside the table's own. Nobody reads what no commit names, and VACUUM removes it some day.

    They are written as a Delta table, because then Spark notes the bounds of each file. It is none any more when this
    returns: its log is removed once it was read.
    """
    folder = f"{PREFIX}{name}"
    inside = f"{path}/{folder}"
    # whatever the session makes of new tables, the columns have their own names in these files
    writer = frame.write.format("delta").option("delta.columnMapping.mode", "none")
    for name in _OF_FILES:
        if name in properties:
            writer = writer.option(name, properties[name])
    _forget_old(path)
    try:
        writer.save(inside)
    except Exception as error:
        raise failures.typed(error, f"The commit to {path}", path) from error
    actions = log.actions(inside, 0)
    if actions is None:
        raise InternalError(f"Spark wrote the rows of {path} and no log of them.", detail=inside)
    shutil.rmtree(log.log_folder(inside))
    added = [action["add"] for action in actions if "add" in action]
    return Written([_within(folder, add) for add in added], sum(_rows(add) for add in added))


def _forget_old(path: str) -> None:
    """Logs that were not removed because their writer died: VACUUM takes the files, but leaves logs alone.

    None of somebody who may still be writing.
    """
    root = log.local_path(path)
    for left in root.glob(f"{PREFIX}*/_delta_log") if root is not None else ():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _OLD_S:
                shutil.rmtree(left)


def _within(folder: str, add: dict[str, Any]) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(f"{folder}/{add['path']}", add["size"], {}, add["modificationTime"], True, add["stats"])


def _rows(add: dict[str, Any]) -> int:
    return int(json.loads(add["stats"])["numRecords"])
