"""Tables that delta-rs has open already, for who only reads.

To open one takes a look at every commit since its last checkpoint, to bring an open one up to date a look at those that
came. Who commits opens a table of its own: it must not move on by itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.lake import failures, log, tables

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: so many tables are kept open
_KEPT = 64


@dataclass(frozen=True)
class _Open:
    handle: DeltaTable
    #: the commit that it stands at: with another one behind the same number it is another table
    commit: object


_idle: OrderedDict[str, _Open] = OrderedDict()
_lock = threading.Lock()


@contextmanager
def at(path: str, version: int) -> Iterator[DeltaTable]:
    """The table at that version, to nobody else's use until the block is left."""
    handle = _brought_to(path, version) or tables.pin(path, version).handle
    yield handle
    commit = log.signature(path, version)
    if commit is None or handle.version() != version:
        return
    with _lock:
        known = _idle.get(path)
        if known is None or known.handle.version() <= version:
            _idle[path] = _Open(handle, commit)
            _idle.move_to_end(path)
        while len(_idle) > _KEPT:
            _idle.popitem(last=False)


def _brought_to(path: str, version: int) -> DeltaTable | None:
    """None where none is open, or where newer commits than wanted are there already."""
    with _lock:
        found = _idle.get(path)
        if found is None or found.handle.version() > version:
            return None
        del _idle[path]
    if log.signature(path, found.handle.version()) != found.commit:
        return None
    if found.handle.version() < version:
        try:
            found.handle.update_incremental()
        except Exception as error:
            raise failures.typed(error, f"Opening {path}") from error
    return found.handle if found.handle.version() == version else None
