"""Is the catalog on a disk that SQLite can share between processes?"""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import WorkspaceError

#: file systems whose locks and shared memory do not reach all who use them
NETWORK_KINDS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "lustre", "glusterfs", "fuse.glusterfs"}
    | {"fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"}
)
MOUNTS = Path("/proc/self/mounts")


def refuse_network_disk(path: Path) -> None:
    kind = file_system_kind(path)
    if kind in NETWORK_KINDS:
        raise WorkspaceError(
            f"{path.parent} is on a network file system ({kind})",
            detail="several processes cannot safely share a catalog there",
            hint="keep the workspace on a local disk; its sources may be anywhere",
        )


def file_system_kind(path: Path) -> str:
    """The kind of the file system that holds `path`; empty where the machine does not tell."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    place = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        words = line.split(" ")
        if len(words) < 3:
            continue
        mount = _unescaped(words[1])
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        # Of two mounts at one place the later one hides the earlier.
        if inside and len(mount) >= len(best):
            best, kind = mount, words[2]
    return kind


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
