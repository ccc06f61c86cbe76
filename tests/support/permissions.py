"""Folders that somebody else than the tests' user can reach."""

from __future__ import annotations

import stat
from pathlib import Path


def open_the_way_to(folder: Path) -> None:
    """Pytest keeps its folders to itself: let others through those above this one, and into it."""
    for each in (folder, *folder.parents):
        mode = stat.S_IMODE(each.stat().st_mode)
        if mode & 0o055 != 0o055:
            each.chmod(mode | 0o055)
