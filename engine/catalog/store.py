"""The catalog: sources, stream tables, how far they have come, and what happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.catalog import rows
from engine.catalog.database import Database, open_database
from engine.catalog.migrations import SCHEMA_VERSION
from engine.catalog.records import Progress
from engine.catalog.rows import time_text
from engine.codec import dumps
from engine.errors import AlreadyExists, DependentsExist, NotFound
from engine.event_records import Event
from engine.names import check_name
from engine.records import Source, StreamTable, View

#: how many events are kept
MAX_EVENTS = 10_000

_STREAM_TABLE_COLUMNS = (
    "id, name, query, refresh_mode, schedule, interval_s, path, owner, created_at, columns_json, "
    "fingerprint, append_only, differential_max_change_ratio, full_reason_json, comment, written_json, "
    "known_columns_json, partition_by_json"
)


class Catalog:
    """Safe to use from many threads and, on one local disk, from many processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @staticmethod
    def open(path: Path, read_only: bool = False) -> Catalog:
        return Catalog(open_database(path, read_only=read_only))

    def close(self) -> None:
        self._database.close()

    @property
    def database(self) -> Database:
        return self._database

    @property
    def path(self) -> Path:
        return self._database.path

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    def schema_version(self) -> int:
        with self._database.read() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    def is_newer(self) -> bool:
        """Was it written by a newer program? Then it is open for reading only."""
        return self.schema_version() > SCHEMA_VERSION

    # --- sources -------------------------------------------------------------------------------------------

    def add_source(self, source: Source) -> None:
        check_name(source.name)
        with self._database.write() as connection:
            _take_name(connection, source.name, "source")
            connection.execute(
                "INSERT INTO sources (name, path, format, cdc_mode, key_json, added_at, owner, polled_json) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    source.name,
                    rows.path_text(source.path, self.path) if source.polled else source.path,
                    source.format,
                    source.cdc_mode.value,
                    dumps(source.key),
                    time_text(source.added_at),
                    source.owner,
                    None if source.polled is None else dumps(source.polled),
                ),
            )

    def get_source(self, name: str) -> Source:
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM sources WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise _not_found(connection, name, "source")
            return rows.source(self.path, row)

    def sources(self) -> tuple[Source, ...]:
        with self._database.read() as connection:
            found = connection.execute("SELECT * FROM sources ORDER BY name COLLATE NOCASE").fetchall()
        return tuple(rows.source(self.path, row) for row in found)

    def drop_source(self, name: str) -> None:
        """Refused while a stream table reads it."""
        with self._database.write() as connection:
            row = connection.execute("SELECT name FROM sources WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise _not_found(connection, name, "source")
            _refuse_dependents(connection, row["name"], "source")
            connection.execute("DELETE FROM relations WHERE name = ?", (name,))

    # --- views ---------------------------------------------------------------------------------------------

    def save_view(self, view: View, *, replace: bool = False, readers: Iterable[StreamTable] = ()) -> None:
        """Together with what its readers read and know from then on: nobody finds one without the other."""
        check_name(view.name)
        with self._database.write() as connection:
            if not replace:
                _refuse_taken(connection, view.name)
            connection.execute(
                "REPLACE INTO views (name, query, created_at, owner) VALUES (?, ?, ?, ?)",
                (view.name, view.query, time_text(view.created_at), view.owner),
            )
            for table in readers:
                _write_reads(connection, table)
                known = dumps(table.known_columns)
                connection.execute("UPDATE stream_tables SET known_columns_json = ? WHERE id = ?", (known, table.id))

    def views(self) -> tuple[View, ...]:
        with self._database.read() as connection:
            found = connection.execute("SELECT * FROM views ORDER BY name COLLATE NOCASE").fetchall()
        return tuple(rows.view(self.path, row) for row in found)

    def drop_view(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM views WHERE name = ?", (name,))

    # --- stream tables -------------------------------------------------------------------------------------

    def add_stream_table(self, table: StreamTable) -> None:
        check_name(table.name)
        with self._database.write() as connection:
            _take_name(connection, table.name, "stream table")
            connection.execute(
                f"INSERT INTO stream_tables ({_STREAM_TABLE_COLUMNS}) "  # noqa: S608 (a constant)
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (table.id, table.name, *_definition(table, self.path)),
            )
            _write_reads(connection, table)

    def change_stream_table(
        self, st_id: str, change: Callable[[StreamTable], StreamTable], note: tuple[str, str] | None = None
    ) -> bool:
        """Nothing that another process writes meanwhile is lost. Did it change? The note is kept with what did."""
        with self._database.write() as connection:
            before = self._by_id(connection, st_id)
            table = change(before)
            if table == before:
                return False
            check_name(table.name)
            if table.name != before.name:
                _rename(connection, before.name, table.name)
            connection.execute(
                "UPDATE stream_tables SET name = ?, query = ?, refresh_mode = ?, schedule = ?, interval_s = ?, "
                "path = ?, owner = ?, created_at = ?, columns_json = ?, fingerprint = ?, append_only = ?, "
                "differential_max_change_ratio = ?, full_reason_json = ?, comment = ?, written_json = ?, "
                "known_columns_json = ?, partition_by_json = ? WHERE id = ?",
                (table.name, *_definition(table, self.path), table.id),
            )
            _write_reads(connection, table)
            if note is not None:
                connection.execute("REPLACE INTO meta (key, value) VALUES (?, ?)", note)
        return True

    def get_stream_table(self, name: str) -> StreamTable:
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM stream_tables WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise _not_found(connection, name, "stream table")
            return rows.stream_table(self.path, row, _reads(connection, row["id"]))

    def stream_table_now(self, st_id: str) -> StreamTable:
        """As it is by now, whatever it is called."""
        with self._database.read() as connection:
            return self._by_id(connection, st_id)

    def _by_id(self, connection: sqlite3.Connection, st_id: str) -> StreamTable:
        row = connection.execute("SELECT * FROM stream_tables WHERE id = ?", (st_id,)).fetchone()
        if row is None:
            raise _gone()
        return rows.stream_table(self.path, row, _reads(connection, st_id))

    def stream_tables(self) -> tuple[StreamTable, ...]:
        with self._database.read() as connection:
            found = connection.execute("SELECT * FROM stream_tables ORDER BY name COLLATE NOCASE").fetchall()
            reads = connection.execute("SELECT st_id, source FROM reads ORDER BY st_id, position").fetchall()
        sources: dict[str, list[str]] = {}
        for each in reads:
            sources.setdefault(each["st_id"], []).append(each["source"])
        return tuple(rows.stream_table(self.path, row, tuple(sources.get(row["id"], ()))) for row in found)

    def drop_stream_table(self, name: str, last: Callable[[], object] = lambda: None) -> None:
        """Takes its progress with it. Refused while another stream table reads it.

        `last` is done before it counts: if that fails, or nobody lives to see it, the stream table is still there.
        """
        with self._database.write() as connection:
            row = connection.execute("SELECT id, name FROM stream_tables WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise _not_found(connection, name, "stream table")
            _refuse_dependents(connection, row["name"], "stream table")
            connection.execute("DELETE FROM relations WHERE name = ?", (name,))
            last()

    @contextmanager
    def without_other_writers(self) -> Iterator[None]:
        """Nobody else creates or drops anything inside."""
        with self._database.write():
            yield

    def dependents(self, name: str) -> tuple[str, ...]:
        """The stream tables that read `name` directly."""
        with self._database.read() as connection:
            return _dependents(connection, name)

    # --- progress ------------------------------------------------------------------------------------------

    def get_progress(self, st_id: str) -> Progress:
        """Where the stream table stands; the beginning when nothing was saved yet."""
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM progress WHERE st_id = ?", (st_id,)).fetchone()
        return Progress(st_id) if row is None else rows.progress(self.path, row)

    def all_progress(self) -> dict[str, Progress]:
        """By stream table id; one query for all."""
        with self._database.read() as connection:
            found = connection.execute("SELECT * FROM progress").fetchall()
        return {row["st_id"]: rows.progress(self.path, row) for row in found}

    def change_progress(self, st_id: str, change: Callable[[Progress], Progress]) -> None:
        """Nothing that another process writes meanwhile is lost."""
        with self._database.write() as connection:
            row = connection.execute("SELECT * FROM progress WHERE st_id = ?", (st_id,)).fetchone()
            self._write_progress(connection, change(Progress(st_id) if row is None else rows.progress(self.path, row)))

    def save_progress(self, progress: Progress) -> None:
        """Whatever was there."""
        with self._database.write() as connection:
            self._write_progress(connection, progress)

    def _write_progress(self, connection: sqlite3.Connection, progress: Progress) -> None:
        known = connection.execute("SELECT 1 FROM stream_tables WHERE id = ?", (progress.st_id,)).fetchone()
        if known is None:
            raise _gone()
        connection.execute(
            "REPLACE INTO progress (st_id, sequence, refresh_id, frontier_json, data_as_of_at, populated, paused, "
            "consecutive_errors, suspended_at, error, error_code, error_hint, error_at, verified_at, verified_equal, "
            "next_due_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                progress.st_id,
                progress.sequence,
                progress.refresh_id,
                None if progress.frontier is None else dumps(progress.frontier),
                time_text(progress.data_as_of_at),
                progress.populated,
                progress.paused,
                progress.consecutive_errors,
                time_text(progress.suspended_at),
                progress.error,
                progress.error_code,
                progress.error_hint,
                time_text(progress.error_at),
                time_text(progress.verified_at),
                progress.verified_equal,
                time_text(progress.next_due_at),
            ),
        )

    # --- costs ---------------------------------------------------------------------------------------------

    def get_costs(self, st_id: str) -> str | None:
        """What is known of the costs of its refreshes, as it was saved."""
        with self._database.read() as connection:
            row = connection.execute("SELECT costs_json FROM costs WHERE st_id = ?", (st_id,)).fetchone()
        return None if row is None else str(row["costs_json"])

    def save_costs(self, st_id: str, costs: str) -> None:
        """Of a stream table that was dropped meanwhile nothing is kept."""
        with self._database.write() as connection:
            connection.execute(
                "REPLACE INTO costs (st_id, costs_json) SELECT id, ? FROM stream_tables WHERE id = ?", (costs, st_id)
            )

    # --- numbers, events, meta -----------------------------------------------------------------------------

    def next_refresh_number(self) -> int:
        """1, 2, 3 … per workspace; never the same twice, over all processes and crashes."""
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE counters SET value = value + 1 WHERE name = 'refresh' RETURNING value"
            ).fetchone()
            return int(row["value"])

    def append_event(self, event: Event) -> Event:
        """Stores the event and gives it back with its number."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "INSERT INTO events (at, kind, severity, subject, text, refresh_id) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    time_text(event.at),
                    event.kind.value,
                    event.severity.value,
                    event.subject,
                    event.text,
                    event.refresh_id,
                ),
            )
            number = cursor.lastrowid or 0
            connection.execute("DELETE FROM events WHERE number <= ?", (number - MAX_EVENTS,))
        return replace(event, number=number)

    def events(self, after: int = 0, limit: int = 200, subject: str | None = None) -> tuple[Event, ...]:
        """The newest `limit` events with a number above `after`, oldest first."""
        with self._database.read() as connection:
            if subject is None:
                found = connection.execute(
                    "SELECT * FROM events WHERE number > ? ORDER BY number DESC LIMIT ?", (after, limit)
                ).fetchall()
            else:
                found = connection.execute(
                    "SELECT * FROM events WHERE subject = ? AND number > ? ORDER BY number DESC LIMIT ?",
                    (subject, after, limit),
                ).fetchall()
        return tuple(rows.event(self.path, row) for row in reversed(found))

    def get_meta(self, key: str) -> str | None:
        with self._database.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row["value"])

    def set_meta(self, key: str, value: str) -> None:
        with self._database.write() as connection:
            connection.execute("REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def _definition(table: StreamTable, beside: Path) -> tuple[Any, ...]:
    return (
        table.query,
        table.refresh_mode.value,
        table.schedule,
        table.interval_s,
        rows.path_text(table.path, beside),
        table.owner,
        time_text(table.created_at),
        dumps(table.columns),
        table.fingerprint,
        table.append_only,
        table.differential_max_change_ratio,
        None if table.full_reason is None else dumps(table.full_reason),
        table.comment,
        None if table.written is None else dumps(table.written),
        dumps(table.known_columns),
        dumps(table.partition_by) if table.partition_by else None,
    )


def _gone() -> NotFound:
    return NotFound("the stream table is gone", detail="it was dropped meanwhile", hint="nothing is left to do")


def _reads(connection: sqlite3.Connection, st_id: str) -> tuple[str, ...]:
    found = connection.execute("SELECT source FROM reads WHERE st_id = ? ORDER BY position", (st_id,)).fetchall()
    return tuple(each["source"] for each in found)


def _write_reads(connection: sqlite3.Connection, table: StreamTable) -> None:
    connection.execute("DELETE FROM reads WHERE st_id = ?", (table.id,))
    connection.executemany(
        "INSERT INTO reads (st_id, position, source) VALUES (?, ?, ?)",
        [(table.id, position, source) for position, source in enumerate(table.sources)],
    )


def _take_name(connection: sqlite3.Connection, name: str, kind: str) -> None:
    _refuse_taken(connection, name)
    connection.execute("INSERT INTO relations (name, kind) VALUES (?, ?)", (name, kind))


def _refuse_taken(connection: sqlite3.Connection, name: str) -> None:
    taken = connection.execute(
        "SELECT name, kind FROM relations WHERE name = ?1 UNION ALL SELECT name, 'view' FROM views WHERE name = ?1",
        (name,),
    ).fetchone()
    if taken is not None:
        raise _taken(taken)


def _rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    taken = connection.execute("SELECT name, kind FROM relations WHERE name = ? AND name <> ?", (new, old)).fetchone()
    if taken is not None:
        raise _taken(taken)
    connection.execute("UPDATE relations SET name = ? WHERE name = ?", (new, old))


def _taken(row: sqlite3.Row) -> AlreadyExists:
    drop = {"source": "trickle source drop", "view": "trickle view drop"}.get(row["kind"], "trickle drop")
    return AlreadyExists(
        f"a {row['kind']} {row['name']} exists already",
        detail="sources, views and stream tables share one namespace, without regard to case",
        hint=f"choose another name, or remove it with `{drop} {row['name']}`",
    )


def _not_found(connection: sqlite3.Connection, name: str, kind: str) -> NotFound:
    found = connection.execute("SELECT name, kind FROM relations UNION ALL SELECT name, 'view' FROM views").fetchall()
    for row in found:
        if row["name"].lower() == name.lower():
            return NotFound(f"there is no {kind} {name}", hint=f"{row['name']} is a {row['kind']}")
    names = [row["name"] for row in found if row["kind"] == kind]
    return NotFound(f"there is no {kind} {name}", hint=_known(name, names, kind))


def _known(name: str, names: list[str], kind: str) -> str:
    from difflib import get_close_matches

    lowered = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), lowered, n=1)
    if near:
        return f"did you mean {lowered[near[0]]}?"
    if not names:
        return f"there is no {kind} yet"
    shown = ", ".join(sorted(names, key=str.lower)[:10])
    return f"there are: {shown}" + (" …" if len(names) > 10 else "")


def _dependents(connection: sqlite3.Connection, name: str) -> tuple[str, ...]:
    found = connection.execute(
        "SELECT DISTINCT stream_tables.name FROM reads JOIN stream_tables ON stream_tables.id = reads.st_id "
        "WHERE reads.source = ? ORDER BY stream_tables.name COLLATE NOCASE",
        (name,),
    ).fetchall()
    return tuple(row["name"] for row in found)


def _refuse_dependents(connection: sqlite3.Connection, name: str, kind: str) -> None:
    names = _dependents(connection, name)
    if names:
        way_out = "drop them first" + (", or use --cascade (SQL: CASCADE)" if kind == "stream table" else "")
        raise DependentsExist(
            f"{kind} {name} is read by {len(names)} stream table{'s' if len(names) > 1 else ''}",
            detail=", ".join(names),
            hint=way_out,
        )
