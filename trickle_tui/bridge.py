"""The only door to the engine: blocking calls for the threads of `updates`, in the dashboard's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from trickle_tui.snapshot import Answer, Request, Snapshot, UiSettings


class Bridge(Protocol):
    """What the dashboard needs of an engine. Any thread may call it; calls may take their time."""

    @property
    def read_only(self) -> bool: ...

    @property
    def settings(self) -> UiSettings: ...

    def now(self) -> datetime: ...

    def start(self) -> None:
        """Spark and the scheduler, in the background; returns at once."""
        ...

    def snapshot(self, focus: str | None) -> Snapshot:
        """The present picture, with more about one stream table. A few milliseconds, no Spark."""
        ...

    def perform(self, request: Request) -> Answer:
        """Do it, however long it takes; raises a TrickleError."""
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever something happened."""
        ...

    def close(self) -> None: ...


def open_bridge(workspace: Path, read_only: bool, overrides: Mapping[str, str], env: Mapping[str, str]) -> Bridge:
    """The bridge to the engine of this workspace; raises what `Engine.open` raises."""
    from trickle_tui.engine_bridge import EngineBridge

    return EngineBridge(workspace, read_only, overrides, env)
