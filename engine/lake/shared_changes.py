"""Changes that were read once, for the stream tables that have to read the same: a few small tables in memory.

A change is known by the commits that it is made of, with all that their log says of them, and by the identity of its
ends: a source that was restored or rewritten has other ones, whatever its version numbers are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.lake.commits import ChangeSummary

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Key:
    path: str
    summary: ChangeSummary


class SharedChanges:
    """Holds so many bytes at most, and of each source its newest change only. Any thread may call."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        #: the one that was wanted last stands last
        self._held: OrderedDict[_Key, pa.Table] = OrderedDict()
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def held_bytes(self) -> int:
        with self._lock:
            return sum(rows.nbytes for rows in self._held.values())

    def held_bytes_of(self, path: str) -> int:
        with self._lock:
            return sum(rows.nbytes for key, rows in self._held.items() if key.path == path)

    @contextmanager
    def turn(self, path: str) -> Iterator[None]:
        """Who wants the same meanwhile waits for it, instead of reading it too."""
        with self._lock:
            turn = self._turns[path]
        with turn:
            yield

    def find(self, path: str, summary: ChangeSummary, columns: Sequence[str]) -> pa.Table | None:
        """The rows, with these columns and maybe more."""
        key = _key(path, summary)
        if key is None:
            return None
        with self._lock:
            rows = self._held.get(key)
            if rows is None or not set(columns) <= set(rows.column_names):
                return None
            self._held.move_to_end(key)
            return rows

    def keep(self, path: str, summary: ChangeSummary, rows: pa.Table) -> None:
        key = _key(path, summary)
        if key is None or rows.nbytes > self._most_bytes:
            return
        with self._lock:
            # whoever comes later reads up to the newest version, too
            for older in [each for each in self._held if each.path == path and _upto(each) != _upto(key)]:
                del self._held[older]
            self._held[key] = rows
            self._held.move_to_end(key)
            while sum(each.nbytes for each in self._held.values()) > self._most_bytes:
                self._held.popitem(last=False)


def _key(path: str, summary: ChangeSummary) -> _Key | None:
    """None where nobody can tell any more which commit one of its ends is."""
    ends = summary.ends
    return _Key(path, summary) if ends is not None and all(end.identity for end in ends) else None


def _upto(key: _Key) -> object:
    return key.summary.ends[1] if key.summary.ends is not None else None
