"""What people met who used it: each a case that was wrong once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from engine.engine import Engine
from engine.errors import CycleDetected, RefreshFailed, SourceSchemaChanged
from engine.lake.session import SparkHost
from engine.records import Outcome, State
from tests.spark.shop import PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark


def test_groups_by_arrays_and_structs_go_by_spark(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    """delta-rs cannot write the bounds of such keys into a predicate."""
    with opened(tmp_path / "ws", shop) as engine:
        groups = "array(customer % 2), struct(status)"
        query = f"SELECT {groups.replace('),', ') AS a,')} AS s, COUNT(*) AS n FROM orders GROUP BY {groups}"
        engine.create_stream_table("nested", query, refresh_mode="DIFFERENTIAL")
        shop.insert("orders", order(90, 3, 500), order(91, 4, 700))
        shop.table("orders").delete("id < 5")
        record = engine.refresh_stream_table("nested")
        assert (record.outcome, record.strategy) == (Outcome.DIFFERENTIAL, "merge by spark")
        holds(engine, "nested")


def test_a_value_that_came_and_went_is_never_computed_with(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("shares", "SELECT id, 10 / (customer + 1) AS share FROM orders")
        shop.table("orders").update(predicate="id = 11", updates={"customer": "-1"})
        with pytest.raises(RefreshFailed) as caught:
            engine.refresh_stream_table("shares")
        assert "DIVIDE_BY_ZERO" in (caught.value.detail or "")
        shop.table("orders").update(predicate="id = 11", updates={"customer": "2"})
        assert engine.refresh_stream_table("shares").outcome is Outcome.DIFFERENTIAL
        holds(engine, "shares")


def test_a_creation_that_fails_on_a_value_says_which_way(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(RefreshFailed) as caught:
            engine.create_stream_table("half", "SELECT id / 0 AS half FROM orders")
        assert "DIVIDE_BY_ZERO" in (caught.value.detail or "")
        assert caught.value.message == "The query fails on a value in its sources."
        assert "try_divide" in (caught.value.hint or "")
        with pytest.raises(RefreshFailed) as caught:
            engine.create_stream_table("number", "SELECT CAST(status AS INT) AS number FROM orders")
        assert "try_cast" in (caught.value.hint or "")


def test_what_spark_only_names_has_its_place(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        for query, column in (
            ("SELECT customer, id FROM orders GROUP BY customer", 18),
            ("SELECT id AS x, sum(x) OVER (ORDER BY id) AS w FROM orders", 14),
            ("SELECT id FROM orders VERSION AS OF 3", 16),
            ("SELECT * FROM orders a JOIN orders b USING (id)", 8),
        ):
            problem = engine.validate_query(query).problem
            assert problem is not None
            assert (problem.position and problem.position.column) == column, query
            assert "+-" not in (problem.detail or ""), "no plan of Spark's"


def test_a_renamed_column_is_noticed_without_new_rows(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    spark = spark_host.session()
    mapped = f"ALTER TABLE delta.`{shop.path('orders')}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(mapped)
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        spark.sql(f"ALTER TABLE delta.`{shop.path('orders')}` RENAME COLUMN amount TO price")
        holds(engine, "paid")  # at its frontier it still is what it was
        with pytest.raises(SourceSchemaChanged):
            engine.refresh_stream_table("paid")
        assert engine.status("paid").state is State.SUSPENDED


def test_rows_with_nan_are_nobodys_blind_spot(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    path = str(tmp_path / "lake" / "measured")
    settings = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, pa.table({"id": [1, 2], "x": [float("nan"), 1.0]}, schema), configuration=settings)
    with opened(tmp_path / "ws", shop) as engine:
        engine.add_source("measured", path)
        engine.create_stream_table("high", "SELECT id, x FROM measured WHERE x > 5", refresh_mode="DIFFERENTIAL")
        engine.create_stream_table("higher", "SELECT id FROM high WHERE x = 'NaN'", refresh_mode="DIFFERENTIAL")
        assert ids(engine, "high") == [1]
        more = pa.table({"id": [3, 4, 5], "x": [float("nan"), 7.0, 2.0]}, schema)
        write_deltalake(path, more, mode="append")
        assert {record.strategy for record in engine.refresh_all()} == {"append from driver"}
        assert (ids(engine, "high"), ids(engine, "higher")) == ([1, 3, 4], [1, 3])
        holds(engine, "high")
        holds(engine, "higher")
        bounds = pa.table(DeltaTable(engine.stream_table("high").path).get_add_actions(flatten=True))
        last = max(bounds.to_pylist(), key=lambda file: file["modification_time"])
        assert last.get("max.x") is None, "other readers would believe it"


def ids(engine: Engine, name: str) -> list[int]:
    return sorted(engine.preview(name).column("id").to_pylist())


def test_leaving_is_no_failure(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    """Whatever runs when the engine is closed is cut off: its table is as it was, and nobody is blamed."""
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID, schedule="1s")
        shop.insert("orders", order(90, 3, 500))
        refresher = engine._core.refresher
        refresher.close()
        engine._host.close()
        with pytest.raises(Exception, match="cut off"):
            engine.refresh_stream_table("paid")
        assert engine.status("paid").error is None
        assert len(engine.history("paid")) == 1


def test_nothing_reads_itself_and_nothing_at_all_can_be_counted(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(CycleDetected):
            engine.create_stream_table("ring", "SELECT * FROM ring")
        engine.create_stream_table("counted", "SELECT COUNT(*) AS n FROM orders")
        shop.insert("orders", order(90, 3, 500))
        shop.table("orders").delete("id < 5")
        assert engine.refresh_stream_table("counted").outcome is Outcome.DIFFERENTIAL
        holds(engine, "counted")
