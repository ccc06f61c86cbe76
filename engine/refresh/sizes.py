"""How many rows sources have: counted once, and then kept up by what their commits say of themselves."""

from __future__ import annotations

import threading
from collections import OrderedDict

from engine.errors import TrickleError
from engine.lake import tables
from engine.records import SourceVersion
from engine.refresh.observe import SourceMove

#: so many versions are remembered
_REMEMBERED = 2_000


class Sizes:
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int, str], int | None] = OrderedDict()
        self._lock = threading.Lock()

    def rows(self, move: SourceMove) -> int | None:
        """At the version that was chosen. None where that cannot be counted."""
        key = _key(move.path, move.chosen)
        with self._lock:
            if key in self._known:
                return self._known[key]
            before = None if move.was is None else self._known.get(_key(move.path, move.was))
        balance = 0 if move.summary is None else move.summary.balance
        if before is not None and balance is not None:
            rows: int | None = max(0, before + balance)
        else:
            rows = _counted(move.path, move.chosen.version)
        with self._lock:
            self._known[key] = rows
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return rows


def _key(path: str, version: SourceVersion) -> tuple[str, int, str]:
    return path, version.version, version.identity


def _counted(path: str, version: int) -> int | None:
    try:
        return tables.pin(path, version).rows()
    except TrickleError:
        # delta-rs does not open every table that Spark reads: estimates then go by what refreshes took
        return None
