"""Every way to fail, at every point of a refresh, over every view: the promise holds and the next refresh mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.failpoints import Action, Failpoint
from tests.faults.life import ACTIONS, fails_at_any_moment, live, of_test
from tests.faults.simulated import FILES
from tests.faults.troubles import Tally, all_faults, in_turn
from tests.support.view_test import read_view_test

#: each view suffers so many, and all views together suffer each of them many times
A_VIEW = 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_view_survives(path: Path) -> None:
    number = FILES.index(path)
    ways = {"by_spark": number % 4 > 1, "chained": number % 3 == 0, "recomputed": number % 7 == 0}
    ways |= {"by_files": number % 5 == 2, "polled": number % 4 == 3}
    setup = of_test(read_view_test(path), **ways, retries=2 * (number % 6 == 5))
    tally = Tally()
    live(setup, in_turn(all_faults(), A_VIEW * number, A_VIEW), tally, seed=number)
    assert tally.steps > 0


@pytest.mark.parametrize("path", FILES[::2], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_view_survives_a_failure_at_any_moment(path: Path) -> None:
    """One way to fail in one step of every second view; `python -m tests.faults simulated` has all of all."""
    number = FILES.index(path)
    ways = {
        "by_spark": number % 4 < 2,
        "chained": number % 12 == 1,
        "recomputed": number % 5 == 0,
        "by_files": number % 3 == 1,
    }
    setup = of_test(read_view_test(path), **ways)
    action, tally = ACTIONS[number % len(ACTIONS)], Tally()
    fails_at_any_moment(setup, tally, [action], {number % len(setup.steps)})
    # a change that comes to nothing has no commit, of which no answer can be lost
    assert tally.steps > 0 or (action is Action.AMBIGUOUS and tally.passed and not tally.passed[Failpoint.COMMIT])
