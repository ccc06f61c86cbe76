"""Between two processes: a stream table is not taken away while somebody commits to it.

A commit goes to a path and a version number, and by then both may be those of another table, which was made under the
name of one that was dropped. So whoever commits holds the folder, and looks whose it is; whoever takes it away waits
until nobody holds it. The system lets go of what a dead process held.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import CommitConflict, NotFound
from engine.files import locked
from engine.lake import log

#: says whose stream table it is that lies in a folder
OWNER = "trickle.id"

_WAIT_S = 10.0
_LOOK_AGAIN_S = 0.02


@contextmanager
def for_commit(path: str, st_id: str) -> Iterator[None]:
    """Only the table of this stream table is committed to. Others may do the same at once: one of them will win."""
    folder = log.local_path(path)
    if folder is None:
        _refuse_other(path, st_id)
        yield
        return
    with _held(folder, fcntl.LOCK_SH):
        _refuse_other(path, st_id)
        yield


@contextmanager
def for_removal(folder: Path) -> Iterator[None]:
    """Nobody is in the middle of a commit to it."""
    if not log.is_table(folder):
        yield
        return
    with _held(folder, fcntl.LOCK_EX):
        yield


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    deadline = time.monotonic() + _WAIT_S
    while True:
        handle = _opened(folder)
        try:
            if locked(handle, how) and _is_there(folder, handle):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() > deadline:
            raise CommitConflict(
                f"{folder.name} is being written at this moment.",
                detail="A refresh of it is in the middle of its commit.",
                hint="Try again when it is done, or cancel that refresh where it runs.",
            )
        time.sleep(_LOOK_AGAIN_S)


def _opened(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        raise _gone(folder) from None


def _is_there(folder: Path, handle: int) -> bool:
    """Is it still that folder which stands there, and no other of its name?"""
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        raise _gone(folder) from None


def _refuse_other(path: str, st_id: str) -> None:
    owner = log.definition(path).properties.get(OWNER, st_id)
    if owner != st_id:
        raise NotFound(
            f"{Path(path).name} was dropped meanwhile.",
            detail="Another stream table is in its place by now.",
            hint="Nothing is left to do, and nothing was changed.",
        )


def _gone(folder: Path) -> NotFound:
    return NotFound(f"The table at {folder} is gone.", hint="Nothing was changed.")
