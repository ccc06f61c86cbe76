"""A refusal names its place, and the part of the user's text that it is about."""

from __future__ import annotations

import pytest

from engine.compile.pipeline import Request, compile_query
from engine.errors import Position, QueryError, QueryParseError
from engine.records import Column, Reason
from tests.support.duck_analyzer import DuckAnalyzer

TABLES = {
    "t": (Column("id", "int"), Column("k", "int"), Column("v", "decimal(8,2)"), Column("d", "double")),
    "u": (Column("id", "int"), Column("k", "int")),
}
SUMS = "(SELECT k, sum(d) AS s FROM t GROUP BY k)"


@pytest.mark.parametrize(
    ("query", "place", "fragment"),
    [
        # a floating-point aggregate that decides
        ("SELECT k FROM t GROUP BY k HAVING sum(d) > 1", (1, 35), "sum(d) > 1"),
        ("SELECT k FROM t GROUP BY k\nHAVING k > 2\n  AND 1 < sum(d) + k", (2, 8), "k > 2 AND 1 < sum(d) + k"),
        (f"SELECT s, count(*) AS n FROM {SUMS} GROUP BY s", (1, 81), "s"),
        ("SELECT DISTINCT sum(d) AS s FROM t GROUP BY k", (1, 17), "sum(d)"),
        (f"SELECT a.k FROM {SUMS} a JOIN u ON a.s = u.k", (1, 71), "a.s = u.k"),
        ("SELECT k, sum(d) AS s FROM t GROUP BY k ORDER BY s LIMIT 3", (1, 11), "sum(d)"),
        ("SELECT k, rank() OVER (PARTITION BY sum(d) ORDER BY k) AS s FROM t GROUP BY k", (1, 37), "sum(d)"),
        # what has no place in the algebra
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", (1, 15), "t TABLESAMPLE (10 PERCENT)"),
        ("SELECT k, foo(v, bar(')')) AS x FROM t", (1, 11), "foo(v, bar(')'))"),
        ("SELECT k FROM t ORDER BY k LIMIT 1 + 1", (1, 28), "LIMIT 1 + 1"),
        ("SELECT id, k + rand(1) AS x FROM t", (1, 16), "rand(1)"),
    ],
)
def test_a_refusal_names_its_place_and_its_part(query: str, place: tuple[int, int], fragment: str) -> None:
    found = refusal(query)
    assert (found.position, found.fragment) == (Position(*place), fragment)


def refusal(query: str) -> Reason | QueryError:
    try:
        plan = compile_query(Request(query, TABLES), DuckAnalyzer(TABLES))
    except QueryError as error:
        return error
    assert plan.full_reason is not None
    return plan.full_reason


class ClumsyAnalyzer(DuckAnalyzer):
    """Does not understand the compiler's own words for one function."""

    def describe(self, sql: str) -> tuple[Column, ...]:
        if "MIN(`" in sql:
            raise QueryParseError("Spark does not accept this query.")
        return super().describe(sql)


def test_what_nobody_can_place_is_in_the_innermost_query() -> None:
    query = "SELECT u.id, x.least FROM u JOIN (SELECT k, any_value(v) AS least FROM t GROUP BY k) AS x ON x.k = u.k"
    reason = compile_query(Request(query, TABLES), ClumsyAnalyzer(TABLES)).full_reason
    assert reason is not None
    assert reason.text.startswith("a part of this query is not understood")
    assert reason.position == Position(1, 34)
    assert reason.fragment is not None
    assert reason.fragment.startswith("(SELECT k, any_value(v)")
