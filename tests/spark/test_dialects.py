"""The same query on DuckDB, as it was written, and on Spark, as it was translated: the same rows, NULLs and all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.compile.pipeline import Request, compile_query
from engine.compile.translate import in_spark
from engine.errors import Position, QueryParseError, UnsupportedOperator
from engine.explain_text import text_of
from engine.lake.session import SparkHost
from engine.records import Outcome, SqlDialect, Written
from tests.dialects.test_dialects import TABLES, queries
from tests.spark.shop import Shop, holds, opened, order
from tests.support.duckdb_of_tests import connect
from tests.support.spark_lake import SparkAnalyzer, tuned_for_tiny

pytestmark = pytest.mark.spark

#: few rows, in which everything occurs that dialects disagree on: NULL, zero, negative, halves, ends of months, equals
ROWS = """
CREATE TABLE t (id INT, a INT, b BIGINT, x DECIMAL(8,2), f DOUBLE, s VARCHAR, d DATE, e DATE, ts TIMESTAMP, l INT[]);
INSERT INTO t VALUES
    (1, 1, 2, 2.50, 2.5, 'abc', '2020-01-31', '2020-02-29', '2020-01-31 23:59:59', [1, 2, 3]),
    (2, 1, NULL, -2.50, -2.5, 'ABC', '2020-02-01', '2020-01-31', '2020-02-01 00:00:00', [NULL]),
    (3, 2, 0, 0.05, 3.5, '', '2019-12-31', '2020-01-01', '2019-12-30 12:30:00', []),
    (4, NULL, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, -7, 2, 1.25, 0.0, 'a', '2020-03-01', NULL, '2021-06-15 08:05:01', [7]),
    (6, 0, -3, -1.25, -0.5, 'b a', '2020-01-05', '2021-01-04', '2020-01-05 00:00:00', [2, NULL, 2]),
    (7, 2, 2, 99.99, 7.25, 'abc', '2020-12-31', '2020-01-01', '2020-12-31 10:00:00', [5]),
    (8, 2, 2, 0.00, 1.0, ' ab ', '2020-01-31', '2020-01-31', NULL, NULL);
CREATE TABLE u (k INT, w VARCHAR);
INSERT INTO u VALUES (1, 'one'), (1, 'eins'), (2, NULL), (NULL, 'nothing'), (5, 'five');
"""


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = connect()
    connection.execute(ROWS)
    return connection


@pytest.fixture(scope="module")
def shown(spark_host: SparkHost, duck: duckdb.DuckDBPyConnection) -> Iterator[SparkHost]:
    """DuckDB's tables, as Spark's."""
    before = tuned_for_tiny(spark_host)
    session = spark_host.session()
    SparkAnalyzer(spark_host, TABLES)
    for name, columns in TABLES.items():
        frame = session.createDataFrame(duck.execute(f"SELECT * FROM {name}").to_arrow_table())
        chosen = [f"CAST({column.name} AS {column.type}) AS {column.name}" for column in columns]
        frame.selectExpr(*chosen).createOrReplaceTempView(name)
    yield spark_host
    for key, value in before.items():
        session.conf.set(key, value or "")


@pytest.mark.parametrize("query", queries("duckdb"))
def test_the_same_rows(query: str, duck: duckdb.DuckDBPyConnection, shown: SparkHost) -> None:
    text = in_spark(query, "duckdb", TABLES).text
    theirs = sorted((tuple(map(plain, row)) for row in duck.execute(query).fetchall()), key=repr)
    ours = sorted((tuple(map(plain, row)) for row in shown.session().sql(text).collect()), key=repr)
    assert len(ours) == len(theirs), f"{text}\n{ours}\n{theirs}"
    for one, other in zip(ours, theirs, strict=True):
        assert all(map(alike, one, other)), f"{text}\n{one}\n{other}"


def plain(value: Any) -> Any:
    """Types are Spark's: a number is a number, a date at midnight is that moment, an infinity is one."""
    match value:
        case bool() | None | str():
            return value
        case int() | Decimal():
            return round(float(value), 9) + 0.0
        case float():
            return str(value) if math.isnan(value) else value if math.isinf(value) else round(value, 9) + 0.0
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime(value.year, value.month, value.day)
        case list():
            return tuple(map(plain, value))
    return value


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake"])
def test_spark_takes_all_of_them(dialect: str, shown: SparkHost) -> None:
    """…and so does the compiler: what it cannot maintain, it says."""
    differential = 0
    for query in queries(dialect):
        text = in_spark(query, dialect, TABLES).text
        if "CURRENT_DATE" in text:
            continue
        plan = compile_query(Request(text, TABLES), SparkAnalyzer(shown, {}))
        assert plan.visible
        differential += plan.kept is not None
    assert differential > len(queries(dialect)) * 0.8


def test_a_stream_table_of_another_dialect(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake")
    query = "SELECT customer, count(*) / 2 AS share FROM orders GROUP BY customer"
    with opened(tmp_path / "ws", shop) as engine:
        assert engine.validate_query(query, dialect="postgres").valid
        made = engine.sql(f"CREATE STREAM TABLE halves WITH (dialect = 'postgres', schedule = '1m') AS {query}").value
        assert made.table.written == Written(SqlDialect.POSTGRES, query)
        assert "DIV" in made.table.query
        shop.insert("orders", order(100, 2, 999))
        assert engine.refresh_stream_table("halves").outcome is Outcome.DIFFERENTIAL
        holds(engine, "halves")
        assert "-- as written, in the SQL of postgres" in text_of(engine.explain_st("halves"))
        with pytest.raises(UnsupportedOperator) as caught:
            engine.sql(
                "CREATE STREAM TABLE bad WITH (dialect = 'postgres') AS\n  SELECT array_agg(id) AS l FROM orders"
            )
        assert caught.value.position == Position(2, 10)
        assert caught.value.fragment == "array_agg(id)"
        with pytest.raises(QueryParseError) as missing:
            engine.create_stream_table("bad", "SELECT customer / 2 AS h,\n  idd FROM orders", dialect="postgres")
        assert missing.value.position == Position(2, 3)
        shown = engine.preview_stream_table("SELECT TOP 2 id FROM orders ORDER BY id", dialect="snowflake")
        assert shown.rows.to_pylist() == [{"id": 1}, {"id": 2}]
    with opened(tmp_path / "ws", shop, compile__dialect="duckdb") as engine:
        assert engine.stream_table("halves").written is not None
        engine.create_stream_table("quotients", "SELECT id, id // 2 AS h, id / 2 AS q FROM orders")
        holds(engine, "quotients")
        assert engine.stream_table("quotients").written is not None
        assert engine.sql("EXPLAIN REWRITE quotients").value.steps
