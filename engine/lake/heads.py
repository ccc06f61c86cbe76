"""The newest version of a table, asked many times a minute: two looks at the file system when nothing changed."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.errors import NotFound, SourceDropped
from engine.lake import log

_Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Head:
    version: int
    #: which commit it is; empty when its file was cleaned away and nobody can tell any more
    identity: str
    table_id: str
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
                if line.startswith('{"metaData"'):
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
    info = log.commit_info(path, version)
    return Head(version, identity_of(path, version) or "", table_id, info.at if info else None)


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
    return Head(version, identity_of(path, version) or "", str(table.metadata().id), at)
