"""Rows of the catalog as records."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from engine.catalog.database import unreadable
from engine.catalog.records import Progress
from engine.codec import MalformedRecord, loads
from engine.event_records import Event, EventKind, Severity
from engine.records import CdcMode, Column, Frontier, Polled, Reason, RefreshMode, Source, StreamTable, View, Written


class _Reading:
    """A row that says what no program of ours wrote means a damaged file."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MalformedRecord | ValueError | TypeError | IndexError):
            raise unreadable(self._path, f"{self._what}: {error}") from error


def source(path: Path, row: sqlite3.Row) -> Source:
    with _Reading(path, f"source {row['name']}"):
        return Source(
            name=row["name"],
            path=str(path.parent / row["path"]) if row["polled_json"] else row["path"],
            format=row["format"],
            cdc_mode=CdcMode(row["cdc_mode"]),
            key=loads(tuple[str, ...], row["key_json"]),
            added_at=time(row["added_at"]),
            owner=row["owner"],
            polled=loads(Polled, row["polled_json"]) if row["polled_json"] else None,
        )


def view(path: Path, row: sqlite3.Row) -> View:
    with _Reading(path, f"view {row['name']}"):
        return View(row["name"], row["query"], time(row["created_at"]), row["owner"])


def stream_table(path: Path, row: sqlite3.Row, sources: tuple[str, ...]) -> StreamTable:
    with _Reading(path, f"stream table {row['name']}"):
        reason = row["full_reason_json"]
        return StreamTable(
            id=row["id"],
            name=row["name"],
            query=row["query"],
            refresh_mode=RefreshMode(row["refresh_mode"]),
            schedule=row["schedule"],
            interval_s=row["interval_s"],
            path=str(path.parent / row["path"]) if "://" not in row["path"] else row["path"],
            owner=row["owner"],
            created_at=datetime.fromisoformat(row["created_at"]),
            sources=sources,
            columns=loads(tuple[Column, ...], row["columns_json"]),
            fingerprint=row["fingerprint"],
            append_only=bool(row["append_only"]),
            differential_max_change_ratio=row["differential_max_change_ratio"],
            full_reason=None if reason is None else loads(Reason, reason),
            comment=row["comment"],
            written=None if row["written_json"] is None else loads(Written, row["written_json"]),
            known_columns=loads(dict[str, dict[str, str]], row["known_columns_json"] or "{}"),
            partition_by=loads(tuple[str, ...], row["partition_by_json"]) if row["partition_by_json"] else (),
        )


def path_text(table_path: str, catalog: Path) -> str:
    """Of a table inside the workspace from there: a workspace that is moved or copied has its own tables."""
    folder = Path(table_path)
    return str(folder.relative_to(catalog.parent)) if catalog.parent in folder.parents else table_path


def progress(path: Path, row: sqlite3.Row) -> Progress:
    with _Reading(path, "progress"):
        frontier, equal = row["frontier_json"], row["verified_equal"]
        return Progress(
            st_id=row["st_id"],
            sequence=row["sequence"],
            refresh_id=row["refresh_id"],
            frontier=None if frontier is None else loads(Frontier, frontier),
            data_as_of_at=time(row["data_as_of_at"]),
            populated=bool(row["populated"]),
            paused=bool(row["paused"]),
            consecutive_errors=row["consecutive_errors"],
            suspended_at=time(row["suspended_at"]),
            error=row["error"],
            error_code=row["error_code"],
            error_hint=row["error_hint"],
            error_at=time(row["error_at"]),
            verified_at=time(row["verified_at"]),
            verified_equal=None if equal is None else bool(equal),
            next_due_at=time(row["next_due_at"]),
        )


def event(path: Path, row: sqlite3.Row) -> Event:
    with _Reading(path, f"event {row['number']}"):
        return Event(
            at=datetime.fromisoformat(row["at"]),
            kind=EventKind(row["kind"]),
            severity=Severity(row["severity"]),
            subject=row["subject"],
            text=row["text"],
            refresh_id=row["refresh_id"],
            number=row["number"],
        )


def time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
