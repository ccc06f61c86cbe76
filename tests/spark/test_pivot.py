"""PIVOT and UNPIVOT on real Spark: `verify` compares what is kept with Spark's own answer to the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lake.session import SparkHost
from engine.records import Outcome
from tests.spark.shop import Shop, holds, opened, order

pytestmark = pytest.mark.spark

WIDE = "(SELECT id, CAST(customer AS BIGINT) AS c, id AS i FROM orders)"
FEW = "(SELECT customer, amount, status FROM orders)"
QUERIES = {
    "one": f"SELECT * FROM {FEW} PIVOT (SUM(amount) FOR status IN ('paid', 'void' AS gone, 'never'))",
    "two": f"SELECT * FROM {FEW} PIVOT (SUM(amount) AS s, COUNT(*) AS n FOR status IN ('paid', NULL AS none, 'new'))",
    "texts": "SELECT * FROM (SELECT id, customer, status FROM orders) PIVOT (MAX(status) FOR customer IN (1, 2, 9))",
    "alone": "SELECT * FROM (SELECT amount, status FROM orders) PIVOT (AVG(amount) AS a FOR status IN ('paid', 'x'))",
    "counted": f"SELECT customer, paid FROM {FEW} PIVOT (COUNT(amount) FOR status IN ('paid', 'void')) WHERE void > 0",
    "long": f"SELECT * FROM {WIDE} UNPIVOT (v FOR n IN (c, i AS own))",
    "nulls": f"SELECT id, n, v FROM {WIDE} UNPIVOT INCLUDE NULLS (v FOR n IN (c, i))",
}


def test_pivots_are_kept_by_their_changes(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake")
    with opened(tmp_path / "ws", shop) as engine:
        for name, query in QUERIES.items():
            engine.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
            holds(engine, name)
        shop.insert("orders", order(100, 2, 999, "new"), order(101, 1, 5, None), order(102, None, 7, "paid"))
        shop.table("orders").delete("id < 8")
        shop.table("orders").update(predicate="id = 20", updates={"customer": "9", "status": "'void'"})
        for name in QUERIES:
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
            holds(engine, name)
