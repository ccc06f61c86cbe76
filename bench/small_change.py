"""A small change of a large source under an aggregate, against the floor.

100 changed rows (60 inserted, 30 updated, 10 deleted in one commit) of a source of 1,000,000 rows, under an
aggregate with 1,000 groups; from the source's commit to the moment when the stream table's commit can be read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from bench.stage import FLOOR_ROUNDS, Floor, Stage, spread, timed_ms
from engine.lake.demo_tables import DemoTable
from engine.lake.heads import HeadReader
from engine.records import Outcome

ROWS = 1_000_000
GROUPS = 1_000
INSERTED, UPDATED, DELETED = 60, 30, 10
WARM_UPS = 10

COLUMNS = (("id", "bigint"), ("customer", "bigint"), ("quantity", "int"), ("amount", "decimal(12,2)"))
QUERY = """
SELECT customer, COUNT(*) AS orders, SUM(quantity) AS pieces, SUM(amount) AS amount, AVG(amount) AS mean_amount
FROM sales
GROUP BY customer
"""


def make_source(stage: Stage, path: str) -> None:
    stage.spark.range(ROWS).selectExpr(
        "id",
        f"id * 7919 % {GROUPS} AS customer",
        "CAST(id % 9 + 1 AS INT) AS quantity",
        "CAST((id % 10000) / 100 AS DECIMAL(12,2)) AS amount",
    ).repartition(8).write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)


def changes(chance: random.Random) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """One commit after another; a row is deleted once and never changed afterwards."""
    alive = chance.sample(range(ROWS), 10_000)
    next_id = ROWS
    while True:
        touched = [alive.pop() for _ in range(UPDATED + DELETED)]
        yield {
            "inserts": [row(chance, next_id + n) for n in range(INSERTED)],
            "updates": [row(chance, key) for key in touched[:UPDATED]],
            "deletes": [row(chance, key) for key in touched[UPDATED:]],
        }
        next_id += INSERTED


def row(chance: random.Random, key: int) -> dict[str, Any]:
    return {
        "id": key,
        "customer": chance.randrange(GROUPS),
        "quantity": chance.randint(1, 9),
        "amount": Decimal(chance.randint(1, 9_999)) / 100,
    }


def measure(stage: Stage, rounds: int = FLOOR_ROUNDS) -> dict[str, Any]:
    engine = stage.engine
    source_path = stage.folder / "sales"
    make_source(stage, str(source_path))
    engine.add_source("sales", str(source_path))
    created = engine.create_stream_table("sales_by_customer", QUERY, schedule="1h")
    source = DemoTable(source_path, COLUMNS, ("id",))
    heads = HeadReader()
    pending = changes(random.Random(11))
    floor = Floor(stage)

    def refresh() -> float:
        source.commit(**next(pending))
        before = heads.head(created.table.path).version

        def until_readable() -> None:
            record = engine.refresh_stream_table("sales_by_customer")
            assert record.outcome is Outcome.DIFFERENTIAL, record
            assert heads.head(created.table.path).version > before

        return timed_ms(until_readable)

    for _ in range(WARM_UPS):
        refresh()
    floor_ms, refresh_ms = [], []
    for _ in range(rounds):
        floor_ms.append(floor.append_ms())
        refresh_ms.append(refresh())
    assert engine.verify("sales_by_customer").equal
    phases = engine.history("sales_by_customer", limit=rounds)
    names = list(dict.fromkeys(name for record in phases for name in record.phases_ms))
    return {
        "floor_ms": spread(floor_ms).p50_ms,
        "small_change_aggregate_ratio": spread(refresh_ms).p50_ms / spread(floor_ms).p50_ms,
        "small_change_aggregate_ms": spread(refresh_ms).p50_ms,
        "small_change_aggregate_p95_ms": spread(refresh_ms).p95_ms,
        "small_change_aggregate_phases_ms": {
            name: spread([record.phases_ms.get(name, 0.0) for record in phases]).p50_ms for name in names
        },
        "small_change_aggregate_strategies": sorted({record.strategy for record in phases}),
    }
