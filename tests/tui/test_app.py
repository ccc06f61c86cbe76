"""The keyboard, end to end on a fake engine: what a person sees and what the engine is asked."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from textual import events
from textual.pilot import Pilot

from engine.errors import DependentsExist, RefreshFailed
from engine.records import SparkPhase, State
from tests.tui.conftest import Open
from tests.tui.fake import NOW, FakeBridge, empty_workspace, many_tables, shop
from trickle_tui.app import DashboardApp
from trickle_tui.screens.overview import OverviewPage
from trickle_tui.screens.stream_table import StreamTablePage
from trickle_tui.snapshot import (
    Drop,
    Maintain,
    Pause,
    Refresh,
    Reinitialize,
    Rename,
    Resume,
    RunSql,
    Verify,
)
from trickle_tui.strips import to_text
from trickle_tui.widgets.popups import Menu, Question, Reading


def app_of(pilot: Pilot[None]) -> DashboardApp:
    assert isinstance(pilot.app, DashboardApp)
    return pilot.app


def overview_of(pilot: Pilot[None]) -> OverviewPage:
    page = app_of(pilot).page
    assert isinstance(page, OverviewPage)
    return page


def screen(pilot: Pilot[None]) -> str:
    return to_text(pilot.app)


async def until(pilot: Pilot[None], what: object, seconds: float = 3.0) -> None:
    """Wait for something to come true, no longer than needed."""
    deadline = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < deadline, screen(pilot)
        await pilot.pause(0.01)


async def type_line(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*["space" if letter == " " else letter for letter in text], "enter")
    await pilot.pause()


# Moving and opening


async def test_the_cursor_moves_with_arrows_and_letters(open_app: Open) -> None:
    async with open_app() as pilot:
        grid = overview_of(pilot).grid
        assert grid.cursor == "fx_exposure"
        await pilot.press("down", "j", "j", "k")
        assert grid.cursor == "top_products"
        await pilot.press("G")
        assert grid.cursor == "audit_2019"
        await pilot.press("down")
        assert grid.cursor == "audit_2019"
        await pilot.press("g")
        assert grid.cursor == "fx_exposure"


async def test_the_side_panel_follows_the_cursor(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press(*["down"] * 5)
        await until(pilot, lambda: "p50 0.21s" in screen(pilot))
        text = screen(pilot)
        assert "╭─ revenue_by_region ─" in text
        assert "verified equal at 09:40:00" in text
        assert "rows changed" in text


async def test_the_cursor_stays_on_its_table_when_the_order_changes(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press(*["down"] * 4)
        grid = overview_of(pilot).grid
        assert grid.cursor == "customer_ltv"
        bridge.overview = replace(
            bridge.overview,
            tables=tuple(
                replace(table, state=State.FAILED, running=None) if table.name == "customer_ltv" else table
                for table in bridge.overview.tables
            ),
        )
        app_of(pilot).updates.wake()
        await until(pilot, lambda: "✖ 2 failed" in screen(pilot))
        assert grid.cursor == "customer_ltv"
        assert grid.cursor_line == 2


async def test_enter_opens_the_page_and_escape_leaves_it(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("down", "down", "down", "down", "enter")
        await until(pilot, lambda: "Overview › customer_ltv" in screen(pilot))
        assert isinstance(app_of(pilot).page, StreamTablePage)
        await until(pilot, lambda: "what each customer brought in" in screen(pilot))
        await pilot.press("escape")
        await pilot.pause()
        assert overview_of(pilot).grid.cursor == "customer_ltv"


async def test_the_tabs_show_query_plan_and_history(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("down", "down", "down", "down", "enter", "tab")
        await until(pilot, lambda: "SUM(o.amount) AS revenue," in screen(pilot))
        assert "KEPT BESIDE THEM" in screen(pilot)
        await pilot.press("tab")
        await until(pilot, lambda: "numbers of #1741" in screen(pilot))
        assert "└─ Join inner customer_id = customers" in screen(pilot)
        await pilot.press("left", "left")
        await until(pilot, lambda: "numbers of #1739" in screen(pilot))
        assert "2 newer →" in screen(pilot)
        await pilot.press("right")
        await until(pilot, lambda: "numbers of #1740" in screen(pilot))
        await pilot.press("tab")
        await until(pilot, lambda: "60 refreshes" in screen(pilot))
        await pilot.press("down", "down", "down", "enter")
        await until(pilot, lambda: "numbers of #1738" in screen(pilot))
        await pilot.press("shift+tab", "shift+tab")
        await until(pilot, lambda: "╭─ over time ─" in screen(pilot))


async def test_a_table_that_is_dropped_while_one_looks_says_so(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("enter")
        bridge.overview = replace(bridge.overview, tables=bridge.overview.tables[1:])
        app_of(pilot).updates.wake()
        await until(pilot, lambda: "fx_exposure is gone" in screen(pilot))


# Acting


async def test_a_refresh_is_asked_for_and_its_result_said(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "● fx_exposure: differential 0.80s, +12 −3" in screen(pilot))
        assert bridge.requests == [Refresh("fx_exposure")]


async def test_an_error_shows_with_its_hint_until_escape_or_the_next_action(open_app: Open) -> None:
    bridge = FakeBridge(fail_with=RefreshFailed("Spark lost an executor", hint="look into .trickle/logs"))
    async with open_app(bridge) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "✖ Spark lost an executor  look into .trickle/logs" in screen(pilot))
        assert "Traceback" not in screen(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "Spark lost" not in screen(pilot))


async def test_an_unexpected_fault_is_a_line_never_a_traceback(open_app: Open) -> None:
    bridge = FakeBridge()
    bridge.perform = lambda request: 1 // 0  # type: ignore[method-assign, assignment, return-value]
    async with open_app(bridge) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "✖ ZeroDivisionError" in screen(pilot))


async def test_what_cannot_be_done_says_why(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("down", "down", "down", "down", "r")
        assert "▲ refresh: a refresh is running" in screen(pilot)
        assert bridge.requests == []


async def test_read_only_refuses_what_writes(open_app: Open) -> None:
    bridge = FakeBridge(is_read_only=True)
    async with open_app(bridge) as pilot:
        await pilot.press("r", "p")
        assert "▲ pause: opened read-only" in screen(pilot)
        await pilot.press("colon")
        await type_line(pilot, "drop fx_exposure")
        assert "drop: opened read-only" in screen(pilot)
        assert bridge.requests == []


async def test_a_full_refresh_asks_with_cancel_first(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("R")
        assert isinstance(pilot.app.screen, Question)
        assert "recompute fx_exposure" in screen(pilot)
        await pilot.press("enter")
        assert bridge.requests == []
        await pilot.press("R", "right", "enter")
        await until(pilot, lambda: bridge.requests == [Refresh("fx_exposure", full=True)])


async def test_pause_turns_to_resume(open_app: Open) -> None:
    paused = replace(shop().tables[5], state=State.PAUSED)
    bridge = FakeBridge(overview=replace(shop(), tables=(paused, shop().tables[6])))
    async with open_app(bridge) as pilot:
        await pilot.press("g", "p")
        await until(pilot, lambda: bridge.requests == [Pause("orders_enriched")])
        await pilot.press("down", "p")
        await until(pilot, lambda: bridge.requests[1:] == [Resume("revenue_by_region")])


async def test_marked_ones_are_taken_together(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("space", "space", "down", "space")
        assert "3 marked · 16 of 16" in screen(pilot)
        await pilot.press("v")
        await until(pilot, lambda: len(bridge.requests) == 3)
        assert set(bridge.requests) == {Verify("fx_exposure"), Verify("payments_daily"), Verify("stock_live")}
        await pilot.press("escape")
        assert "marked" not in screen(pilot)


async def test_the_menu_has_all_actions_with_reasons(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("x")
        assert isinstance(pilot.app.screen, Menu)
        text = screen(pilot)
        assert "cancel refresh  no refresh is running" in text
        await pilot.press("v")
        await until(pilot, lambda: bridge.requests == [Verify("fx_exposure")])


async def test_dropping_names_the_tables_below_and_takes_them_along(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("colon")
        await type_line(pilot, "drop stock_live")
        assert "1 stream table below goes too: inventory_delta." in screen(pilot)
        await pilot.press("right", "enter")
        await until(pilot, lambda: bridge.requests == [Drop("stock_live", cascade=True)])


async def test_looking_after_a_stream_table(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        for typed in ("maintain stock_live", "rename income", "reinitialize stock_live"):
            await pilot.press("colon")
            await type_line(pilot, typed)
        assert "begin stock_live anew" in screen(pilot)
        assert len(bridge.requests) == 2
        await pilot.press("right", "enter")
        await until(pilot, lambda: len(bridge.requests) == 3)
        assert bridge.requests == [Maintain("stock_live"), Rename("fx_exposure", "income"), Reinitialize("stock_live")]


async def test_an_engine_that_refuses_says_so(open_app: Open) -> None:
    bridge = FakeBridge(fail_with=DependentsExist("customer_ltv is read by exec_summary", hint="drop with CASCADE"))
    async with open_app(bridge) as pilot:
        await pilot.press("colon")
        await type_line(pilot, "drop audit_2019")
        await pilot.press("right", "enter")
        await until(pilot, lambda: "✖ customer_ltv is read by exec_summary  drop with CASCADE" in screen(pilot))


async def test_copy_takes_the_command_line(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == "trickle refresh fx_exposure"
        await pilot.press("enter", "tab")
        await until(pilot, lambda: "SUM(o.amount)" in screen(pilot))
        await pilot.press("y")
        assert pilot.app.clipboard.startswith("SELECT o.customer_id")


# The line


async def test_the_filter_follows_each_key_and_escape_takes_it_back(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("slash", *"state:st")
        await until(pilot, lambda: "1 of 16 · by severity" in screen(pilot))
        await pilot.press("enter")
        assert overview_of(pilot).grid.cursor == "top_products"
        assert "stream tables · state:st" in screen(pilot)
        await pilot.press("slash", *"xyz", "escape")
        await until(pilot, lambda: "1 of 16" in screen(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "16 of 16" in screen(pilot))


async def test_a_wrong_filter_is_pointed_at(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("slash", *"stale:soon")
        await until(pilot, lambda: "wants a comparison such as >5m" in screen(pilot))


async def test_a_filter_that_keeps_nothing_says_how_to_leave(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("slash", *"zzz", "enter")
        await until(pilot, lambda: "no stream table passes the filter" in screen(pilot))
        assert "duration" not in screen(pilot), "the panel of a table that is not in sight"
        await pilot.press("escape")
        await until(pilot, lambda: "16 of 16" in screen(pilot))
        assert pilot.app.focused is overview_of(pilot).grid


async def test_commands_complete_and_run(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("colon", *"ref", "tab", *"custo", "tab", "enter")
        await until(pilot, lambda: bridge.requests == [Refresh("customer_ltv")])


async def test_a_misread_command_says_what_is_near(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("colon")
        await type_line(pilot, "refesh x")
        assert "▲ no command 'refesh'  did you mean refresh?" in screen(pilot)


async def test_sql_shows_its_rows(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await pilot.press("colon")
        await type_line(pilot, "sql select region, revenue from r")
        await until(pilot, lambda: isinstance(pilot.app.screen, Reading))
        await until(pilot, lambda: "9,120,533.10" in screen(pilot))
        assert bridge.requests == [RunSql("select region, revenue from r")]


async def test_open_and_theme_take_names(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("colon")
        await type_line(pilot, "theme day")
        assert app_of(pilot).palette.theme.name == "day"
        await pilot.press("T")
        assert app_of(pilot).palette.theme.name == "night"
        await pilot.press("colon")
        await type_line(pilot, "open top_products")
        await until(pilot, lambda: "Overview › top_products" in screen(pilot))


# The list


async def test_sorting_goes_round_and_turns(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("s")
        assert "by name ↓" in screen(pilot)
        await pilot.press("S", "g")
        assert "by name ↑" in screen(pilot)
        assert overview_of(pilot).grid.cursor == "top_products"


async def test_events_hide_and_come_back(open_app: Open) -> None:
    async with open_app() as pilot:
        assert "╭─ events ─" in screen(pilot)
        await pilot.press("E")
        assert "╭─ events ─" not in screen(pilot)
        await pilot.press("E")
        assert "╭─ events ─" in screen(pilot)


async def test_small_screens_have_one_event_line_and_all_of_them_on_demand(open_app: Open) -> None:
    async with open_app(size=(80, 24)) as pilot:
        assert "E all events" in screen(pilot)
        await pilot.press("E")
        assert "╭─ events ─" in screen(pilot)


async def test_help_lists_keys_and_leaves_with_escape(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.press("question_mark")
        assert "compare its rows with its query" in screen(pilot)
        await pilot.press("escape")
        assert len(pilot.app.screen_stack) == 1


async def test_the_mouse_selects_and_opens(open_app: Open) -> None:
    async with open_app() as pilot:
        await pilot.click("#table-grid", offset=(20, 6))
        assert overview_of(pilot).grid.cursor == "revenue_by_region"
        await pilot.click("#table-grid", offset=(20, 3), times=2)
        await until(pilot, lambda: "Overview › top_products" in screen(pilot))


async def test_a_thousand_tables_move_at_once(open_app: Open) -> None:
    async with open_app(FakeBridge(overview=many_tables(1000))) as pilot:
        await pilot.press("G")
        grid = overview_of(pilot).grid
        assert "1,000 of 1,000" in screen(pilot)
        assert grid.cursor in screen(pilot)
        await pilot.press("pageup", "up")
        assert grid.cursor is not None
        assert grid.cursor in screen(pilot)


# Time and quitting


async def test_pictures_come_without_keys_and_the_clock_goes_on(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        bridge.clock = lambda: NOW.replace(second=59)
        await until(pilot, lambda: "12:04:59" in screen(pilot))
        assert "40s/30s" in screen(pilot)


async def test_the_engine_starts_behind_the_first_picture(open_app: Open) -> None:
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        await until(pilot, lambda: bridge.started)


async def test_quitting_waits_for_nothing(open_app: Open) -> None:
    """Neither for a request that hangs nor for Spark that starts."""
    gate = threading.Event()
    bridge = FakeBridge(block=gate, overview=replace(shop(), spark=empty_workspace().spark))
    try:
        async with open_app(bridge) as pilot:
            await pilot.press("r")
            await until(pilot, lambda: bool(bridge.requests))
            begun = time.monotonic()
            await pilot.press("q")
        assert time.monotonic() - begun < 1.0
    finally:
        gate.set()


# Empty, starting, failed


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_an_empty_workspace_says_what_to_do(open_app: Open, size: tuple[int, int]) -> None:
    async with open_app(FakeBridge(overview=empty_workspace()), size) as pilot:
        text = screen(pilot)
        assert "no stream tables yet" in text
        assert "trickle source add orders --path" in text
        assert "trickle demo" in text
        assert "spark ◐ starting" in text
        await pilot.press("enter")
        assert "no stream table is selected" in screen(pilot)


async def test_spark_that_failed_says_why_and_what_helps(open_app: Open) -> None:
    overview = replace(shop(), spark=empty_workspace(SparkPhase.FAILED, "no Java 17 or newer was found").spark)
    async with open_app(FakeBridge(overview=overview)) as pilot:
        text = screen(pilot)
        assert "spark ✖ failed" in text
        assert "no Java 17 or newer was found" in text
        await pilot.press("r")
        assert "▲ refresh: Spark did not start" in screen(pilot)


async def test_keys_that_come_all_at_once_land_where_they_belong(open_app: Open) -> None:
    """Over a slow line a whole command arrives in one packet: no letter of it may act as a key of its own."""
    bridge = FakeBridge()
    async with open_app(bridge) as pilot:
        names = {":": "colon", " ": "space", "_": "underscore"}
        for letter in ":verify lines_clean":
            pilot.app.post_message(events.Key(names.get(letter, letter), letter))
        pilot.app.post_message(events.Key("enter", None))
        await until(pilot, lambda: bridge.requests == [Verify("lines_clean")])
        for key in ("j", "j", "enter"):
            pilot.app.post_message(events.Key(key, None))
        await until(pilot, lambda: "Overview › top_products" in screen(pilot))
