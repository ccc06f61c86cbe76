"""Large queries: what stands in a row is not nested, and what is too much ends in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from engine.compile.lower import correlation
from engine.compile.parse import Limits
from engine.compile.pipeline import Request, compile_query
from engine.errors import Position, QueryParseError, QueryTooComplex
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer

RELATIONS = {"t": (Column("a", "int"), Column("s", "string"))}


def compiled(query: str):  # type: ignore[no-untyped-def]
    return compile_query(Request(query, RELATIONS), DuckAnalyzer(RELATIONS))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t WHERE " + " OR ".join(f"a = {n}" for n in range(300)),
        "SELECT " + " || ".join(["s"] * 300) + " AS x FROM t",
        " UNION ALL ".join(f"SELECT a + {n} AS a FROM t" for n in range(100)),
        "SELECT a FROM t WHERE a IN (" + ", ".join(map(str, range(1_000))) + ")",
    ],
    ids=["or", "concat", "union", "in"],
)
def test_a_long_row_is_not_nested(query: str) -> None:
    assert compiled(query).kept is not None


def test_a_longer_one_is_recomputed_and_says_why() -> None:
    plan = compiled(" UNION ALL ".join(f"SELECT a + {n} AS a FROM t" for n in range(300)))
    assert plan.kept is None
    assert plan.full_reason is not None
    assert "a row of operators as long as" in plan.full_reason.text


def test_the_longest_is_refused() -> None:
    with pytest.raises(QueryTooComplex) as caught:
        compiled(" UNION ALL ".join(f"SELECT a + {n} AS a FROM t" for n in range(3_000)))
    assert caught.value.hint


def test_what_is_nested_is_refused() -> None:
    with pytest.raises(QueryTooComplex, match="nested more than 64 levels") as caught:
        compiled("SELECT a FROM " + "(SELECT a FROM " * 70 + "t" + ") AS q" * 70)
    assert caught.value.position is not None


def test_many_grouping_sets_are_recomputed_unless_more_are_allowed() -> None:
    query = "SELECT a, s, count(*) AS n FROM t GROUP BY CUBE (a, s, a + 1, a + 2)"
    limits = Limits(max_grouping_sets=15)
    reason = compile_query(Request(query, RELATIONS, limits), DuckAnalyzer(RELATIONS)).full_reason
    assert reason is not None
    assert "16 grouping sets are more than 15" in reason.text
    assert reason.position == Position(1, 44)
    assert compiled(query).kept is not None


def test_a_template_is_told_from_sql() -> None:
    with pytest.raises(QueryParseError, match="belongs to a template") as caught:
        compiled("SELECT a\nFROM {{ ref('t') }}")
    assert caught.value.position == Position(2, 6)


def test_a_subquery_in_a_subquery_is_looked_at_as_often_as_it_is_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each speaks of is found out first. For each level anew it was twice the work with each level."""
    looked = []
    look = correlation._with_every_column

    def noting(*asked: Any) -> Any:
        looked.append(asked)
        return look(*asked)

    monkeypatch.setattr(correlation, "_with_every_column", noting)
    query = "SELECT 1 FROM t AS t10 WHERE t10.a = t9.a"
    for level in range(9, 0, -1):
        query = f"SELECT 1 FROM t AS t{level} WHERE t{level}.a = t{level - 1}.a AND EXISTS ({query})"
    assert compiled(f"SELECT a FROM t AS t0 WHERE EXISTS ({query})").kept is not None
    assert len(looked) == sum(range(1, 11))
