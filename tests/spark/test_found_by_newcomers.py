"""What somebody met who used it for the first time, with queries of his own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import FailsOnValue
from engine.records import Outcome, ReasonCode
from tests.spark.shop import holds, source

pytestmark = pytest.mark.spark


def stored(engine: Engine, spark: Any, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
    path = next(table.path for table in engine.stream_tables() if table.name == name)
    return [tuple(row) for row in spark.sql(f"SELECT {columns} FROM delta.`{path}`").collect()]


def test_columns_may_be_called_like_functions(engine: Engine, spark: Any, tmp_path: Path) -> None:
    columns = "k INT, current_date DATE, current_timestamp TIMESTAMP, user STRING"
    first = "(1, DATE'2020-01-01', TIMESTAMP'2020-01-01 10:00:00', 'ann')"
    table = source(engine, spark, tmp_path / "h", columns, first)
    engine.create_stream_table("days", "SELECT current_date, user, count(*) AS n FROM h GROUP BY current_date, user")
    engine.create_stream_table("old", "SELECT k, current_timestamp AS at FROM h WHERE current_date < DATE'2021-01-01'")
    # one of them is the clock's
    engine.create_stream_table("both", "SELECT k, current_date AS day, now() > current_timestamp AS later FROM h")
    spark.sql(f"INSERT INTO {table} VALUES (2, DATE'2020-01-01', NULL, 'ann'), (3, NULL, NULL, NULL)")
    for name in ("days", "old"):
        assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
        holds(engine, name)
    engine.refresh_stream_table("both")
    holds(engine, "both")
    counted = {(str(day), user, n) for day, user, n in stored(engine, spark, "days", "`current_date`, `user`, n")}
    assert counted == {("2020-01-01", "ann", 2), ("None", None, 1)}
    assert {str(day) for _, day, _ in stored(engine, spark, "both", "k, day, later")} == {"2020-01-01", "None"}


def test_the_clock_needs_no_parentheses(engine: Engine, spark: Any, tmp_path: Path) -> None:
    source(engine, spark, tmp_path / "h", "k INT, day DATE", "(1, DATE'2020-01-01')")
    created = engine.create_stream_table(
        "past", "SELECT k, current_date AS today FROM h WHERE day < current_date; -- end"
    )
    assert created.table.full_reason is not None
    assert created.table.full_reason.code is ReasonCode.STABLE
    holds(engine, "past")


def test_keys_that_nobody_asks_for_may_have_several_rows(engine: Engine, spark: Any, tmp_path: Path) -> None:
    source(engine, spark, tmp_path / "t", "k INT", "(1)", "(2)")
    table = source(engine, spark, tmp_path / "g", "src INT, dst INT", "(1, 10)", "(77, 1)", "(77, 2)")
    engine.create_stream_table("x", "SELECT k, (SELECT dst FROM g WHERE g.src = t.k) AS dst FROM t")
    spark.sql(f"INSERT INTO {table} VALUES (77, 3), (2, 20)")
    assert engine.refresh_stream_table("x").outcome is Outcome.DIFFERENTIAL
    holds(engine, "x")
    spark.sql(f"INSERT INTO {table} VALUES (2, 21)")
    with pytest.raises(FailsOnValue) as caught:
        engine.refresh_stream_table("x")
    assert "more than one row" in (caught.value.detail or "")


def test_rows_that_never_met_are_no_reason_to_fail(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """One came and the other went between two refreshes: only recomputing knows that nothing was divided by zero."""
    left = source(engine, spark, tmp_path / "t", "k INT, v INT", "(1, 0)", "(2, 5)")
    right = source(engine, spark, tmp_path / "g", "src INT, dst INT", "(2, 1)")
    query = "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM g WHERE g.src = t.k AND g.dst / t.v > 0)"
    engine.create_stream_table("some", query)
    spark.sql(f"INSERT INTO {right} VALUES (1, 9)")
    spark.sql(f"DELETE FROM {left} WHERE k = 1")
    done = engine.refresh_stream_table("some")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.FAILS_ON_CHANGE)
    assert "DIVIDE_BY_ZERO" in done.reason.text
    holds(engine, "some")
    spark.sql(f"INSERT INTO {left} VALUES (1, 0)")
    with pytest.raises(FailsOnValue):
        engine.refresh_stream_table("some")


def test_units_of_time_in_small_letters_are_maintained(engine: Engine, spark: Any, tmp_path: Path) -> None:
    table = source(engine, spark, tmp_path / "m", "k INT, at TIMESTAMP", "(1, TIMESTAMP'2024-01-31 10:00:00')")
    months = "datediff(month, at, TIMESTAMP'2024-06-01 00:00:00')"
    query = f"SELECT k, {months} AS m, dateadd(day, 1, at) AS d, log(k) AS l FROM m"
    created = engine.create_stream_table("units", query)
    assert created.table.full_reason is None
    spark.sql(f"INSERT INTO {table} VALUES (2, NULL)")
    assert engine.refresh_stream_table("units").outcome is Outcome.DIFFERENTIAL
    holds(engine, "units")
