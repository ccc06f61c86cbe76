"""The newest version of a table, asked many times a minute: two looks at the file system when nothing changed."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.errors import NotFound, SourceDropped
from engine.lake import log

#: a commit that touches no files has the witness of one before it, of so many at the most
_WITNESS_IN = 20

_Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Head:
    version: int
    #: which commit it is; empty when its file was cleaned away and nobody can tell any more
    identity: str
    table_id: str
    #: a file that tells that history once went through here, for when the commit's own file is cleaned away
    witness: str
    #: when it was committed, by the writer's clock
    at: datetime | None


@dataclass(frozen=True)
class _Seen:
    head: Head
    signature: _Signature


class HeadReader:
    """Remembers what it saw; every method may be called from any thread."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def head(self, path: str) -> Head:
        """NotFound where there never was a table, SourceDropped where there was one."""
        if log.local_path(path) is None:
            return _remote_head(path)
        with self._lock:
            seen = self._seen.get(path)
        if seen is not None:
            known = log.signature(path, seen.head.version)
            if known == seen.signature:
                if log.signature(path, seen.head.version + 1) is None:
                    return seen.head
                return self._remember(path, self._walk(path, seen.head))
        try:
            return self._remember(path, _opened(path))
        except NotFound as error:
            if seen is None:
                raise
            self.forget(path)
            raise SourceDropped(
                f"The table at {path} is gone.",
                detail=error.detail,
                hint="Bring it back, or drop what reads it.",
            ) from error

    def forget(self, path: str) -> None:
        with self._lock:
            self._seen.pop(path, None)

    def _walk(self, path: str, known: Head) -> Head:
        """From the version that is known to the newest, one file at a time."""
        version, table_id = known.version, known.table_id
        while (raw := log.lines(path, version + 1)) is not None:
            version += 1
            for line in raw:
                if log.kind_of(line) == "metaData":
                    table_id = str(json.loads(line)["metaData"]["id"])
        return _described(path, version, table_id)

    def _remember(self, path: str, head: Head) -> Head:
        signature = log.signature(path, head.version)
        if signature is not None:
            with self._lock:
                self._seen[path] = _Seen(head, signature)
        return head


def identity_of(path: str, version: int) -> str | None:
    """The identity of an older commit; None when its file was cleaned away."""
    raw = log.lines(path, version)
    return None if raw is None else log.identity(raw)


def _opened(path: str) -> Head:
    version = log.newest_version(path)
    return _described(path, version, log.definition(path, version).table_id)


def _described(path: str, version: int, table_id: str) -> Head:
    found = log.lines(path, version)
    if found is None:
        return Head(version, "", table_id, "", None)
    raw = list(found)  # read once, and looked through three times
    witness = log.witness(raw) or _witness(path, version - 1)
    return Head(version, log.identity(raw), table_id, witness, log.info_in(version, raw).at)


def _witness(path: str, newest: int) -> str:
    for older in range(newest, max(-1, newest - _WITNESS_IN), -1):
        raw = log.lines(path, older)
        if raw is None:
            break
        if found := log.witness(raw):
            return found
    return ""


def _remote_head(path: str) -> Head:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(path)
    except TableNotFoundError as error:
        raise log.not_a_table(path) from error
    said = (table.history(1) or [{}])[0]
    stamp = said.get("timestamp")
    at = datetime.fromtimestamp(stamp / 1000, UTC) if isinstance(stamp, int) else None
    version = table.version()
    identity = identity_of(path, version) or ""
    return Head(version, identity, str(table.metadata().id), _witness(path, version), at)
