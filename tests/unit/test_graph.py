"""Who stands on what, and who follows a source at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.catalog.records import Progress
from engine.records import RefreshMode, State, StreamTable
from engine.refresh import graph
from engine.refresh.status import status_of
from engine.schedule.due import Candidate, follows_at_once, ready

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def table(name: str, *sources: str, mode: RefreshMode = RefreshMode.IMMEDIATE) -> StreamTable:
    return StreamTable(name, name, "", mode, "30s", 30.0, f"/{name}", "", NOW, sources, (), "")


DIAMOND = (table("Top", "left", "RIGHT"), table("left", "orders"), table("right", "Orders", "rates"), table("x", "y"))


def names(tables: tuple[StreamTable, ...]) -> list[str]:
    return [each.name for each in tables]


def test_each_comes_behind_what_it_reads() -> None:
    assert names(graph.upstream_first(DIAMOND)) == ["left", "right", "Top", "x"]
    assert names(graph.standing_on(DIAMOND, "ORDERS")) == ["left", "right", "Top"]
    assert names(graph.standing_on(DIAMOND, "rates")) == ["right", "Top"]
    assert names(graph.standing_on(DIAMOND, "nobody")) == []
    assert graph.below(DIAMOND, DIAMOND[0]) == {"left", "right", "orders", "rates"}


def test_who_is_immediate_goes_first() -> None:
    slow = table("a", "orders", mode=RefreshMode.AUTO)
    candidates = [Candidate(each, due=True, busy=False) for each in (slow, table("b", "orders"))]
    assert names(ready(candidates)) == ["b", "a"]


@pytest.mark.parametrize(
    ("mode", "errors", "expected"),
    [(RefreshMode.IMMEDIATE, 0, True), (RefreshMode.IMMEDIATE, 1, False), (RefreshMode.AUTO, 0, False)],
)
def test_after_a_failure_everybody_waits(mode: RefreshMode, errors: int, expected: bool) -> None:
    assert follows_at_once(table("a", mode=mode), Progress("a", consecutive_errors=errors)) is expected


def test_what_fails_while_immediate_is_late() -> None:
    failed = Progress("a", populated=True, data_as_of_at=NOW, consecutive_errors=1)

    def state(mode: RefreshMode, progress: Progress) -> State:
        return status_of(table("a", "orders", mode=mode), progress, (), None, (), NOW).state

    assert state(RefreshMode.IMMEDIATE, failed) is State.LATE
    assert state(RefreshMode.DIFFERENTIAL, failed) is State.FAILED
    assert state(RefreshMode.IMMEDIATE, replace(failed, consecutive_errors=0)) is State.FRESH
    assert state(RefreshMode.IMMEDIATE, replace(failed, suspended_at=NOW)) is State.SUSPENDED
    fresh = replace(failed, consecutive_errors=0)
    assert status_of(table("a", "orders"), fresh, (), None, (), NOW).effective_mode == "immediate"
