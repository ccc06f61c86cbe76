"""Trickle: stream tables on Spark and Delta, refreshed by computing only what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.engine import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> Any:
    """`from engine import Engine`, loaded when asked for: whoever wants a part of the package waits for that part."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
