"""Queries in the SQL of other databases: what Spark is given for them, and what is refused, with place and reason.

`*.txt` hold a query a line; what each becomes stands in `*.golden`, written by `pytest --update-golden`. That DuckDB
and Spark give the same rows for the same query is tested in tests/spark/test_dialects.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.compile.parse import parse
from engine.compile.translate import dialect_of, in_spark
from engine.errors import InvalidArgument, Position, QueryParseError, UnsupportedOperator
from engine.records import Column, Notice, Reason, ReasonCode, SqlDialect

HERE = Path(__file__).parent
TABLES = {
    "t": (
        Column("id", "int"),
        Column("a", "int"),
        Column("b", "bigint"),
        Column("x", "decimal(8,2)"),
        Column("f", "double"),
        Column("s", "string"),
        Column("d", "date"),
        Column("e", "date"),
        Column("ts", "timestamp_ntz"),
        Column("l", "array<int>"),
    ),
    "u": (Column("k", "int"), Column("w", "string")),
}


def queries(dialect: str) -> list[str]:
    return (HERE / f"{dialect}.txt").read_text(encoding="utf-8").splitlines()


def spark_text(query: str, dialect: str) -> str:
    return " ".join(in_spark(query, dialect, TABLES).text.split())


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake"])
def test_what_spark_is_given(dialect: str) -> None:
    made = "\n\n".join(f"{query}\n{spark_text(query, dialect)}" for query in queries(dialect)) + "\n"
    golden = HERE / f"{dialect}.golden"
    if os.environ.get("TRICKLE_UPDATE_GOLDEN"):
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")
    for query in queries(dialect):
        parse(in_spark(query, dialect, TABLES).text)  # what is written can be read again


def refusals() -> list[tuple[str, str, str, str]]:
    """dialect | query | the part that is the cause | a word of the reason"""
    lines = (HERE / "refused.txt").read_text(encoding="utf-8").splitlines()
    rows = [tuple(part.strip() for part in line.split(" ¦ ")) for line in lines if line and not line.startswith("#")]
    return [(row[0], row[1], row[2], row[3]) for row in rows]


@pytest.mark.parametrize(("dialect", "query", "fragment", "reason"), refusals())
def test_what_is_refused(dialect: str, query: str, fragment: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        in_spark(query, dialect, TABLES)
    assert caught.value.fragment == fragment
    assert caught.value.position is not None
    assert reason in caught.value.message
    assert caught.value.hint


def test_spark_and_databricks_stay_as_they_are() -> None:
    query = "SELECT a,  b FROM t -- as written"
    assert in_spark(query, "spark", TABLES).text == query
    assert in_spark(query, "spark", TABLES).written is None
    made = in_spark(query, "databricks", TABLES)
    assert (made.text, made.written and made.written.dialect) == (query, SqlDialect.DATABRICKS)


def test_a_place_is_found_again() -> None:
    made = in_spark("SELECT id,\n  a / b AS q FROM t", "postgres", TABLES)
    assert made.text == "SELECT\n  id,\n  a DIV b AS q\nFROM t"
    assert made.place(Position(3, 3)) == Position(2, 3)
    assert made.place(Position(4, 6)) == Position(2, 19)
    assert made.place(Position(3, 5)) is None  # DIV was never written
    assert made.place(None) is None


def test_a_place_of_a_word_that_only_spark_has() -> None:
    made = in_spark("SELECT id\nFROM t FETCH FIRST 3 ROWS ONLY", "postgres", TABLES)
    assert made.place(Position(4, 1)) == Position(2, 8)  # LIMIT


def test_sentences_speak_of_the_text_as_it_was_written() -> None:
    """Spark, which counts characters from 0, read another text."""
    made = in_spark("SELECT id,\n  a / b AS q FROM t", "postgres", TABLES)
    with pytest.raises(QueryParseError) as caught, made.placed():
        raise QueryParseError("no", detail="no q. SQLSTATE: 42703; line 3 pos 13", fragment="a DIV b")
    assert caught.value.detail == "no q. SQLSTATE: 42703 (line 2, column 12)"
    assert caught.value.fragment is None
    with pytest.raises(QueryParseError) as of_our_own, made.placed():
        raise QueryParseError("no", detail="near 'DIV' (line 3, pos 4)", position=Position(3, 5), fragment="id")
    assert (of_our_own.value.detail, of_our_own.value.position) == ("near 'DIV'", None)
    assert of_our_own.value.fragment == "id"
    with pytest.raises(QueryParseError) as in_view, made.placed():
        raise QueryParseError("no (in the view v, line 1, column 3)", detail="no; line 1 pos 2")
    assert in_view.value.detail == "no"
    told = made.placed_notices([Notice("ORDER BY (line 4, column 1) has no effect"), Notice("nothing", "a hint")])
    assert [each.text for each in told] == ["ORDER BY (line 2, column 14) has no effect", "nothing"]
    reason = made.placed_reason(Reason(ReasonCode.UNSUPPORTED, "no", Position(3, 3), "a DIV b"))
    assert reason == Reason(ReasonCode.UNSUPPORTED, "no", Position(2, 3), None)


def test_a_text_that_is_ordered_is_told() -> None:
    made = in_spark("SELECT s FROM t ORDER BY s LIMIT 3", "postgres", TABLES)
    assert "ordered by its bytes" in made.notices[0].text
    assert in_spark("SELECT s FROM t ORDER BY id LIMIT 3", "postgres", TABLES).notices == ()


def test_what_is_no_query() -> None:
    with pytest.raises(InvalidArgument):
        dialect_of("oracle")
    for text in ("SELECT FROM WHERE", "DELETE FROM t", "SELECT 1; SELECT 2", ""):
        with pytest.raises(QueryParseError):
            in_spark(text, "postgres", TABLES)
