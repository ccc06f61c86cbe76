"""The way into the dashboard, made for its first picture: whoever opens it waits for that."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    workspace: Path,
    read_only: bool = False,
    overrides: Mapping[str, str] | None = None,
    startup_sql: Sequence[str] = (),
) -> None:
    """Open the dashboard on a workspace; returns when the user leaves. Raises what opening it raises.

    `startup_sql` is run in order behind the first picture: the demo's stream tables appear while one looks on.
    """
    # what is imported and built until then stays: to search it for garbage takes a seventh of the wait
    gc.disable()
    from trickle_tui.app import DashboardApp
    from trickle_tui.bridge import open_bridge

    bridge = open_bridge(workspace, read_only, overrides or {}, dict(os.environ))
    try:
        DashboardApp(bridge, startup_sql=startup_sql, on_first_picture=_collect_from_now_on).run()
    finally:
        bridge.close()


def _collect_from_now_on() -> None:
    gc.freeze()
    gc.enable()
