"""Each query of TPC-H and TPC-DS is refused as its line in expected.txt says, or holds through cycles of changes."""

from __future__ import annotations

import pytest

from tests.tpc import expected
from tests.tpc.__main__ import CYCLES
from tests.tpc.run import judge, live
from tests.tpc.suite import SUITES

QUERIES = [(name, number) for name, suite in SUITES.items() for number in suite.numbers]


@pytest.mark.parametrize(("name", "number"), QUERIES, ids=[f"{name}-q{number:02}" for name, number in QUERIES])
def test_query(name: str, number: int) -> None:
    suite = SUITES[name]
    verdict = judge(suite, number)
    assert verdict.text == expected.read(suite)[number]
    if verdict.plan is not None:
        live(suite, verdict.plan, CYCLES[name])


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_query_has_a_line(suite) -> None:
    assert tuple(expected.read(suite)) == suite.numbers
