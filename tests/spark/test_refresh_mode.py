"""Differential or full on real Spark: overwrites, chains below full refreshes, the owner's share, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from engine.alternatives import Way
from engine.cli.main import main
from engine.engine import Engine
from engine.lake.session import SparkHost
from engine.records import Outcome, ReasonCode, RefreshMode
from engine.results import RefreshModeExplanation
from tests.spark.shop import BY_REGION, ORDERS, PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark

LEFT = "SELECT c.region, o.id, o.amount FROM orders o LEFT JOIN customers c ON o.customer = c.id"
MOST = "SELECT customer, MAX(amount) AS most, COUNT(DISTINCT status) AS kinds FROM orders GROUP BY customer"
FLOATS = "SELECT customer FROM orders GROUP BY 1 HAVING SUM(CAST(id AS DOUBLE)) > 1"
WINDOW = "SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders"


def overwrite(shop: Shop, rows: list[dict[str, object]]) -> None:
    write_deltalake(shop.path("orders"), pa.Table.from_pylist(rows, ORDERS), mode="overwrite")


def the_orders(shop: Shop, **changed: dict[str, object]) -> list[dict[str, object]]:
    rows = shop.table("orders").to_pyarrow_table().to_pylist()
    return [changed.get(f"n{row['id']}", row) for row in rows]


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL"])
def test_a_chain_below_a_full_refresh_goes_by_what_differs(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, mode: str
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("upstream", "SELECT id, customer, amount FROM orders", refresh_mode="FULL")
        engine.create_stream_table(
            "sums", "SELECT customer, SUM(amount) AS amount FROM upstream GROUP BY customer", refresh_mode=mode
        )
        engine.create_stream_table("rows", "SELECT id, amount FROM upstream WHERE id > 3", refresh_mode=mode)
        engine.create_stream_table("below", "SELECT customer FROM sums WHERE amount > 1000", refresh_mode=mode)
        shop.table("orders").update(predicate="id = 7", updates={"amount": "50.25"})
        upstream = engine.refresh_stream_table("upstream")
        assert (upstream.outcome, upstream.rows_inserted) == (Outcome.FULL, 60)
        for name in ("sums", "rows"):
            told = engine.explain_refresh_mode(name)
            assert (told.outcome, told.changes[0].kind, told.changes[0].rows_read) == (
                Outcome.DIFFERENTIAL,
                "overwritten",
                120,
            )
            done = engine.refresh_stream_table(name)
            assert (done.outcome, done.rows_in) == (Outcome.DIFFERENTIAL, 2), done.reason
            assert (done.rows_updated, done.rows_inserted + done.rows_deleted) in ((1, 0), (0, 2))
            holds(engine, name)
        assert engine.refresh_stream_table("below").outcome is Outcome.DIFFERENTIAL
        # nothing is left of an overwrite by the same rows
        engine.refresh_stream_table("upstream", full=True)
        assert (again := engine.refresh_stream_table("sums")).outcome is Outcome.DIFFERENTIAL, again.reason
        assert (again.rows_in, again.rows_updated) == (0, 0)
        holds(engine, "below")


@pytest.mark.parametrize("query", [BY_REGION, PAID, LEFT, MOST, WINDOW])
@pytest.mark.parametrize("cdf", [True, False])
def test_an_overwritten_source_in_every_shape(tmp_path: Path, spark_host: SparkHost, query: str, cdf: bool) -> None:
    shop = Shop(tmp_path / "lake", cdf=cdf)
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("one", query)
        overwrite(shop, the_orders(shop, n5=order(5, 2, 777), n6=order(6, 3, 1, "void")))
        done = engine.refresh_stream_table("one")
        assert (done.outcome, done.rows_in) == (Outcome.DIFFERENTIAL, 4), done.reason
        holds(engine, "one")
        overwrite(shop, [])
        shop.insert("orders", order(1, 1, 100), order(2, 2, None))
        assert engine.refresh_stream_table("one").outcome is Outcome.DIFFERENTIAL
        holds(engine, "one")
        before = shop.table("orders").version()
        shop.insert("orders", order(3, 1, 300))
        shop.table("orders").restore(before)
        overwrite(shop, the_orders(shop))
        done = engine.refresh_stream_table("one")
        assert (done.outcome, done.rows_in) == (Outcome.DIFFERENTIAL, 0)
        holds(engine, "one")


def test_an_overwrite_that_is_too_large_for_the_driver_brings_what_differs(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop, refresh__max_driver_delta_rows="20") as engine:
        engine.create_stream_table("paid", PAID, refresh_mode="DIFFERENTIAL")
        overwrite(shop, the_orders(shop, n5=order(5, 2, 777)))
        done = engine.refresh_stream_table("paid")
        assert (done.rows_in, done.strategy) == (2, "merge from driver")
        holds(engine, "paid")
        overwrite(shop, [{**row, "id": int(str(row["id"])) + 100} for row in the_orders(shop)])
        assert engine.refresh_stream_table("paid").strategy == "merge by spark"
        holds(engine, "paid")


def test_the_share_of_the_owner(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.sql(f"CREATE STREAM TABLE paid WITH (differential_max_change_ratio = 0.1) AS {PAID}")
        assert engine.stream_table("paid").differential_max_change_ratio == 0.1
        shop.table("orders").delete("id < 5")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        shop.table("orders").delete("id < 15")
        told = engine.sql("EXPLAIN REFRESH MODE FOR paid").value
        assert isinstance(told, RefreshModeExplanation)
        assert (told.outcome, told.reason.code) == (Outcome.FULL, ReasonCode.CHANGE_RATIO)
        done = engine.refresh_stream_table("paid")
        assert (done.outcome, done.reason) == (Outcome.FULL, told.reason)
        assert done.reason.text == "10 changed rows of orders are 18 % of it, limit 10 %"
        engine.sql("ALTER STREAM TABLE paid SET (differential_max_change_ratio = 1)")
        shop.table("orders").delete("id < 50")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")
        engine.sql("ALTER STREAM TABLE paid SET (comment = 'it stays')")
        assert engine.stream_table("paid").differential_max_change_ratio == 1
        engine.sql("ALTER STREAM TABLE paid SET (differential_max_change_ratio = NULL)")
        assert engine.stream_table("paid").differential_max_change_ratio is None
        engine.alter_stream_table("paid", differential_max_change_ratio=0.5)
        engine.create_or_replace_stream_table("paid", PAID)
        assert engine.stream_table("paid").differential_max_change_ratio is None, "nobody said it anew"


def test_what_is_told_needs_no_spark_and_comes_true(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        for number in range(3):
            shop.insert("orders", order(100 + number, number, 100))
            done = engine.refresh_stream_table("by_region")
            assert done.estimated_ms is not None
            assert [each.way for each in done.alternatives] == [Way.DIFFERENTIAL, Way.FULL]
            assert done == engine.history("by_region", limit=1)[0]
        shop.insert("orders", order(200, 1, 100))
    with Engine.open(tmp_path / "ws", read_only=True) as engine:
        told = engine.explain_refresh_mode("by_region")
        assert engine.spark_status().phase.value == "not started"
        assert (told.requested_mode, told.outcome) == (RefreshMode.AUTO, Outcome.DIFFERENTIAL)
        assert told.error.refreshes == 0  # all of them ran in a cold JVM
    with opened(tmp_path / "ws", shop) as engine:
        done = engine.refresh_stream_table("by_region")
        assert (done.outcome, done.reason.text) == (told.outcome, told.reason.text)
        assert engine.explain_st("by_region").cost_error == told.error


def test_by_the_command_line(tmp_path: Path, spark_host: SparkHost, shop: Shop, capsys: Any) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        engine.create_stream_table("floats", FLOATS)
        shop.insert("orders", order(100, 2, 100))
    assert main(["--workspace", str(tmp_path / "ws"), "explain", "by_region", "--mode"]) == 0
    shown = capsys.readouterr().out
    assert "next refresh  DIFFERENTIAL" in shown
    assert "source orders 0→1, append: 1 changed row of 61" in shown
    assert main(["--workspace", str(tmp_path / "ws"), "explain", "floats", "--mode", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["reason"]["code"]) == ("FULL", "unsupported")
    assert told["reason"]["position"] == {"line": 1, "column": FLOATS.index("SUM") + 1}
    assert told["reason"]["fragment"] == "SUM(CAST(id AS DOUBLE)) > 1"
