"""One registry: each action can be done, each key means one thing, each refusal has a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.records import SparkPhase, State
from tests.tui.fake import shop
from trickle_tui import actions
from trickle_tui.actions import ACTIONS, Context
from trickle_tui.handlers import Handlers
from trickle_tui.paint import plain
from trickle_tui.screens.overview import OverviewPage
from trickle_tui.screens.stream_table import TABS, StreamTablePage
from trickle_tui.views import keys

PAGES = {actions.OVERVIEW: OverviewPage, actions.TABLE: StreamTablePage}
FRESH = next(table for table in shop().tables if table.state is State.FRESH)
RUNNING = next(table for table in shop().tables if table.running)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_somebody_does_it_on_each_of_its_screens(action: actions.Action) -> None:
    for screen in action.screens:
        assert any(callable(getattr(owner, f"do_{action.id}", None)) for owner in (PAGES[screen], Handlers))


@pytest.mark.parametrize("screen", PAGES)
@pytest.mark.parametrize("tab", ["", *TABS])
def test_a_key_means_one_thing(screen: str, tab: str) -> None:
    pressed = [key for action in actions.for_context(Context(screen, tab=tab)) for key in action.keys]
    assert len(pressed) == len(set(pressed))


def test_names_of_commands_are_unique() -> None:
    named = [action.command for action in ACTIONS if action.command]
    assert len(named) == len(set(named))
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


@pytest.mark.parametrize(
    ("name", "context", "reason"),
    [
        ("refresh", Context(actions.OVERVIEW, FRESH), None),
        ("refresh", Context(actions.OVERVIEW), "no stream table is selected"),
        ("refresh", Context(actions.OVERVIEW, RUNNING), "a refresh is running"),
        ("refresh", Context(actions.OVERVIEW, FRESH, read_only=True), "opened read-only"),
        ("refresh", Context(actions.OVERVIEW, FRESH, spark=SparkPhase.FAILED), "Spark did not start"),
        ("refresh", Context(actions.OVERVIEW, FRESH, spark=SparkPhase.STARTING), None),
        ("refresh", Context(actions.OVERVIEW, FRESH, spark=SparkPhase.LOST), None),
        ("cancel", Context(actions.OVERVIEW, FRESH), "no refresh is running"),
        ("cancel", Context(actions.OVERVIEW, RUNNING), None),
        ("verify", Context(actions.OVERVIEW, replace(FRESH, state=State.UNPOPULATED)), "it has no rows yet"),
        ("verify", Context(actions.OVERVIEW, FRESH, read_only=True), None),
        ("drop", Context(actions.OVERVIEW, FRESH, read_only=True), "opened read-only"),
        ("pause", Context(actions.OVERVIEW, None, marked=3), None),
    ],
)
def test_what_cannot_be_done_says_why(name: str, context: Context, reason: str | None) -> None:
    assert actions.BY_ID[name].blocked(context) == reason


def test_the_menu_keeps_what_is_impossible_and_says_why() -> None:
    entries = dict(actions.for_menu(Context(actions.OVERVIEW, RUNNING)))
    assert entries[actions.BY_ID["refresh"]] == "a refresh is running"
    assert entries[actions.BY_ID["cancel"]] is None


def test_pause_reads_resume_where_it_is_paused() -> None:
    paused = Context(actions.OVERVIEW, replace(FRESH, state=State.PAUSED))
    assert actions.BY_ID["pause"].label_for(paused) == "resume"
    assert "p resume" in plain(keys.footer(paused, 140))


def test_the_footer_keeps_its_most_used_keys_when_narrow() -> None:
    narrow = plain(keys.footer(Context(actions.OVERVIEW, FRESH), 80))
    assert len(narrow) == 80
    assert narrow.startswith(" enter open  r refresh  p pause  x actions  / filter  : cmd")
    assert narrow.rstrip().endswith("?")


def test_help_tells_every_key_and_every_sign() -> None:
    text = "\n".join(plain(each) for each in keys.help_lines(Context(actions.OVERVIEW, FRESH), 94))
    for action in actions.for_context(Context(actions.OVERVIEW)):
        assert action.help in text
    for state in State:
        assert state.value in text
