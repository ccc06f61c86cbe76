"""What passes by itself is tried again, at once or later; what does not is left alone before long, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from engine.catalog.records import Progress
from engine.errors import CommitConflict, OutOfMemory, RefreshFailed, SparkUnavailable, TrickleError
from engine.event_records import EventKind
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint
from engine.records import Column, Outcome, State
from engine.refresh.status import status_of
from engine.schedule.due import is_held, wait_s
from tests.faults.life import world_of
from tests.faults.simulation import FIRST, Setup, World
from tests.support.duck_compute import DuckCompute

SETUP = Setup(
    "retry",
    {"t": (Column("k", "int"), Column("v", "int"))},
    {"t": ((1, 10), (2, 20))},
    "SELECT k, SUM(v) AS v FROM t GROUP BY k",
    ("INSERT INTO t VALUES (1, 1)",),
)


@pytest.fixture
def world() -> Iterator[World]:
    with world_of(replace(SETUP, retries=2)) as made:
        made.create()
        made.change_sources(SETUP.steps[0])
        yield made


def progress_of(world: World) -> Progress:
    return world.process.catalog.get_progress(world.table(FIRST).id)


def events(world: World, kind: EventKind) -> list[str]:
    return [event.text for event in world.process.catalog.events() if event.kind is kind]


def failing(world: World, monkeypatch: pytest.MonkeyPatch, error: TrickleError) -> list[int]:
    tried: list[int] = []

    def attempt(*_: object, **__: object) -> None:
        tried.append(1)
        raise error

    monkeypatch.setattr(world.process.refresher, "_attempt", attempt)
    return tried


@pytest.mark.parametrize(("times", "tries"), [(1, 2), (2, 2)])
def test_what_found_no_memory_is_tried_once_more(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, tries: int
) -> None:
    """Frugally; and after that no more, since it would find no more."""
    refresher, frugal = world.process.refresher, list[bool]()
    really, inside = refresher._attempt, [False]

    @contextmanager
    def frugally(_: DuckCompute) -> Iterator[None]:
        inside[0] = True
        yield
        inside[0] = False

    def attempt(*given: Any, **more: Any) -> Any:
        frugal.append(inside[0])
        if len(frugal) <= times:
            raise OutOfMemory("The heap is full.")
        return really(*given, **more)

    monkeypatch.setattr(DuckCompute, "frugally", frugally)
    monkeypatch.setattr(refresher, "_attempt", attempt)
    if times < tries:
        assert world.refresh()[0].outcome is Outcome.DIFFERENTIAL
    else:
        with pytest.raises(OutOfMemory, match="not enough memory to refresh") as caught:
            world.refresh()
        assert "little else runs" in (caught.value.hint or "")
        assert progress_of(world).error_code == "OutOfMemory"
    assert frugal == [False, True]


@pytest.mark.parametrize(
    ("point", "action"),
    [
        (Failpoint.TARGET_READ, Action.RAISE),
        (Failpoint.CHANGES_READ, Action.RAISE),
        (Failpoint.COMPUTED, Action.RAISE),
        (Failpoint.COMMIT, Action.RAISE),
        (Failpoint.COMMIT, Action.AMBIGUOUS),
    ],
)
def test_a_conflict_begins_anew(world: World, point: Failpoint, action: Action) -> None:
    with FAILPOINTS.armed(Arming(point, action)):
        (record,) = world.refresh()
    # a commit that happened and was not answered is found by the second look
    assert record.outcome is (Outcome.NO_DATA if action is Action.AMBIGUOUS else Outcome.DIFFERENTIAL)
    assert progress_of(world).consecutive_errors == 0
    world.check("after a conflict")


def test_it_does_not_begin_anew_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(world, monkeypatch, CommitConflict("somebody is always faster"))
    for number in range(1, 6):
        with pytest.raises(CommitConflict):
            world.refresh()
        assert len(tried) == 3 * number
    now = progress_of(world)
    assert (now.consecutive_errors, now.suspended_at) == (5, None)
    assert not is_held(now)


def test_spark_that_is_gone_suspends_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(world, monkeypatch, SparkUnavailable("it is gone"))
    for _ in range(4):
        with pytest.raises(SparkUnavailable):
            world.refresh()
    assert len(tried) == 4
    assert progress_of(world).suspended_at is None


def test_what_fails_for_good_is_suspended_until_it_works(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(world, monkeypatch, RefreshFailed("1 / 0", hint="use try_divide"))
    for _ in range(4):
        with pytest.raises(RefreshFailed):
            world.refresh()
    now = progress_of(world)
    assert now.suspended_at is not None
    assert is_held(now)
    table = world.table(FIRST)
    assert status_of(table, now, (), None, (), world.clock.now()).state is State.SUSPENDED
    (told,) = events(world, EventKind.AUTO_SUSPENDED)
    assert "after 3 failures in a row: 1 / 0" in told
    assert "use try_divide" in told
    assert f"trickle resume {FIRST}" in told

    monkeypatch.undo()
    (record,) = world.refresh()
    assert record.outcome is Outcome.DIFFERENTIAL
    assert progress_of(world).suspended_at is None
    assert len(events(world, EventKind.RESUMED)) == 1


def test_those_that_failed_together_do_not_come_back_together(world: World) -> None:
    table = world.table(FIRST)
    assert wait_s(table, Progress("x")) == table.interval_s == 10
    failed = Progress("x", consecutive_errors=2)
    assert [wait_s(table, failed, chance) for chance in (0.0, 0.5, 1.0)] == [30, 40, 50]
    assert wait_s(table, replace(failed, consecutive_errors=50)) == 300
