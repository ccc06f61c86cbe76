"""How long the compiler takes, without what Spark is asked meanwhile."""

from __future__ import annotations

from statistics import median

import pytest

from engine.compile.pipeline import Request, compile_query
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer
from tests.tpc.suite import TPCH

MEDIAN_MS = 50
THIRTY_JOINS_MS = 2_000
JOINS = ("JOIN", "LEFT JOIN", "FULL JOIN")


def planning_ms(query: str, relations: dict[str, tuple[Column, ...]]) -> float:
    """The best of three: everything that disturbs it makes it longer."""
    request = Request(query, relations)
    return min(compile_query(request, DuckAnalyzer(relations)).planning_ms for _ in range(3))


def chain(joins: int, kind: str) -> float:
    """Each table joined to the one before, and a column of each put out."""
    relations = {f"t{n}": (Column("k", "int"), Column("v", "int")) for n in range(joins + 1)}
    outputs = ", ".join(f"t{n}.v AS v{n}" for n in range(joins + 1))
    joined = " ".join(f"{kind} t{n} ON t{n}.k = t{n - 1}.k" for n in range(1, joins + 1))
    return planning_ms(f"SELECT {outputs} FROM t0 {joined}", relations)


def test_a_query_of_tpc_h_is_planned_in_no_time() -> None:
    relations = TPCH.relations
    assert median(planning_ms(TPCH.query(number), relations) for number in TPCH.numbers) <= MEDIAN_MS


@pytest.mark.parametrize("kind", JOINS)
def test_thirty_joins_are_planned_soon(kind: str) -> None:
    assert chain(30, kind) < THIRTY_JOINS_MS


@pytest.mark.parametrize("kind", JOINS)
def test_time_grows_with_the_square_of_joins_at_most(kind: str) -> None:
    assert chain(20, kind) < 4 * 1.5 * chain(10, kind)
