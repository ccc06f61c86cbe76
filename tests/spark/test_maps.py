"""Spark compares no maps: stream tables of them are maintained all the same, through every way of keeping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from engine.engine import Engine
from engine.records import Outcome
from tests.spark.shop import holds, source

pytestmark = pytest.mark.spark

QUERIES = {
    "all_rows": "SELECT * FROM events WHERE id > 0",
    "newest": "SELECT * FROM events QUALIFY row_number() OVER (PARTITION BY id ORDER BY at DESC) = 1",
    "top": "SELECT id, attrs FROM events ORDER BY at, id LIMIT 2",
    "latest_attrs": "SELECT id, max_by(attrs, at) AS attrs, any_value(at) AS at FROM events GROUP BY id",
    "above_the_mean": (
        "SELECT id FROM events e WHERE at >= (SELECT max(at) FROM events o WHERE o.id = e.id)"
        " AND EXISTS (SELECT id, count(*) FROM events o WHERE o.id = e.id GROUP BY id HAVING count(*) < 9)"
        " AND id < (SELECT avg(id) + 9 FROM events)"
    ),
    "by_map": "SELECT attrs, count(*) AS n, max(at) AS at FROM events GROUP BY attrs",
    "by_nested": "SELECT nested, attrs, count(*) AS n FROM events GROUP BY ROLLUP (nested, attrs)",
    "lists": "SELECT at, collect_list(attrs) AS attrs, collect_list(nested) AS nested FROM events GROUP BY at",
    "joined": "SELECT a.id, b.nested FROM events a LEFT JOIN events b ON a.id = b.id AND b.attrs['a'] = 1",
}


def test_maps_are_maintained(engine: Engine, spark: Any, tmp_path: Path) -> None:
    columns = "id INT, at TIMESTAMP, attrs MAP<STRING, INT>, nested ARRAY<MAP<STRING, MAP<INT, STRING>>>"
    rows = (
        "(1, TIMESTAMP'2024-01-01', map('a', 1, 'b', 2), array(map('x', map(1, 'q'))))",
        "(2, TIMESTAMP'2024-01-02', NULL, NULL)",
        "(2, TIMESTAMP'2024-01-01', map(), array())",
        "(2, TIMESTAMP'2024-01-01', map(), array())",
    )
    table = source(engine, spark, tmp_path / "events", columns, *rows)
    for name, query in QUERIES.items():
        engine.create_stream_table(name, query)
    steps = (
        f"INSERT INTO {table} VALUES (1, TIMESTAMP'2024-01-03', map('b', 2, 'a', 1), array(map('x', map(1, 'q'))))",
        f"UPDATE {table} SET attrs = map('z', 9) WHERE id = 2 AND attrs IS NULL",
        f"DELETE FROM {table} WHERE id = 2",
    )
    for step in steps:
        spark.sql(step)
        for name in QUERIES:
            assert engine.refresh_stream_table(name).outcome in (Outcome.DIFFERENTIAL, Outcome.NO_DATA), name
            holds(engine, name)


@pytest.fixture
def compiled(spark: Any) -> Iterator[None]:
    """Spark with code that it generates, as users have it, and the other tests have not."""
    shipped = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {key: spark.conf.get(key) for key in shipped}
    for key, value in shipped.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.usefixtures("compiled")
def test_no_null_in_a_map_becomes_the_value_beside_it(engine: Engine, tmp_path: Path) -> None:
    """What Spark's own GROUP BY of a map does in generated code, in the last of these rounds."""
    schema = pa.schema([("id", pa.int32()), ("g", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    path = str(tmp_path / "events")

    def append(*rows: tuple[object, ...]) -> None:
        found = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        write_deltalake(path, found, mode="append", configuration={"delta.enableChangeDataFeed": "true"})

    append((1, 1, [("k", 1), ("j", 2)]), (2, 1, None))
    engine.add_source("events", path)
    engine.create_stream_table("counted", "SELECT id, m, COUNT(*) OVER (PARTITION BY g) AS n FROM events")
    joined = "SELECT a.id, a.m, b.id AS b FROM events a LEFT JOIN events b ON a.g = b.g + 1"
    engine.create_stream_table("joined", joined)
    engine.create_stream_table("grouped", "SELECT m, count(*) AS n FROM events GROUP BY m")
    names = ("counted", "joined", "grouped")
    rounds = (
        lambda: append((3, 1, [("z", 5), ("y", 6), ("x", 7)]), (4, 0, [("k", 1), ("j", 2)])),
        lambda: DeltaTable(path).update(updates={"g": "2"}, predicate="id = 1"),
        lambda: DeltaTable(path).delete("id = 3"),
        lambda: append((5, 2, [("a", 1), ("b", 2), ("c", None)]), (5, 2, [("c", None), ("b", 2), ("a", 1)])),
    )
    for change in rounds:
        change()
        for name in names:
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
            holds(engine, name)
    groups = engine.select("SELECT m, n FROM grouped").to_pylist()
    assert {"m": [("a", 1), ("b", 2), ("c", None)], "n": 2} in groups


def test_values_of_maps_that_are_null_stay_null(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """Spark's own GROUP BY of a map forgets which of its values are NULL."""
    columns = "id INT, g INT, m MAP<STRING, INT>, deep ARRAY<STRUCT<m: MAP<STRING, INT>>>, v MAP<STRING, DOUBLE>"
    none = "map('a', 1, 'b', 2, 'c', CAST(NULL AS INT))"
    other = "map('c', CAST(NULL AS INT), 'b', 2, 'a', 1)"
    deep, ratios = f"array(named_struct('m', {none}))", "map('x', 0.5D, 'y', CAST(NULL AS DOUBLE))"
    row = "({}, {}, {}, " + deep + ", " + ratios + ")"
    first = (row.format(1, 1, "map('k', 1, 'j', 2)"), row.format(2, 1, "NULL"), row.format(6, 1, none))
    table = source(engine, spark, tmp_path / "events", columns, *first)
    engine.create_stream_table("counted", "SELECT id, m, deep, v, COUNT(*) OVER (PARTITION BY g) AS n FROM events")
    engine.create_stream_table(
        "joined", "SELECT a.id, a.m, a.deep, b.id AS other, b.v FROM events a LEFT JOIN events b ON a.g = b.g + 1"
    )
    steps = (
        f"INSERT INTO {table} VALUES {row.format(5, 2, none)}, {row.format(5, 2, other)}, {row.format(7, 1, other)}",
        f"UPDATE {table} SET g = 2 WHERE id = 6",
        f"UPDATE {table} SET m = map('c', CAST(NULL AS INT)) WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 5",
    )
    for step in steps:
        spark.sql(step)
        for name in ("counted", "joined"):
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
            holds(engine, name)
            (nulls,) = engine.select(f"SELECT COUNT(*) AS n FROM {name} WHERE m['c'] = 0 OR v['y'] = 0").to_pylist()
            assert nulls == {"n": 0}


def test_the_order_of_entries_makes_no_difference(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """The row that goes is found, although its map was written in another order."""
    rows = ("(1, map('a', 1, 'b', 2))", "(1, map('b', 2, 'a', 1))", "(2, NULL)")
    table = source(engine, spark, tmp_path / "events", "id INT, attrs MAP<STRING, INT>", *rows)
    engine.create_stream_table("st", "SELECT id, attrs FROM events")
    spark.sql(f"DELETE FROM {table} WHERE map_keys(attrs)[0] = 'b'")
    record = engine.refresh_stream_table("st")
    assert (record.outcome, record.rows_deleted) == (Outcome.DIFFERENTIAL, 1)
    holds(engine, "st")
