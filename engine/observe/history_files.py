"""The older refreshes as Parquet, one folder a day: written with pyarrow, read with DuckDB.

A file is called `<least number>-<greatest number>-<random>.parquet` and appears whole, by renaming. Two files
may hold the same refresh after a crash; whoever reads leaves the second one out, by refresh id.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.codec import MalformedRecord, from_plain, to_plain
from engine.files import storage
from engine.records import Outcome, RefreshRecord

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_log = logging.getLogger(__name__)

#: a day with more files than this gets one instead
MAX_FILES_A_DAY = 32

_TIMES = ("started_at", "finished_at", "evaluated_at")
_WHOLE_NUMBERS = ("number", "sequence", "rows_in", "rows_inserted", "rows_updated", "rows_deleted")
_NUMBERS = ("duration_ms", "estimated_ms")
#: kept as JSON text, for their shape varies
_NESTED = ("reason", "phases_ms", "frontier_from", "frontier_to", "operators", "alternatives")
_FIELDS = tuple(each.name for each in fields(RefreshRecord))


class HistoryFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    # --- writing (the caller holds the maintenance lock) ---------------------------------------------------

    def write(self, records: Iterable[RefreshRecord]) -> None:
        """Files the records by the day they finished."""
        days: dict[str, list[RefreshRecord]] = {}
        for record in sorted(records, key=lambda each: each.number):
            days.setdefault(record.finished_at.astimezone(UTC).strftime("%Y%m%d"), []).append(record)
        for day, of_day in days.items():
            _write_table(_to_arrow(of_day), self._folder / day)

    def ids_between(self, least: int, most: int) -> frozenset[str]:
        """The refresh ids in files whose numbers overlap."""
        import pyarrow.parquet as parquet

        ids: set[str] = set()
        for path in _sound(path for path in self.paths() if _overlaps(path, least, most)):
            ids.update(parquet.read_table(path, columns=["refresh_id"]).column(0).to_pylist())
        return frozenset(ids)

    def merge_days(self) -> None:
        """Makes one file of many, so that a query opens few."""
        for day in self._days():
            paths = _sound(sorted(day.glob("*.parquet")))
            if len(paths) > MAX_FILES_A_DAY:
                records = {record.refresh_id: record for record in self._read_whole(paths)}
                _write_table(_to_arrow(sorted(records.values(), key=lambda each: each.number)), day)
                _remove(paths)

    def remove_before(self, first_day: date) -> int:
        """Takes away the days before `first_day`; gives the number of files."""
        removed = 0
        for day in self._days():
            if day.name < first_day.strftime("%Y%m%d"):
                paths = list(day.glob("*"))
                _remove(paths)
                with storage(day):
                    day.rmdir()
                removed += len(paths)
        return removed

    def rename(self, st: str, to: str) -> None:
        for path in _sound(self.paths()):
            records = list(self._read_whole([path]))
            if any(record.st.lower() == st.lower() for record in records):
                renamed = [replace(each, st=to) if each.st.lower() == st.lower() else each for each in records]
                _write_table(_to_arrow(renamed), path.parent)
                _remove([path])

    def remove_forgotten(self, forgotten: Mapping[str, int]) -> None:
        for path in _sound(self.paths()):
            records = list(self._read_whole([path]))
            kept = [record for record in records if not is_forgotten(record, forgotten)]
            if len(kept) < len(records):
                if kept:
                    _write_table(_to_arrow(kept), path.parent)
                _remove([path])

    # --- reading -------------------------------------------------------------------------------------------

    def paths(self) -> tuple[Path, ...]:
        return tuple(path for day in self._days() for path in sorted(day.glob("*.parquet")))

    def greatest_number(self) -> int:
        return max((_numbers(path)[1] for path in self.paths()), default=0)

    def newest(
        self,
        *,
        st: str | None = None,
        outcome: Outcome | None = None,
        since: datetime | None = None,
        number: int | None = None,
        refresh_id: str | None = None,
        forgotten: Mapping[str, int],
        limit: int,
    ) -> tuple[RefreshRecord, ...]:
        """The `limit` newest refreshes that fit, newest first, each once."""
        conditions, values = _conditions(st, outcome, since, number, refresh_id, forgotten)
        asked = limit + 16
        while True:
            rows = self._select(conditions, values, asked, number, since)
            records: dict[str, RefreshRecord] = {}
            for row in rows:
                record = _from_row(row)
                if record is not None:
                    records.setdefault(record.refresh_id, record)
            if len(records) >= limit or len(rows) < asked:
                return tuple(records.values())[:limit]
            asked *= 4  # the rest were copies of each other: look further back

    def _select(
        self, conditions: str, values: list[Any], limit: int, number: int | None, since: datetime | None
    ) -> list[dict[str, Any]]:
        import duckdb

        for attempt in range(4):
            paths = [path for path in self.paths() if _may_hold(path, number, since)]
            if attempt:
                paths = _sound(paths)
            if not paths:
                return []
            try:
                with self._lock:
                    answer = self._duckdb().execute(
                        "SELECT * FROM read_parquet(?, union_by_name = true) "  # noqa: S608 (own constants)
                        f"WHERE {conditions} ORDER BY number DESC LIMIT ?",
                        [[_literal_glob(path) for path in paths], *values, limit],
                    )
                    rows: list[dict[str, Any]] = answer.to_arrow_table().to_pylist()
                    return rows
            except duckdb.Error as error:
                # A file was merged away between listing and reading, or is damaged: look again.
                last = error
        _log.warning("the refresh history in %s cannot be read: %s", self._folder, last)
        return []

    def _duckdb(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        if self._connection is None:
            self._connection = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "512MB"})
            self._connection.execute("SET TimeZone = 'UTC'")
        return self._connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read_whole(self, paths: Iterable[Path]) -> Iterator[RefreshRecord]:
        import pyarrow.parquet as parquet

        for path in paths:
            for row in parquet.read_table(path).to_pylist():
                record = _from_row(row)
                if record is not None:
                    yield record

    def _days(self) -> tuple[Path, ...]:
        if not self._folder.is_dir():
            return ()
        return tuple(sorted(each for each in self._folder.iterdir() if each.name.isdigit() and len(each.name) == 8))


def is_forgotten(record: RefreshRecord, forgotten: Mapping[str, int]) -> bool:
    return record.number <= forgotten.get(record.st.lower(), 0)


# --- rows --------------------------------------------------------------------------------------------------


def _to_arrow(records: list[RefreshRecord]) -> pyarrow.Table:
    import pyarrow

    def kind(name: str) -> pyarrow.DataType:
        if name in _TIMES:
            return pyarrow.timestamp("us", "UTC")
        if name in _WHOLE_NUMBERS:
            return pyarrow.int64()
        return pyarrow.float64() if name in _NUMBERS else pyarrow.string()

    def value(record: RefreshRecord, name: str) -> Any:
        held = getattr(record, name)
        if name in _TIMES or held is None:
            return held
        plain = to_plain(held)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")) if name in _NESTED else plain

    columns = {name: pyarrow.array([value(record, name) for record in records], kind(name)) for name in _FIELDS}
    return pyarrow.table(columns)


def _from_row(row: Mapping[str, Any]) -> RefreshRecord | None:
    plain: dict[str, Any] = {}
    for name in _FIELDS:
        held = row.get(name)
        if name in _TIMES and held is not None:
            held = to_plain(held)
        elif name in _NESTED and held is not None:
            held = json.loads(held)
        # NULL stands for None, and for a field that the writer did not know: then the default counts.
        if held is not None or name == "sequence":
            plain[name] = held
    try:
        return from_plain(RefreshRecord, plain)
    except MalformedRecord as error:
        _log.warning("a refresh in the history cannot be read and is left out: %s", error)
        return None


def _write_table(table: pyarrow.Table, folder: Path) -> None:
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    numbers = table.column("number")
    least, most = compute.min(numbers).as_py(), compute.max(numbers).as_py()
    target = folder / f"{least:012d}-{most:012d}-{uuid.uuid4().hex[:8]}.parquet"
    draft = target.with_suffix(".draft")
    with storage(target):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            parquet.write_table(table, draft, compression="zstd")
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with storage(path):
            path.unlink(missing_ok=True)


def _conditions(
    st: str | None,
    outcome: Outcome | None,
    since: datetime | None,
    number: int | None,
    refresh_id: str | None,
    forgotten: Mapping[str, int],
) -> tuple[str, list[Any]]:
    parts, values = ["true"], []
    for condition, value in (
        ("lower(st) = ?", None if st is None else st.lower()),
        ("outcome = ?", None if outcome is None else outcome.value),
        ("finished_at >= ?", since),
        ("number = ?", number),
        ("refresh_id = ?", refresh_id),
    ):
        if value is not None:
            parts.append(condition)
            values.append(value)
    for name, until in forgotten.items():
        parts.append("NOT (lower(st) = ? AND number <= ?)")
        values += [name, until]
    return " AND ".join(parts), values


# --- file names --------------------------------------------------------------------------------------------


def _numbers(path: Path) -> tuple[int, int]:
    """The least and the greatest number in a file; a foreign name may hold any."""
    parts = path.stem.split("-")
    if len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit():
        return int(parts[0]), int(parts[1])
    return 0, 1 << 62


def _overlaps(path: Path, least: int, most: int) -> bool:
    first, last = _numbers(path)
    return first <= most and last >= least


def _may_hold(path: Path, number: int | None, since: datetime | None) -> bool:
    if number is not None and not _overlaps(path, number, number):
        return False
    return since is None or path.parent.name >= since.astimezone(UTC).strftime("%Y%m%d")


def _sound(paths: Iterable[Path]) -> list[Path]:
    """Those that begin and end as Parquet does; the others are named in the log."""
    sound = []
    for path in paths:
        try:
            with path.open("rb") as stream:
                head = stream.read(4)
                stream.seek(-4, os.SEEK_END)
                whole = head == b"PAR1" == stream.read(4)
        except OSError:
            continue  # merged away meanwhile, or shorter than four bytes
        if whole:
            sound.append(path)
        else:
            _log.warning("%s is no Parquet file and is left out of the history", path)
    return sound


def _literal_glob(path: Path) -> str:
    """DuckDB reads file names as patterns."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in str(path))
