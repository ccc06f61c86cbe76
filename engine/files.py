"""Writing files so that a crash or a full disk leaves the old file or the new one, never a half."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import ReadOnly, StorageFull, TrickleError, WorkspaceError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def storage_error(error: OSError, path: Path) -> TrickleError:
    """What the operating system refused, as one of our errors."""
    detail = error.strerror or str(error)
    if error.errno in _FULL:
        return storage_full(path, detail)
    if error.errno in _FORBIDDEN:
        return read_only(path, detail)
    return WorkspaceError(f"cannot use {path}", detail=detail, hint="look at the disk and at the permissions")


def storage_full(path: Path, detail: str) -> StorageFull:
    return StorageFull(
        f"no space left to write {path}",
        detail=detail,
        hint="free some disk space and try again; nothing was changed",
    )


def read_only(path: Path, detail: str) -> ReadOnly:
    return ReadOnly(
        f"{path} cannot be written",
        detail=detail,
        hint="give yourself write permission on the workspace, or only look at it with --read-only",
    )


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turns an OSError inside the block into a typed error about `path`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces `path` by `content` in one step."""
    with storage(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise


def locked(handle: int, how: int) -> bool:
    """Takes the operating system's lock on an open file or folder, if nobody has it: it ends with this process."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
