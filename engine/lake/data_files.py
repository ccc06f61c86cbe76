"""Data files that Spark wrote and no version has yet: whoever commits them makes them rows.

Each full refresh writes into a folder of its own, as plain Parquet: what a Delta table costs beside its files (a log, a
look at it, bounds taken row by row while writing) is more than the ids of rows cost. The bounds stand in the files. A
mark in the folder says that nobody is known to have committed them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import InternalError, NotFound
from engine.lake import failures, file_bounds, log
from engine.lake.stamp import Stamp

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame

#: how the names of the folders begin that full refreshes write into
PREFIX = "full-"
#: of which sequence, and of which refresh
_FOLDER = re.compile(rf"{PREFIX}(\d+)-(.+)")
#: the mark; readers and VACUUM leave alone what begins like this
_UNCOMMITTED = "_uncommitted"

_CODEC = "delta.parquet.compression.codec"
_INDEXED_COLUMNS = "delta.dataSkippingStatsColumns"
_INDEXED_NUMBER = "delta.dataSkippingNumIndexedCols"
#: so many columns have bounds where the table says nothing of it
_USUALLY_INDEXED = 32


@dataclass(frozen=True)
class Written:
    """As a commit to the table adds them."""

    files: list[AddAction | RemoveAction]
    rows: int


def by_spark(frame: DataFrame, properties: Mapping[str, str]) -> Callable[[str], None]:
    writer = frame.write.mode("append").option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if _CODEC in properties:
        writer = writer.option("compression", properties[_CODEC])
    return writer.parquet


def write(path: str, stamp: Stamp, save: Callable[[str], None], properties: Mapping[str, str]) -> Written:
    """Into a new folder inside the table's own, where nobody reads what no commit names.

    `save` puts Parquet files there. What it leaves when it fails was never handed to a commit.
    """
    root = log.local_path(path)
    if root is None:
        raise InternalError(f"{path} is not a folder of this machine")
    folder = root / _folder_of(stamp)
    try:
        # the mark is there before the files are
        (folder / _UNCOMMITTED).mkdir(parents=True)
        save(str(folder))
        return _described(folder, properties)
    except Exception as error:
        _remove(folder)
        raise failures.typed(error, f"The commit to {path}", path) from error


def _described(folder: Path, properties: Mapping[str, str]) -> Written:
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction

    indexed = _indexed(properties)
    files: list[AddAction | RemoveAction] = []
    rows = 0
    for file in sorted(folder.glob("*.parquet")):
        footer = pq.read_metadata(file)
        if not footer.num_rows:
            file.unlink()
            # Spark's check sum of it, which VACUUM takes for hidden and leaves for ever
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            continue
        found = file.stat()
        statistics = file_bounds.statistics(footer, indexed)
        place = f"{folder.name}/{file.name}"
        files.append(AddAction(place, found.st_size, {}, found.st_mtime_ns // 1_000_000, True, statistics))
        rows += footer.num_rows
    return Written(files, rows)


def _indexed(properties: Mapping[str, str]) -> Callable[[int, file_bounds.Path], bool]:
    """Which columns the table wants bounds of."""
    if _INDEXED_COLUMNS in properties:
        wanted = {name.strip().strip("`") for name in properties[_INDEXED_COLUMNS].split(",")}
        return lambda _, path: any(".".join(path[:depth]) in wanted for depth in range(1, len(path) + 1))
    most = int(properties.get(_INDEXED_NUMBER, _USUALLY_INDEXED))
    return lambda index, _: most < 0 or index < most


def settle(path: str, stamp: Stamp) -> None:
    """After one's own commit failed, as far as is known: some failures are reported of what has happened."""
    _settle(path, _folder_of(stamp))


def settle_all(path: str, stamp: Stamp) -> None:
    """After a commit: who holds files of this sequence or an older one has died, or will be refused.

    Refused it will be by the handle that it holds, which is older than this commit. A folder of a later sequence
    belongs to somebody who goes on from here.
    """
    root = log.local_path(path)
    for left in root.glob(f"{PREFIX}*/{_UNCOMMITTED}") if root is not None else ():
        found = _FOLDER.fullmatch(left.parent.name)
        if found and int(found[1]) <= stamp.sequence:
            _settle(path, left.parent.name)


def _settle(path: str, folder: str) -> None:
    """Files of a version stay, and are known by having no mark. Those of no version go."""
    root = log.local_path(path)
    if root is None:
        return
    with suppress(OSError, NotFound):  # it is dropped meanwhile, or tried again after the next commit
        match _is_committed(path, folder):
            case True:
                _remove(root / folder / _UNCOMMITTED)
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
