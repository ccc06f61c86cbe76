"""Every action of the dashboard on the real engine: real Delta tables, real Spark, keys pressed one by one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from engine.engine import Engine
from engine.errors import WorkspaceMissing
from engine.lake.session import SparkHost
from engine.records import SparkPhase, State
from tests.spark.shop import BY_REGION, Shop, order
from trickle_tui import locations
from trickle_tui.app import DashboardApp
from trickle_tui.engine_bridge import EngineBridge
from trickle_tui.strips import to_text

pytestmark = pytest.mark.spark

_PATIENCE_S = 120.0


class Person:
    """Presses keys and looks at the screen."""

    def __init__(self, pilot: Pilot[None], app: DashboardApp) -> None:
        self.pilot = pilot
        self.app = app

    @property
    def screen(self) -> str:
        return to_text(self.app)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def command(self, text: str) -> None:
        await self.press("colon", *["space" if letter == " " else letter for letter in text], "enter")

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.screen)

    async def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not true():
            assert time.monotonic() < deadline, self.screen
            await self.pilot.pause(0.05)


@asynccontextmanager
async def dashboard(folder: Path, read_only: bool = False) -> AsyncIterator[Person]:
    bridge = EngineBridge(folder, read_only, {"refresh.default_schedule": "1h"}, {})
    app = DashboardApp(bridge, theme_folders=(locations.shipped_themes(),))
    try:
        async with app.run_test(size=(140, 45)) as pilot:
            await pilot.pause()
            yield Person(pilot, app)
    finally:
        bridge.close()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def workspace(tmp_path: Path, shop: Shop, spark_host: SparkHost) -> Path:
    """With two sources and no stream table; its Spark is the test run's."""
    folder = Engine.init(tmp_path / "work")
    with Engine.open(folder) as engine:
        engine.add_source("orders", shop.path("orders"))
        engine.add_source("customers", shop.path("customers"))
    return folder


async def test_a_stream_table_lives_its_life_on_the_screen(workspace: Path, shop: Shop) -> None:
    async with dashboard(workspace) as person:
        assert "no stream tables yet" in person.screen
        await person.until(lambda: person.app.snapshot.overview.spark.phase is SparkPhase.READY)

        await person.command(f"sql create stream table by_region with (schedule='1h') as {BY_REGION}")
        await person.sees("● fresh")
        await person.sees("by_region created")

        shop.insert("orders", order(900, 1, 100), order(901, 2, 200))
        await person.press("r")
        await person.sees("by_region: differential")

        await person.press("enter")
        await person.sees("Overview › by_region")
        await person.sees("READS")
        await person.press("tab")
        await person.sees("SELECT c.region, SUM(o.amount)")
        await person.sees("KEPT BESIDE THEM")
        await person.press("tab")
        await person.sees("OPERATOR")
        await person.sees("Join")
        await person.sees("delta SQL")
        await person.press("tab")
        await person.sees("it was never populated")
        await person.press("escape")

        await person.press("v")
        await person.sees("by_region equals its query: 2 rows")

        await person.press("p")
        await person.sees("○ paused")
        await person.press("p")
        await person.until(lambda: person.app.snapshot.overview.tables[0].state is State.FRESH)

        await person.press("R")
        await person.sees("recompute by_region")
        await person.press("right", "enter")
        await person.sees("by_region: full")

        await person.command("sql select region, orders from by_region order by region")
        await person.sees("2 rows")
        assert "r0" in person.screen
        await person.press("escape")

        await person.press("c")
        await person.sees("no refresh is running")

        await person.command("drop by_region")
        await person.sees("Nothing reads it.")
        await person.press("right", "enter")
        await person.sees("dropped by_region")
        await person.sees("no stream tables yet")


async def test_errors_of_the_engine_show_with_their_hints(workspace: Path) -> None:
    async with dashboard(workspace) as person:
        await person.until(lambda: person.app.snapshot.overview.spark.phase is SparkPhase.READY)
        await person.command("sql select * from nowhere")
        await person.sees("✖ ")
        assert "nowhere" in person.screen
        assert "Traceback" not in person.screen
        await person.command("sql create stream table x as select no_such from orders")
        await person.until(lambda: "no_such" in person.screen)
        assert person.app.snapshot.overview.tables == ()


async def test_a_dropped_upstream_takes_its_readers_along(workspace: Path) -> None:
    async with dashboard(workspace) as person:
        await person.until(lambda: person.app.snapshot.overview.spark.phase is SparkPhase.READY)
        await person.command("sql create stream table paid with (schedule='1h') as select id, amount from orders")
        await person.sees("paid created")
        await person.command("sql create stream table big with (schedule='1h') as select id from paid where amount > 9")
        await person.sees("big created")
        await person.command("drop paid")
        await person.sees("1 stream table below goes too: big.")
        await person.press("right", "enter")
        await person.sees("no stream tables yet")


async def test_read_only_looks_and_does_not_touch(workspace: Path) -> None:
    async with dashboard(workspace, read_only=True) as person:
        await person.command("refresh")
        assert "refresh: opened read-only" in person.screen
        assert "scheduler ○ off" in person.screen


def test_opening_what_is_no_workspace_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing) as raised:
        EngineBridge(tmp_path, False, {}, {})
    assert raised.value.hint
