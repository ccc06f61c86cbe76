"""Queries that Spark can read and Trickle's own parser cannot: recomputed, with the reason; everything else of a
stream table works as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import NotFound, QueryParseError, UnsupportedOperator, VolatileFunction
from engine.records import Outcome, ReasonCode
from tests.spark.shop import Shop, holds, opened, order

pytestmark = pytest.mark.spark

PIPED = "TABLE orders |> WHERE amount > 10 |> AGGREGATE sum(amount) AS total GROUP BY customer"


@pytest.fixture
def engine(tmp_path: Path, shop: Shop) -> Iterator[Engine]:
    with opened(tmp_path / "ws", shop) as engine:
        yield engine


def test_it_is_recomputed_and_says_why(engine: Engine, shop: Shop) -> None:
    made = engine.create_stream_table("piped", PIPED)
    assert made.table.sources == ("orders",)
    reason = made.table.full_reason
    assert reason is not None
    assert reason.code is ReasonCode.UNSUPPORTED
    assert reason.text.startswith("Spark can read this query, and Trickle cannot: syntax error near")
    assert reason.position is not None
    shop.insert("orders", order(900, 2, 77))
    assert engine.refresh_stream_table("piped").outcome is Outcome.FULL
    assert engine.refresh_stream_table("piped").outcome is Outcome.NO_DATA
    holds(engine, "piped")


def test_it_may_stand_in_a_view(engine: Engine, shop: Shop) -> None:
    engine.sql(f"CREATE VIEW large AS {PIPED}")
    made = engine.create_stream_table("of_large", "SELECT customer, total FROM large")
    assert made.table.sources == ("orders",)
    assert made.table.full_reason is not None
    assert "(in the view large" in made.table.full_reason.text
    shop.insert("orders", order(901, 3, 78))
    assert engine.refresh_stream_table("of_large").outcome is Outcome.FULL
    holds(engine, "of_large")


def test_differential_is_refused(engine: Engine) -> None:
    with pytest.raises(UnsupportedOperator, match="Spark can read this query, and Trickle cannot"):
        engine.create_stream_table("strict", PIPED, refresh_mode="DIFFERENTIAL")


@pytest.mark.parametrize(
    "query",
    ["TABLE orders |> EXTEND rand() AS r", "TABLE orders |> EXTEND current_date() AS r", "TABLE orders |> WHERE"],
)
def test_what_changes_by_itself_and_what_is_no_sql_keep_their_error(engine: Engine, query: str) -> None:
    with pytest.raises((VolatileFunction, QueryParseError)):
        engine.create_stream_table("wild", query)


def test_a_mistake_in_it_is_told_by_spark(engine: Engine) -> None:
    with pytest.raises(QueryParseError, match="amonut"):
        engine.create_stream_table("wrong", "TABLE orders |> WHERE amonut > 10")
    with pytest.raises((NotFound, QueryParseError)):
        engine.create_stream_table("wrong", "TABLE odrers |> WHERE amount > 10")
