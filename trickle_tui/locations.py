"""Every path the dashboard reads, in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_themes() -> Path:
    """The themes that come with Trickle: inside the installed package, or beside it in the source tree."""
    inside = _PACKAGE / "themes"
    return inside if inside.is_dir() else _PACKAGE.parent / "themes"


def user_folder(env: Mapping[str, str] = os.environ) -> Path:
    base = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".config")
    return Path(base) / "trickle"


def user_themes(env: Mapping[str, str] = os.environ) -> Path:
    return user_folder(env) / "themes"


def stylesheet() -> Path:
    return _PACKAGE / "trickle.tcss"
