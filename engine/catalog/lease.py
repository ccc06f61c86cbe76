"""The scheduler's lease: one process runs the refreshes of a workspace, all others look on.

Each holder gets a higher epoch, which its commits carry. So a holder that slept through its own end, and was
replaced, is recognised by whoever reads the epoch.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.errors import LeaseHeld


class Holder(NamedTuple):
    pid: int
    host: str
    epoch: int
    heartbeat_age_s: float


@dataclass(frozen=True)
class _Process:
    """What tells one process from every other one, also after its number was given to another."""

    pid: int
    host: str
    boot_id: str
    pid_namespace: str
    started: str


class Lease:
    def __init__(self, catalog: Catalog, clock: Clock, timeout_s: float) -> None:
        self._database = catalog.database
        self._clock = clock
        self._timeout_s = timeout_s

    def acquire(self, pid: int | None = None, host: str | None = None) -> int:
        """The epoch of the new holder; LeaseHeld when somebody living has it."""
        me = _process(os.getpid() if pid is None else pid, host or socket.gethostname())
        with self._database.write() as connection:
            row = _row(connection)
            if row["pid"] is not None and self._is_alive(row):
                raise LeaseHeld(
                    f"the scheduler of this workspace is run by process {row['pid']}",
                    detail=f"pid {row['pid']} on {row['host']}, last heard of {self._age_s(row):.1f}s ago",
                    hint="stop that process, or leave the refreshing to it: everything else works meanwhile",
                )
            epoch = int(row["epoch"]) + 1
            connection.execute(
                "UPDATE lease SET epoch = ?, pid = ?, host = ?, boot_id = ?, pid_namespace = ?, started = ?, "
                "heartbeat_s = ?, heartbeat_at = ?",
                (
                    epoch,
                    me.pid,
                    me.host,
                    me.boot_id,
                    me.pid_namespace,
                    me.started,
                    self._clock.monotonic_s(),
                    self._clock.now().timestamp(),
                ),
            )
        return epoch

    def heartbeat(self, epoch: int) -> bool:
        """Renews the lease; False when it belongs to somebody else by now."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "UPDATE lease SET heartbeat_s = ?, heartbeat_at = ? WHERE epoch = ? AND pid IS NOT NULL",
                (self._clock.monotonic_s(), self._clock.now().timestamp(), epoch),
            )
            return cursor.rowcount == 1

    def release(self, epoch: int) -> None:
        """Gives the lease up; does nothing when somebody else has it by now."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE lease SET pid = NULL, host = NULL, boot_id = NULL, pid_namespace = NULL, "
                "started = NULL, heartbeat_s = NULL, heartbeat_at = NULL WHERE epoch = ?",
                (epoch,),
            )

    def holder(self) -> Holder | None:
        """Who has the lease and lives."""
        with self._database.read() as connection:
            row = _row(connection)
        if row["pid"] is None or not self._is_alive(row):
            return None
        return Holder(row["pid"], row["host"], row["epoch"], self._age_s(row))

    def epoch(self) -> int:
        """The epoch of the present holder, or of the last one."""
        with self._database.read() as connection:
            return int(_row(connection)["epoch"])

    def _is_alive(self, row: sqlite3.Row) -> bool:
        here = row["boot_id"] == _boot_id()
        if not here and row["host"] == socket.gethostname() and row["boot_id"]:
            return False  # this machine was started again since
        if here and row["pid_namespace"] == _pid_namespace() and not _lives(row["pid"], row["started"]):
            return False
        return self._age_s(row) < self._timeout_s

    def _age_s(self, row: sqlite3.Row) -> float:
        if row["boot_id"] == _boot_id():
            return max(0.0, self._clock.monotonic_s() - float(row["heartbeat_s"]))
        return max(0.0, self._clock.now().timestamp() - float(row["heartbeat_at"]))


def _row(connection: sqlite3.Connection) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute("SELECT * FROM lease").fetchone()
    return row


def _process(pid: int, host: str) -> _Process:
    return _Process(pid, host, _boot_id(), _pid_namespace(), _started(pid) or "")


def _boot_id() -> str:
    """Changes with each start of the machine; where nobody tells, the start's own time does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        # Two readings differ by less than a second; ten of them are one start.
        return f"{socket.gethostname()}:{round((time.time() - time.monotonic()) / 10)}"


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When the process began, in ticks since the machine's start; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything; fields after it are plain.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started


def _lives(pid: int, started: str) -> bool:
    if Path("/proc/self/stat").exists():
        now = _started(pid)
        return now is not None and (not started or now == started)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
