"""Where a change takes away what is not stored, the refresh is refused, whatever the view is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.contradictions import TRUSTING, contradict
from tests.support.view_test import read_view_test

HERE = Path(__file__).parent
VIEWS = [path for path in sorted(HERE.rglob("*.test")) if read_view_test(path).kept in TRUSTING]


@pytest.fixture(scope="module")
def steps_shown() -> list[int]:
    return []


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_row_that_is_not_there_cannot_go(path: Path, steps_shown: list[int]) -> None:
    steps_shown.append(contradict(read_view_test(path)))


def test_most_views_have_rows_that_go(steps_shown: list[int]) -> None:
    if not steps_shown:
        pytest.skip("runs after the views")
    assert sum(shown > 0 for shown in steps_shown) > len(steps_shown) * 0.5
