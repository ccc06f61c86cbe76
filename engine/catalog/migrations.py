"""The catalog's schema version: which one this program writes, and the steps from older ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from engine.errors import WorkspaceTooNew, WorkspaceTooOld

#: the schema that this program writes
SCHEMA_VERSION = 4

#: MIGRATIONS[n] is the SQL that turns schema n into schema n + 1
MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE stream_tables ADD COLUMN written_json TEXT;
CREATE TABLE views (
    name       TEXT PRIMARY KEY COLLATE NOCASE,
    query      TEXT NOT NULL,
    created_at TEXT,
    owner      TEXT NOT NULL
) WITHOUT ROWID;
""",
    2: """
ALTER TABLE sources ADD COLUMN polled_json TEXT;
ALTER TABLE progress ADD COLUMN suspended_at TEXT;
""",
    3: """
ALTER TABLE stream_tables ADD COLUMN differential_max_change_ratio REAL;
CREATE TABLE costs (
    st_id      TEXT PRIMARY KEY REFERENCES stream_tables (id) ON DELETE CASCADE,
    costs_json TEXT NOT NULL
) WITHOUT ROWID;
ALTER TABLE stream_tables ADD COLUMN known_columns_json TEXT;
ALTER TABLE stream_tables ADD COLUMN partition_by_json TEXT;
""",
}

#: says in the file's header that it is ours: "TRKL"
APPLICATION_ID = 0x54524B4C


def schema_sql() -> str:
    return (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")


def check_version(version: int, path: Path, *, read_only: bool) -> None:
    """Refuses to write a catalog of another schema version. A newer one may be read."""
    if version > SCHEMA_VERSION and not read_only:
        raise WorkspaceTooNew(
            "this workspace belongs to a newer Trickle",
            detail=f"{path} has schema {version}; this program writes schema {SCHEMA_VERSION}",
            hint="upgrade Trickle; until then commands that only read work, and so does `trickle ui --read-only`",
        )
    if version < SCHEMA_VERSION:
        raise WorkspaceTooOld(
            "this workspace belongs to an older Trickle",
            detail=f"{path} has schema {version}; this program needs schema {SCHEMA_VERSION}",
            hint="bring it up to date with `trickle migrate`",
        )


def pending(version: int) -> tuple[str, ...]:
    """The steps from schema `version` to ours, oldest first."""
    return tuple(MIGRATIONS[step] for step in range(version, SCHEMA_VERSION))


def migrate(connection: sqlite3.Connection) -> int:
    """Brings an older catalog up to date in one transaction; gives the number of steps taken."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        steps = pending(version)
        for step in steps:
            for statement in split_statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return len(steps)


def split_statements(script: str) -> tuple[str, ...]:
    """The statements of an SQL script; `executescript` would commit the transaction around it."""
    statements: list[str] = []
    current = ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return tuple(statements)
