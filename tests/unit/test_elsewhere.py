"""What other databases have and Spark has not, with the way out."""

from __future__ import annotations

import pytest

from engine.compile.elsewhere import UNREAD, way_out
from engine.compile.pipeline import Request, compile_query
from engine.errors import QueryParseError
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer

TABLES = {"t": (Column("k", "int"), Column("v", "int"))}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT k FROM t WHERE v > ANY (SELECT w FROM u)", "EXISTS"),
        ("SELECT k FROM t WHERE v <> all(with c AS (SELECT 1) SELECT * FROM c)", "NOT IN"),
        ("SELECT k FROM t WHERE v = SOME (VALUES (1), (2))", "IN"),
        ("SELECT k FROM t ORDER BY k FETCH FIRST 3 ROWS ONLY", "LIMIT"),
        ("SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v", "row_number()"),
        ("SELECT TOP 3 k FROM t ORDER BY k", "LIMIT"),
    ],
)
def test_what_spark_has_not(query: str, words: str) -> None:
    hint = way_out(query)
    assert hint is not None
    assert words in hint
    assert "dialect = 'postgres'" in hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT any((k > 1)), all, some FROM t",
        "SELECT 'v = ANY (SELECT 1)' AS text, 'FETCH' FROM t",
        "SELECT DISTINCT k FROM t JOIN u ON (t.k = u.k)",
        "SELECT top FROM t",
        "SELECT k FROM t UNION ALL (SELECT v FROM t)",
    ],
)
def test_what_spark_has(query: str) -> None:
    assert way_out(query) is None


class NoParser(DuckAnalyzer):
    """Takes no text, as Spark's parser does not take some that sqlglot reads."""

    def describe(self, sql: str) -> tuple[Column, ...]:
        refused = QueryParseError("This is not SQL.")
        refused.by_parser = True
        raise refused


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT k FROM t WHERE v = ANY (SELECT k FROM t)", "Spark has no ANY"),
        ("SELECT TOP 3 k FROM t ORDER BY k", "Spark has no TOP"),  # which sqlglot does not read either
        ("SELECT k FROM t FOR UPDATE", UNREAD),
    ],
)
def test_an_error_tells_it(query: str, hint: str) -> None:
    with pytest.raises(QueryParseError) as caught:
        compile_query(Request(query, TABLES), NoParser(TABLES))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(hint)
