"""Data files that Spark wrote and no version has yet: whoever commits them makes them rows.

Each full refresh writes into a folder of its own. Its files are written as a Delta table, because then Spark notes the
bounds of each file, and the log of that table stays until the files were committed: a folder with a log in it is one
that nobody is known to have committed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InternalError, NotFound
from engine.lake import failures, log
from engine.lake.stamp import Stamp

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame

#: how the names of the folders begin that full refreshes write into
PREFIX = "full-"
#: of which sequence, and of which refresh
_FOLDER = re.compile(rf"{PREFIX}(\d+)-(.+)")

#: properties of a table that say how its files are written
_OF_FILES = ("delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns", "delta.parquet.compression.codec")


@dataclass(frozen=True)
class Written:
    """As a commit to the table adds them."""

    files: list[AddAction | RemoveAction]
    rows: int


def by_spark(frame: DataFrame, properties: Mapping[str, str]) -> Callable[[str], None]:
    # whatever the session makes of new tables, the columns have their own names in these files
    writer = frame.write.format("delta").option("delta.columnMapping.mode", "none")
    for key in _OF_FILES:
        if key in properties:
            writer = writer.option(key, properties[key])
    return writer.save


def write(path: str, stamp: Stamp, save: Callable[[str], None]) -> Written:
    """Into a new folder inside the table's own, where nobody reads what no commit names.

    `save` makes a Delta table there. What it leaves when it fails was never handed to a commit.
    """
    folder = _folder_of(stamp)
    inside = f"{path}/{folder}"
    try:
        # the mark of files without a commit is there before they are: Spark makes it last
        log.log_folder(inside).mkdir(parents=True)
        save(inside)
        actions = log.actions(inside, 0)
        if actions is None:
            raise InternalError(f"Spark wrote the rows of {path} and no log of them.", detail=inside)
    except Exception as error:
        _remove(log.local_path(inside))
        raise failures.typed(error, f"The commit to {path}", path) from error
    added = [action["add"] for action in actions if "add" in action]
    return Written([_within(folder, add) for add in added], sum(_rows(add) for add in added))


def settle(path: str, stamp: Stamp) -> None:
    """After one's own commit failed, as far as is known: some failures are reported of what has happened."""
    _settle(path, _folder_of(stamp))


def settle_all(path: str, stamp: Stamp) -> None:
    """After a commit: who holds files of this sequence or an older one has died, or will be refused.

    Refused it will be by the handle that it holds, which is older than this commit. A folder of a later sequence
    belongs to somebody who goes on from here.
    """
    root = log.local_path(path)
    for left in root.glob(f"{PREFIX}*/_delta_log") if root is not None else ():
        found = _FOLDER.fullmatch(left.parent.name)
        if found and int(found[1]) <= stamp.sequence:
            _settle(path, left.parent.name)


def _settle(path: str, folder: str) -> None:
    """Files of a version stay, and are known by having no log. Those of no version go."""
    root = log.local_path(path)
    if root is None:
        return
    with suppress(OSError, NotFound):  # it is dropped meanwhile, or tried again after the next commit
        match _is_committed(path, folder):
            case True:
                _remove(root / folder / "_delta_log")
            case False:
                _remove(root / folder)


def _is_committed(path: str, folder: str) -> bool | None:
    """Does a version name its files? None when the log does not go back so far."""
    found = _FOLDER.fullmatch(folder)
    for version in range(log.newest_version(path), -1, -1):
        raw = log.lines(path, version)
        info = log.commit_info(path, version)
        if raw is None or info is None:
            return None
        if any(f"{folder}/" in line for line in raw):
            return True
        written = Stamp.from_json(info.user_metadata)
        if written is not None and found is not None and written.sequence < int(found[1]):
            return False
    return False


def _remove(folder: Path | None) -> None:
    """What cannot be removed now is tried again after the next commit, and fails no refresh."""
    if folder is not None:
        with suppress(OSError):
            shutil.rmtree(folder)


def _folder_of(stamp: Stamp) -> str:
    return f"{PREFIX}{stamp.sequence}-{stamp.refresh_id}"


def _within(folder: str, add: dict[str, Any]) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(f"{folder}/{add['path']}", add["size"], {}, add["modificationTime"], True, add["stats"])


def _rows(add: dict[str, Any]) -> int:
    return int(json.loads(add["stats"])["numRecords"])
