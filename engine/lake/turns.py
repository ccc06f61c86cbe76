"""Whose turn it is to change a source: one after the other, threads and processes of a workspace alike.

A lock of the operating system on a file beside the catalog: it ends with the process that holds it, however that ends.
Other writers know nothing of it, and need not: it makes order among ourselves, and what proves anything is the log.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.errors import CommitConflict
from engine.files import locked, storage
from engine.lake import log

_LOOK_AGAIN_S = 0.01


class Turns:
    """Every method may be called from any thread."""

    def __init__(self, folder: Path, wait_s: float) -> None:
        self._folder = folder
        self._wait_s = wait_s

    @contextmanager
    def taken(self, paths: Collection[str]) -> Iterator[None]:
        """Nobody else has a turn at any of these tables meanwhile."""
        with ExitStack() as held:
            # always in the same order, so that no two wait for each other
            for file, path in sorted({self._file(path): path for path in paths}.items()):
                held.enter_context(self._taken(file, path))
            yield

    def is_taken(self, path: str) -> bool:
        """Is somebody at it who will see to what reads it?"""
        file = self._file(path)
        if not file.exists():
            return False
        handle = os.open(file, os.O_RDONLY)
        try:
            return not locked(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)

    @contextmanager
    def _taken(self, file: Path, path: str) -> Iterator[None]:
        with storage(file):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline_s = time.monotonic() + self._wait_s
            while not locked(handle, fcntl.LOCK_EX):
                if time.monotonic() > deadline_s:
                    raise CommitConflict(
                        f"{Path(path).name} is being changed by others all the time",
                        detail=f"at this moment by process {_holder(handle)}; waited {self._wait_s:g} s",
                        hint="try again, or raise sources.write_wait",
                    )
                time.sleep(_LOOK_AGAIN_S)
            with storage(file):
                os.ftruncate(handle, 0)
                os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)

    def _file(self, path: str) -> Path:
        folder = log.local_path(path)
        place = path if folder is None else str(folder.resolve())
        digest = hashlib.sha256(place.encode()).hexdigest()[:24]
        return self._folder / f"{digest}.lock"


def _holder(handle: int) -> str:
    return os.pread(handle, 20, 0).decode() or "nobody knows which"
