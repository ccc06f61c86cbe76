"""Large sources are asked for the keys of a change, by the driver where it can: the same rows as Spark finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from engine.engine import Engine
from engine.lake import log, lookups, quoting, views
from engine.lake.lookups import Lookup
from engine.lake.session import SparkHost
from engine.records import Column, Outcome
from tests.spark.shop import Shop, holds, opened, order

TYPES = {
    "i": "int",
    "b": "bigint",
    "t": "tinyint",
    "s": "string",
    "d": "decimal(12,2)",
    "wide": "decimal(38,6)",
    "day": "date",
    "at": "timestamp",
    "at_ntz": "timestamp_ntz",
    "f": "double",
    "raw": "binary",
    "yes": "boolean",
}
VALUES = (
    "(1, 10, 1, 'a', 1.10, 1.5, DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00',"
    " TIMESTAMP_NTZ '2024-01-01 10:00:00', 0.5, X'01', true)",
    "(2, 10, -2, 'it''s', -1.10, 99999999999999999999999999999999.999999, DATE '0101-01-01',"
    " TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP_NTZ '0101-01-01 00:00:00', DOUBLE('NaN'), X'', false)",
    "(2, 20, -2, 'ä', 1.10, -1.5, DATE '9999-12-31', TIMESTAMP '0101-01-01 00:00:00', NULL, -0.0, NULL, NULL)",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(7, 30, 7, '', 0.00, 0, DATE '1970-01-01', TIMESTAMP '1970-01-01 00:00:00', NULL, 1e300, X'FF', true)",
)


@pytest.fixture
def table(spark: SparkSession, delta_path: str) -> str:
    """Files of three commits, one of delta-rs's, and a column that the oldest files lack."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    spark.sql(f"CREATE TABLE {quoting.table(delta_path)} ({columns}) USING delta")
    spark.sql(f"INSERT INTO {quoting.table(delta_path)} VALUES {', '.join(VALUES)}")
    spark.sql(f"ALTER TABLE {quoting.table(delta_path)} ADD COLUMN (later int COMMENT 'came later')")
    spark.sql(f"INSERT INTO {quoting.table(delta_path)} SELECT *, 5 FROM VALUES {', '.join(VALUES[:2])}")
    mine = pa.table({"i": pa.array([2, 3], pa.int32()), "s": ["a", "b"], "later": pa.array([1, None], pa.int32())})
    write_deltalake(delta_path, mine, mode="append", schema_mode="merge")
    return delta_path


def shown(spark: SparkSession, path: str, keys: str, *by: str) -> Lookup:
    """The table under the name `source`, and what is asked of it."""
    columns = (*(Column(name, type_) for name, type_ in TYPES.items()), Column("later", "int"))
    views.of_version(spark, "source", path, log.newest_version(path), columns)
    return Lookup("source", tuple((column.name, f"the {column.name}") for column in columns), by, keys)


def rows_of(found: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in found.to_pylist())


ASKED = [
    ("SELECT i FROM VALUES (2), (7), (99) AS k(i)", ("i",)),
    ("SELECT CAST(i AS INT) AS i FROM VALUES (NULL), (1) AS k(i)", ("i",)),
    ("SELECT CAST(i AS INT) AS i FROM VALUES (99) AS k(i)", ("i",)),
    ("SELECT s FROM VALUES ('it''s'), (''), ('ä') AS k(s)", ("s",)),
    ("SELECT CAST(d AS DECIMAL(12,2)) AS d FROM VALUES (1.1), (0) AS k(d)", ("d",)),
    ("SELECT DATE '0101-01-01' AS day", ("day",)),
    ("SELECT TIMESTAMP '9999-12-31 23:59:59.999999' AS at", ("at",)),
    ("SELECT TIMESTAMP_NTZ '0101-01-01 00:00:00' AS at_ntz", ("at_ntz",)),
    ("SELECT b, CAST(i AS INT) AS i FROM VALUES (10L, 2), (20L, 1) AS k(b, i)", ("b", "i")),
    ("SELECT later FROM VALUES (5) AS k(later)", ("later",)),
]


@pytest.mark.parametrize(("keys", "by"), ASKED, ids=[keys for keys, _ in ASKED])
def test_the_driver_finds_what_spark_finds(spark: SparkSession, table: str, keys: str, by: tuple[str, ...]) -> None:
    lookup = shown(spark, table, keys, *by)
    found = lookups.rows(spark, lookup, "a test")
    assert found is not None
    same = " AND ".join(f"s.{name} <=> k.{name}" for name in by)
    views.make_ready(spark, (lookup.view,))
    expected = spark.sql(f"SELECT * FROM source AS s LEFT SEMI JOIN ({keys}) AS k ON {same}").toArrow()
    assert found.column_names == [name for _, name in lookup.columns]
    assert found.schema.types == expected.schema.types
    assert rows_of(found) == rows_of(expected)


