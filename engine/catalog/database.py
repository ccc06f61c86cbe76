"""One SQLite file, opened with suspicion and shared by many threads and processes.

Each thread has a connection of its own; WAL lets readers and one writer work side by side. Whatever SQLite
says comes out as a typed error.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from engine.catalog import migrations
from engine.catalog.disk import refuse_network_disk
from engine.catalog.migrations import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    check_version,
    schema_sql,
    split_statements,
)
from engine.errors import (
    CatalogBusy,
    CatalogCorrupt,
    PermissionDenied,
    ReadOnly,
    TrickleError,
    WorkspaceError,
    WorkspaceMissing,
    WorkspaceTooNew,
)
from engine.files import read_only as not_writable
from engine.files import storage, storage_full

BUSY_TIMEOUT_MS = 5_000

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


class _Connection:
    """One thread's connection: a weakly referable shell, closed when its thread is gone."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw

    def __del__(self) -> None:
        self.raw.close()


class Database:
    """Use `read()` and `write()`; see `open_database`."""

    def __init__(self, path: Path, *, read_only: bool, immutable: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._immutable = immutable
        self._local = threading.local()
        self._connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._guard = threading.Lock()
        # Threads of one process queue here instead of in SQLite, which would let them sleep and poll.
        self._one_writer = threading.RLock()
        self._closed = False

    def close(self) -> None:
        with self._guard:
            self._closed = True
            open_connections = list(self._connections)
            self._connections.clear()
        for each in open_connections:
            with suppress(sqlite3.Error):
                each.raw.close()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection whose reads belong to one moment, also over several statements."""
        with self.errors():
            connection = self._connection()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _end(connection, "COMMIT")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction that is committed at the end, or rolled back on any error."""
        if self.read_only:
            raise ReadOnly("the workspace is open read-only", hint="open it without --read-only to change anything")
        with self._one_writer, self.errors():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _end(connection, "ROLLBACK")
                raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._typed(error) from error
        except UnicodeDecodeError as error:
            # of a name in the damaged file: Python reads it and not SQLite
            raise corrupt(self.path, str(error)) from error

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise WorkspaceError("the workspace is closed", hint="open it again")
        mine: _Connection | None = getattr(self._local, "connection", None)
        if mine is None:
            mine = _Connection(_connect(self.path, read_only=self.read_only, immutable=self._immutable))
            with self._guard:
                self._connections.add(mine)
            self._local.connection = mine
        return mine.raw

    def _typed(self, error: sqlite3.Error) -> TrickleError:
        if self._closed:
            return WorkspaceError("the workspace is closed", hint="open it again")
        return typed_error(error, self.path)


def open_database(path: Path, *, read_only: bool) -> Database:
    """Opens the catalog file `path`, making it first if it does not exist (unless `read_only`)."""
    if not read_only:
        refuse_network_disk(path)
        if not path.exists():
            _create(path)
    if not path.exists():
        raise WorkspaceMissing(f"{path} does not exist", hint="open the workspace once without --read-only to make it")
    check_file(path)
    immutable = read_only and _must_be_immutable(path)
    database = Database(path, read_only=read_only, immutable=immutable)
    try:
        with database.errors():
            _check_contents(database, path, read_only=read_only)
    except BaseException:
        database.close()
        raise
    return database


def migrate(path: Path, *, dry_run: bool = False) -> int:
    """Brings the catalog of an older program up to date; how many steps that takes."""
    check_file(path)
    try:
        with closing(_connect(path, read_only=dry_run)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                check_version(version, path, read_only=False)
            return len(migrations.pending(version)) if dry_run else migrations.migrate(connection)
    except sqlite3.Error as error:
        raise typed_error(error, path) from error


def check_file(path: Path) -> None:
    """Refuses what is not a whole SQLite file of ours, before SQLite touches it."""
    header, size = _header_and_size(path)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise corrupt(path, f"it has {size:,} bytes and is not an SQLite database")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise corrupt(path, "it is an SQLite database of another program")
    for attempt in range(3):
        # With a log beside it the file may rightly lag behind its header: a checkpoint is under way.
        if size >= _bytes_by_header(header) or _has_log(path):
            return
        # The checkpoint may have ended, and its log be gone, since we looked at the size.
        time.sleep(0.005 * attempt)
        header, size = _header_and_size(path)
    raise corrupt(path, f"it has {size:,} of {_bytes_by_header(header):,} bytes")


def _header_and_size(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEADER_BYTES), path.stat().st_size
    except PermissionError as error:
        raise PermissionDenied(
            f"{path} cannot be read", detail=error.strerror, hint="ask its owner for permission"
        ) from error
    except OSError as error:
        raise corrupt(path, error.strerror or str(error)) from error


def _bytes_by_header(header: bytes) -> int:
    page_bytes = int.from_bytes(header[16:18], "big")
    return (65_536 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")


def corrupt(path: Path, detail: str) -> CatalogCorrupt:
    return CatalogCorrupt(
        f"the catalog {path} is damaged",
        detail=detail,
        hint="move it away, or put a copy back: without it Trickle starts with an empty catalog, and the "
        "stream tables' data in .trickle/warehouse is not touched",
    )


def unreadable(path: Path, detail: str) -> TrickleError:
    """Contents that this program does not understand: those of a newer one, or damaged ones."""
    if _is_newer(path):
        return WorkspaceTooNew(
            "this workspace belongs to a newer Trickle and cannot be read by this one",
            detail=detail,
            hint="upgrade Trickle",
        )
    return corrupt(path, detail)


def typed_error(error: sqlite3.Error, path: Path) -> TrickleError:
    """Decides by SQLite's result code, never by its text."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    text = str(error)
    match primary:
        case sqlite3.SQLITE_FULL:
            return storage_full(path, text)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return not_writable(path, text)
        case sqlite3.SQLITE_CANTOPEN:
            return not_writable(path, text) if path.exists() else corrupt(path, text)
        case sqlite3.SQLITE_IOERR:
            return storage_full(path, text) if _disk_is_full(path) else corrupt(path, text)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return CatalogBusy(
                "the catalog is busy",
                detail=f"another process has been writing {path} for more than {BUSY_TIMEOUT_MS // 1000} s",
                hint="try again",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return corrupt(path, text)
        case _ if _is_newer(path):
            return unreadable(path, text)
        case _:
            return WorkspaceError(
                f"the catalog {path} cannot be used", detail=text, hint="look at the disk and the file"
            )


# --- opening -----------------------------------------------------------------------------------------------


def _connect(path: Path, *, read_only: bool, immutable: bool = False) -> sqlite3.Connection:
    mode = "ro" if read_only else "rw"
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS:d}")
        connection.execute("PRAGMA foreign_keys = ON")
        # In WAL mode NORMAL loses at worst the last commits on a power cut, and never breaks the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_contents(database: Database, path: Path, *, read_only: bool) -> None:
    header, size = _header_and_size(path)
    suspicious = size < _bytes_by_header(header)
    with database.read() as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        check_version(version, path, read_only=read_only)
        if suspicious:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise corrupt(path, verdict)


def _create(path: Path) -> None:
    """Builds the new catalog beside its place and puts it there whole, once, whoever else tries the same."""
    draft = path.with_name(f"{path.name}.new-{os.getpid()}")
    with storage(path), _creation_lock(path):
        if path.exists():
            return
        # The log of a catalog that was taken away would be replayed into the new one.
        for leftover in (_log_of(path), path.with_name(f"{path.name}-shm"), draft):
            leftover.unlink(missing_ok=True)
        try:
            _build(draft)
            os.rename(draft, path)
        except sqlite3.Error as error:
            raise typed_error(error, path) from error
        finally:
            draft.unlink(missing_ok=True)


def _build(draft: Path) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        os.chmod(draft, 0o600)
        # Both belong to the file's header, so whoever opens it later finds them set.
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in split_statements(schema_sql()):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


@contextmanager
def _creation_lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _must_be_immutable(path: Path) -> bool:
    """Reading a WAL database needs to write beside it; where that is forbidden, only a promise helps."""
    if os.access(path.parent, os.W_OK) or _has_log(path):
        return False
    try:
        connection = _connect(path, read_only=True)
    except sqlite3.Error:
        return True
    try:
        connection.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _has_log(path: Path) -> bool:
    try:
        return _log_of(path).stat().st_size > 0
    except OSError:
        return False


def _is_newer(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
    except OSError:
        return False
    return int.from_bytes(header[60:64], "big") > SCHEMA_VERSION


def _disk_is_full(path: Path) -> bool:
    try:
        facts = os.statvfs(path.parent)
    except OSError:
        return False
    return facts.f_bavail * facts.f_frsize < 1 << 20


def _end(connection: sqlite3.Connection, how: str) -> None:
    """Ends a transaction that SQLite may have ended by itself (a full disk, a closed connection)."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute(how)
