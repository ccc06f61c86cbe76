"""One stream table of each family of operators, through the whole engine: the promise after every change."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.compile.pipeline import Request, compile_query
from engine.lake.session import SparkHost
from engine.records import Column, Outcome
from tests.spark.shop import Shop, holds, opened, order
from tests.support.fake_lake import FakeStreamTable
from tests.support.spark_lake import SparkAnalyzer, SparkLake
from tests.support.view_runner import check_against_recompute

pytestmark = pytest.mark.spark

QUERIES = {
    "outer_join": "SELECT o.id, c.region FROM orders o FULL JOIN customers c ON o.customer = c.id",
    "not_in": "SELECT id, amount FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE region = 'r1')",
    "scalar": "SELECT id, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id AND o.amount > 10) AS n "
    "FROM customers c",
    "ranked": "SELECT id, customer, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS place "
    "FROM orders",
    "mean_beside": "SELECT o.id, m.mean FROM orders o JOIN (SELECT customer, AVG(CAST(amount AS DOUBLE)) AS mean "
    "FROM orders GROUP BY customer) m ON o.customer = m.customer",
    "rolled_up": "SELECT customer, status, COUNT(*) AS n, MAX(amount) AS top, GROUPING(status) AS level "
    "FROM orders GROUP BY ROLLUP (customer, status)",
    "top": "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 5",
    "names": "SELECT customer FROM orders EXCEPT SELECT id FROM customers",
    "words": "SELECT o.id, w.word FROM orders o LATERAL VIEW explode(array(o.status, 'x')) w AS word",
    "listed": "SELECT customer, collect_list(status) AS statuses, max_by(status, amount) AS last "
    "FROM orders GROUP BY customer",
}


@pytest.mark.parametrize("largest", ["50000", "1"], ids=["driver", "spark"])
def test_the_promise_holds(tmp_path: Path, spark_host: SparkHost, largest: str) -> None:
    shop = Shop(tmp_path / "lake")
    # what Spark writes itself is tried on those that need something of a strategy: ids of rows, parts, groups
    names = QUERIES if largest != "1" else ("outer_join", "mean_beside", "rolled_up")
    with opened(tmp_path / "ws", shop, refresh__max_driver_delta_rows=largest) as engine:
        for name in names:
            engine.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL", schedule="10s")
        shop.insert("orders", order(100, 2, 999), order(100, 2, 999), order(101, None, None, None), order(102, 9, 1))
        shop.table("orders").delete("id < 8")
        shop.table("orders").update(predicate="id = 20", updates={"customer": "1", "amount": "77.70"})
        shop.table("customers").update(predicate="id = 1", updates={"region": "'moved'"})
        shop.table("customers").delete("id = 3")
        for record in engine.refresh_all():
            assert record.outcome is Outcome.DIFFERENTIAL, (record.st, record.reason)
        for name in names:
            holds(engine, name)
        assert {record.outcome for record in engine.refresh_all()} == {Outcome.NO_DATA}


GROWING = {
    "extremes": "SELECT customer, MIN(amount) AS least, MAX(status) AS last, COUNT(*) AS n FROM orders "
    "GROUP BY customer",
    "spread": "SELECT customer, STDDEV(amount) AS spread, COVAR_POP(CAST(id AS INT), amount) AS together, "
    "BOOL_OR(status = 'void') AS some_void FROM orders GROUP BY customer",
    "all_of_it": "SELECT MAX(o.amount) AS most, VAR_POP(o.amount) AS spread FROM orders o JOIN customers c "
    "ON o.customer = c.id",
    "chains": "WITH RECURSIVE chain(node, steps) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, c.steps + 1 "
    "FROM chain c JOIN orders o ON o.customer = c.node WHERE c.steps < 3) SELECT node, steps FROM chain",
}


def test_the_promise_holds_where_sources_only_grow(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake")
    with opened(tmp_path / "ws", shop) as engine:
        for name, query in GROWING.items():
            engine.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", schedule="10s")
        for _ in range(2):
            shop.insert(
                "orders", order(100, 2, 1), order(100, 2, 99_999), order(101, None, None, None), order(102, 9, 1)
            )
            shop.insert("orders", order(103, 100, 50), order(2, 2, 7_000))
            for record in engine.refresh_all():
                assert record.outcome is Outcome.DIFFERENTIAL, (record.st, record.reason)
                read = record.sql
                assert ("new_orders" in read) == (record.st == "chains"), record.st
            for name in GROWING:
                holds(engine, name)
        shop.table("orders").delete("id = 100")
        for record in engine.refresh_all():
            assert record.outcome is Outcome.DIFFERENTIAL, (record.st, record.reason)
        for name in GROWING:
            holds(engine, name)


def test_a_change_of_columns_that_no_query_uses_is_none(tmp_path: Path, spark_host: SparkHost) -> None:
    """The row before and the row after are equal in what is read, and cancel each other before anything is computed."""
    shop = Shop(tmp_path / "lake")
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table(
            "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer", schedule="10s"
        )
        shop.table("orders").update(predicate="id < 30", updates={"status": "'seen'"})
        (record,) = engine.refresh_all()
        assert record.outcome is Outcome.DIFFERENTIAL, record.reason
        assert record.rows_in == 0
        assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (0, 0, 0)
        holds(engine, "totals")


def test_many_sums_are_planned_at_once(spark_host: SparkHost) -> None:
    """Of one condition over n columns that a subquery named anew, Spark derived 2ⁿ: eight sums took half a minute."""
    columns = (Column("id", "int"), Column("v", "decimal(8,2)"))
    sums = ", ".join(f"SUM(v + {number}) AS s{number}" for number in range(16))
    request = Request(f"SELECT id % 3 AS k, {sums} FROM t GROUP BY id % 3", {"t": columns})
    plan = compile_query(request, SparkAnalyzer(spark_host, request.relations))
    assert plan.kept is not None
    lake = SparkLake(request.relations, spark_host)
    view = FakeStreamTable(lake, plan)
    view.populate()
    lake.run("INSERT INTO t VALUES (1, 1.25), (2, NULL), (4, 3.00)")
    began = time.perf_counter()
    view.refresh()
    assert time.perf_counter() - began < 60
    check_against_recompute(view, "after rows came", (plan.query,))