def deletion_vectors(spark: SparkSession, path: str) -> None:
    spark.sql(f"ALTER TABLE {quoting.table(path)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {quoting.table(path)} WHERE i = 7")


def old_moments(_: SparkSession, path: str) -> None:
    place = next(Path(path).glob("*.parquet"))
    rows = pq.read_table(place)
    place.unlink()
    pq.write_table(rows, place, use_deprecated_int96_timestamps=True)


@pytest.mark.parametrize("change", [deletion_vectors, old_moments])
def test_files_that_do_not_tell_are_left_to_spark(
    spark: SparkSession, table: str, change: Callable[[SparkSession, str], None]
) -> None:
    change(spark, table)
    assert lookups.rows(spark, shown(spark, table, "SELECT 2 AS i", "i"), "a test") is None
    assert not lookups.is_possible(table, log.newest_version(table), list(TYPES), 100)


def test_what_is_no_look_up_is_left_to_spark(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lookups.is_possible(table, log.newest_version(table), list(TYPES), 100)
    assert not lookups.is_possible(table, log.newest_version(table), list(TYPES), 0)
    assert lookups.rows(spark, shown(spark, table, "SELECT 0.0D AS f", "f"), "a test") is None, "-0.0 equals 0.0"
    many = shown(spark, table, "SELECT 2 AS i", "i")
    monkeypatch.setattr(lookups, "ROWS_MAX", 2)
    assert lookups.rows(spark, many, "a test") is None
    monkeypatch.setattr(lookups, "KEYS_MAX", 1)
    assert lookups.rows(spark, shown(spark, table, "SELECT id FROM range(2)", "b"), "a test") is None
    spark.sql("SELECT 1 AS i").createOrReplaceTempView("other")
    assert lookups.rows(spark, Lookup("other", (("i", "i"),), ("i",), "SELECT 1 AS i"), "a test") is None


QUERIES = {
    "joined": "SELECT o.id, c.region, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "partners": "SELECT c.region, COUNT(*) AS n FROM customers c"
    " WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.status = 'paid') GROUP BY c.region",
    "lone": "SELECT c.id, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 10",
    "above_average": "SELECT o.id FROM orders o WHERE o.amount >"
    " (SELECT AVG(i.amount) FROM orders i WHERE i.customer = o.customer)",
    "itself": "SELECT a.id, b.status FROM orders a JOIN orders b ON b.id = a.customer",
}


@pytest.mark.parametrize("lookup_mb", ["8192", "0"], ids=["by the driver", "by Spark"])
def test_stream_tables_over_large_sources(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, monkeypatch: pytest.MonkeyPatch, lookup_mb: str
) -> None:
    found: list[bool] = []
    look = lookups.rows

    def counted(session: SparkSession, lookup: Lookup, doing: str) -> pa.Table | None:
        rows = look(session, lookup, doing)
        found.append(rows is not None)
        return rows

    monkeypatch.setattr(lookups, "rows", counted)
    overrides = {"refresh__large_source_mb": "0", "refresh__lookup_mb": lookup_mb}
    with opened(tmp_path / "ws", shop, **overrides) as engine:
        for name, query in QUERIES.items():
            engine.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        for step in steps(shop):
            step()
            refreshed(engine, list(QUERIES))
    assert any(found) is (lookup_mb != "0")
    assert all(found)


def steps(shop: Shop) -> Sequence[Callable[[], object]]:
    return (
        lambda: shop.insert("orders", order(100, 1, 99_00), order(101, None, 1_00), order(102, 4, None)),
        lambda: shop.table("orders").delete("customer = 2 OR id = 100"),
        lambda: shop.insert("customers", {"id": 2, "region": "new"}, {"id": 9, "region": None}),
        lambda: shop.table("orders").update({"customer": "9"}, predicate="customer = 1"),
        lambda: (shop.table("customers").delete("id = 4"), shop.table("orders").delete("customer = 4")),
    )


def refreshed(engine: Engine, names: list[str]) -> None:
    for name in names:
        assert engine.refresh_stream_table(name).outcome in (Outcome.DIFFERENTIAL, Outcome.NO_DATA)
        holds(engine, name)
