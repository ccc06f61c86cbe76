"""A few hundred random views in every run; `python -m tests.properties.fuzz` runs as many as there is time for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from engine.compile.differentiate import join
from engine.errors import TrickleError
from tests.properties import fuzz
from tests.properties.case import smaller
from tests.properties.generator import Generator

CASES = 300
BATCH = 50


@pytest.fixture(scope="module")
def ways() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_views_are_what_recompute_gives(first: int, ways: Counter[str]) -> None:
    for seed in range(first, first + BATCH):
        ways[fuzz.check(seed)] += 1


def test_the_cases_reach_every_way_and_are_rarely_refused(ways: Counter[str]) -> None:
    if not ways:
        pytest.skip("runs after the cases")
    total = sum(ways.values())
    assert ways["refused"] <= total * 0.15
    for way in ("by row", "by group, stored sums", "by group, recomputed"):
        assert ways[way] >= total * 0.05


def test_the_same_seed_gives_the_same_case() -> None:
    assert Generator(7).case() == Generator(7).case()
    assert Generator(7).case() != Generator(8).case()


def test_a_wrong_rule_is_found_and_its_case_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both inputs of a join at their new versions: a pair whose sides change together is then counted wrongly."""
    monkeypatch.setattr(join, "at_frontier", lambda node: node)
    for seed in range(300):
        case = Generator(seed).case()
        try:
            fuzz.run(case)
        except AssertionError as error:
            cut = fuzz.shrink(fuzz.Failure(seed, case, error), optimized=True)
            assert len(cut.case.steps) == 1
            assert len(cut.case.query.sql()) <= len(case.query.sql())
            assert "view\nSELECT" in str(cut)
            return
        except TrickleError:
            continue
    pytest.fail("300 cases did not notice a wrong rule")


def test_smaller_cuts_one_thing_at_a_time() -> None:
    case = Generator(3).case()
    cuts = list(smaller(case))
    assert replace(case, steps=case.steps[1:]) in cuts
    assert all(cut != case for cut in cuts)
