"""Every way to fail, at every point of a refresh, over every view: the promise holds and the next refresh mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.life import dies_at_any_moment, live, of_test
from tests.faults.troubles import Tally, all_faults, in_turn
from tests.support.view_test import read_view_test

VIEWS = Path(__file__).parents[1] / "views"
FILES = [path for path in sorted(VIEWS.rglob("*.test")) if path.parent.name != "refused"]
#: each view suffers so many, and all views together suffer each of them many times
A_VIEW = 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_view_survives(path: Path) -> None:
    number = FILES.index(path)
    setup = of_test(read_view_test(path), by_spark=number % 4 > 1, chained=number % 3 == 0)
    tally = Tally()
    live(setup, in_turn(all_faults(), A_VIEW * number, A_VIEW), tally, seed=number)
    assert tally.steps > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_view_survives_a_death_at_any_moment(path: Path) -> None:
    number = FILES.index(path)
    tally = Tally()
    dies_at_any_moment(of_test(read_view_test(path), by_spark=number % 4 < 2, chained=number % 3 == 1), tally)
    assert tally.steps > 0
