"""What a condition can come to over a row of an outer join that has no partner. A wrong no would lose rows."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest
import sqlglot

from engine.algebra.scalars import Scalar
from engine.compile.truth import can_hold

NEVER = [
    "r > 1",
    "NOT r = 1",
    "r IN (1, 2)",
    "r BETWEEN 1 AND 2",
    "l BETWEEN r AND 5",
    "NOT l BETWEEN r AND r",
    "r + l > 2",
    "-r < 5",
    "CAST(r AS BIGINT) = l",
    "r > 1 AND l IS NULL",
    "r > 1 OR r < 1",
    "NOT (r IS NULL)",
    "r IS NOT NULL AND l > 0",
    "coalesce(r, NULL) > 1",
    "CASE WHEN r IS NULL THEN NULL ELSE 1 END < l",
    "CASE WHEN r > 1 THEN TRUE END",
    "(r = 1) IS NOT DISTINCT FROM TRUE",
    "NULL",
    "FALSE",
    "r = 1 AND (l = 1 OR l = 2)",
]
PERHAPS = [
    "r IS NULL",
    "l > 1",
    "NOT l BETWEEN r AND 5",
    "r > 1 OR l > 1",
    "coalesce(r, 3) > 2",
    "coalesce(r, l) > 2",
    "r IS NOT DISTINCT FROM l",
    "NOT (r IS NOT NULL)",
    "CASE WHEN r > 1 THEN FALSE ELSE TRUE END",
    "CASE WHEN l > 1 THEN r > 1 ELSE l = 1 END",
    "(r > 1) IS NULL",
    "CASE r WHEN 1 THEN FALSE ELSE TRUE END",
    "TRUE",
    "concat_ws('', r, l) = '1'",
]


def parsed(text: str) -> Scalar:
    return Scalar(sqlglot.parse_one(text, dialect="spark"))


@pytest.mark.parametrize("text", NEVER)
def test_what_cannot_hold(text: str) -> None:
    assert not can_hold(parsed(text), frozenset("r"))


@pytest.mark.parametrize("text", PERHAPS)
def test_what_may_hold(text: str) -> None:
    assert can_hold(parsed(text), frozenset("r"))


@pytest.mark.parametrize("text", NEVER + PERHAPS)
def test_a_no_is_sure(text: str) -> None:
    """Asked of a database, with every value that the other column might have."""
    for nulls in ("r", "l", "rl"):
        held = False
        for value in (None, 0, 1, 2, 3, 9):
            row = {name: "NULL" if name in nulls or value is None else value for name in "rl"}
            named = ", ".join(f"CAST({each} AS INT) AS {name}" for name, each in row.items())
            held |= duckdb.sql(f"SELECT ({text}) IS TRUE FROM (SELECT {named})").fetchall() == [(True,)]
        assert can_hold(parsed(text), frozenset(nulls)) or not held


def test_tables_of_and_and_or() -> None:
    spelled = {"NULL": None, "TRUE": True, "FALSE": False}
    for one, other, word in product(spelled, spelled, ("AND", "OR")):
        text = f"{one} {word} {other}"
        assert can_hold(parsed(text), frozenset()) is (duckdb.sql(f"SELECT {text}").fetchall() == [(True,)])
