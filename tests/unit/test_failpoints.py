"""Failpoints: off unless armed, counted, and said what they are when somebody writes nonsense."""

from __future__ import annotations

import time

import pytest

from engine.errors import CommitConflict, InvalidArgument
from engine.failpoints import (
    SLEEP_S,
    Action,
    Arming,
    Failpoint,
    Failpoints,
    SimulatedCrash,
    parse,
)


def test_nothing_is_armed_by_itself() -> None:
    points = Failpoints()
    points.reach(Failpoint.COMPUTED)
    with points.around(Failpoint.COMMIT):
        pass
    assert points.passed == {}


def test_the_nth_time_it_is_passed() -> None:
    points = Failpoints()
    with points.armed(Arming(Failpoint.COMPUTED, Action.RAISE, at=2)):
        points.reach(Failpoint.COMPUTED)
        with pytest.raises(CommitConflict, match="computed"):
            points.reach(Failpoint.COMPUTED)
        points.reach(Failpoint.COMPUTED)
        assert points.passed == {Failpoint.COMPUTED: 3}
    points.reach(Failpoint.COMPUTED)
    assert points.passed == {Failpoint.COMPUTED: 3}


def test_the_nth_time_that_anything_is_passed() -> None:
    points = Failpoints()
    with points.armed(Arming(None, Action.CRASH, at=2)):
        points.reach(Failpoint.TARGET_READ)
        with pytest.raises(SimulatedCrash):
            points.reach(Failpoint.COMPUTED)


def test_around_a_step_it_fails_before_or_after() -> None:
    done = []
    points = Failpoints()
    for action, expected in ((Action.RAISE, []), (Action.AMBIGUOUS, ["it"])):
        done.clear()
        armed, around = points.armed(Arming(Failpoint.COMMIT, action)), points.around(Failpoint.COMMIT)
        with armed, pytest.raises(CommitConflict), around:
            done.append("it")
        assert done == expected


def test_a_process_is_armed_by_its_environment() -> None:
    points = Failpoints()
    points.arm_from({})
    points.reach(Failpoint.COMMITTED)
    points.arm_from({"TRICKLE_FAILPOINTS": "committed=sleep, commit = raise@3"})
    began = time.monotonic()
    points.reach(Failpoint.COMMITTED)
    assert time.monotonic() - began >= SLEEP_S


@pytest.mark.parametrize("text", ["commit", "nowhere=kill", "commit=explode", "commit=kill@soon"])
def test_nonsense_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(text)
    assert "target read" in (caught.value.detail or "")
