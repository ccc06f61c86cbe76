"""Which files a version of a table consists of.

delta-rs opens a table by reading every commit since its last checkpoint: 20 ms after seventy of them. A refresh asks
several times. From a version that is known to a newer one it takes the commits between, and nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from engine.lake import failures, log, tables

_log = logging.getLogger(__name__)

#: of so many versions
_REMEMBERED = 256
#: a version that is older than that is no help
_FOLLOWED = 32
#: encoded names, and files of other folders
_UNSAFE_IN_NAMES = frozenset("%:")


@dataclass(frozen=True)
class Files:
    #: bytes by the name of a file, as the log spells it
    sizes: Mapping[str, int]
    #: are there rows in the files that the table does not have any more?
    has_deletions: bool

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def are_encoded(self) -> bool:
        return any(_UNSAFE_IN_NAMES & set(name) for name in self.sizes)


_known: OrderedDict[tuple[str, int, object], Files] = OrderedDict()
_lock = threading.Lock()


def of(path: str, version: int) -> Files:
    commit = log.signature(path, version)
    if commit is None:
        return _asked(path, version)
    key = (path, version, commit)
    with _lock:
        found = _known.get(key)
    if found is None:
        found = _followed(path, version) or _asked(path, version)
    with _lock:
        _known[key] = found
        _known.move_to_end(key)
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


def size_bytes(path: str, version: int) -> int | None:
    """None where only Spark reads the table."""
    try:
        return of(path, version).size_bytes
    except Exception as error:
        _log.info("the size of %s is not known: %s", path, failures.typed(error, "counting"))
        return None


def _followed(path: str, version: int) -> Files | None:
    """By the commits since a version that is known. None where they, or its files, do not tell."""
    for older in range(version - 1, max(-1, version - 1 - _FOLLOWED), -1):
        with _lock:
            known = _known.get((path, older, log.signature(path, older)))
        if known is not None:
            break
    else:
        return None
    if known.has_deletions or known.are_encoded:
        return None
    sizes = dict(known.sizes)
    for between in range(older + 1, version + 1):
        actions = log.actions(path, between)
        if actions is None:
            return None
        went = [action["remove"] for action in actions if "remove" in action]
        came = [action["add"] for action in actions if "add" in action]
        if any(file.get("deletionVector") for file in (*went, *came)):
            return None
        for file in went:
            sizes.pop(file["path"], None)
        sizes.update({file["path"]: int(file["size"]) for file in came})
    found = Files(sizes, has_deletions=False)
    return None if found.are_encoded else found


def _asked(path: str, version: int) -> Files:
    import pyarrow as pa

    handle = tables.pin(path, version).handle
    actions = pa.table(handle.get_add_actions())
    names, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    has_deletions = any(True for _ in handle.deletion_vectors())
    return Files(dict(zip(map(str, names), sizes, strict=True)), has_deletions)
