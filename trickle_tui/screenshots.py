"""Pictures of a real workspace for the documentation: `python -m trickle_tui.screenshots WORKSPACE FOLDER`.

The dashboard runs without a terminal on the real engine, watches for a while, and each screen is written as PNG
and SVG. Nothing is made up: what the pictures show is what the workspace holds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from engine.errors import TrickleError
from engine.records import SparkPhase, State
from trickle_tui import picture, strips
from trickle_tui.app import DashboardApp
from trickle_tui.bridge import Bridge, open_bridge

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Shot:
    name: str
    size: tuple[int, int]
    #: pressed one after another from the overview
    keys: tuple[str, ...] = ()
    theme: str = "night"


SHOTS = (
    Shot("overview", (140, 45)),
    Shot("overview_light", (140, 45), theme="day"),
    Shot("overview_80x24", (80, 24)),
    Shot("stream_table", (140, 45), ("enter",)),
    Shot("query", (140, 45), ("enter", "tab")),
    Shot("plan", (140, 45), ("enter", "tab", "tab")),
    Shot("history", (140, 45), ("enter", "tab", "tab", "tab")),
    Shot("actions", (110, 32), ("x",)),
)


async def take(bridge: Bridge, folder: Path, watch_s: float, selected: str | None) -> list[Path]:
    """All pictures, after the engine has worked for a while."""
    app = DashboardApp(bridge)
    written: list[Path] = []
    async with app.run_test(size=SHOTS[0].size) as pilot:
        await _watch(pilot, app, watch_s)
        for shot in SHOTS:
            await pilot.resize_terminal(*shot.size)
            app.use_theme(shot.theme)
            app.home()
            await pilot.pause(_LOOK_EVERY_S)
            _select(app, selected)
            await pilot.pause(1.5)
            for key in shot.keys:
                await pilot.press(key)
                await pilot.pause(1.0)
            written += _write(app, folder / shot.name)
            while not app.screen.is_current or len(app.screen_stack) > 1:
                await pilot.press("escape")
                await pilot.pause()
    return written


def _select(app: DashboardApp, name: str | None) -> None:
    from trickle_tui.screens.overview import OverviewPage

    page = app.page
    tables = app.snapshot.overview.tables
    busiest = max(tables, key=lambda table: len(table.recent_ms), default=None)
    wanted = name or (busiest.name if busiest else None)
    if isinstance(page, OverviewPage) and wanted is not None:
        page.grid.select(wanted)


async def _watch(pilot: Pilot[None], app: DashboardApp, watch_s: float) -> None:
    """Until Spark is ready and every stream table has rows, then for the time asked; two minutes at most."""
    give_up = time.monotonic() + watch_s + 120
    while time.monotonic() < give_up:
        overview = app.snapshot.overview
        if overview.spark.phase is SparkPhase.FAILED:
            raise SystemExit(f"Spark did not start: {overview.spark.detail}")
        ready = overview.spark.phase is SparkPhase.READY
        if ready and all(table.state is not State.UNPOPULATED for table in overview.tables):
            break
        await pilot.pause(_LOOK_EVERY_S)
    await pilot.pause(watch_s)


def _write(app: DashboardApp, stem: Path) -> list[Path]:
    rows, ground = strips.cells(app), app.palette.theme.colors["bg"]
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    picture.save_png(rows, png, ground)
    picture.save_svg(rows, svg, ground)
    return [png, svg]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m trickle_tui.screenshots", description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--watch", type=float, default=60.0, metavar="SECONDS", help="how long it refreshes before")
    parser.add_argument("--select", metavar="NAME", help="the stream table to show; by default the busiest")
    asked = parser.parse_args(arguments)
    try:
        bridge = open_bridge(asked.workspace, False, {}, dict(os.environ))
    except TrickleError as error:
        print(f"{error}\n{error.hint or ''}".strip(), file=sys.stderr)
        return error.exit_code
    try:
        written = asyncio.run(take(bridge, asked.folder, asked.watch, asked.select))
    except picture.FontMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    finally:
        bridge.close()
    for file in written:
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
