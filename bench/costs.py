"""What refreshes cost, by what they work on: `python -m bench.costs`. The prices of engine/refresh/costs.py come of it.

Each line is the median of some refreshes in a warm JVM. `--short` leaves the largest source out.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.stage import Stage, open_stage
from engine.records import Outcome, RefreshRecord

ROUNDS = 3
WARM_UPS = 8
SOURCE_ROWS = (100_000, 1_000_000, 4_000_000)
CHANGED_ROWS = (100, 10_000, 100_000, 400_000)

QUERIES = {
    "sums": "SELECT customer, COUNT(*) AS n, SUM(amount) AS amount FROM {sales} GROUP BY customer",
    "rows": "SELECT id, customer, amount FROM {sales} WHERE amount > 10",
    "join": (
        "SELECT c.region, COUNT(*) AS n, SUM(s.amount) AS amount "
        "FROM {sales} s JOIN customers c ON s.customer = c.id GROUP BY c.region"
    ),
    "recomputed": "SELECT customer, MAX(amount) AS most, COUNT(DISTINCT id) AS n FROM {sales} GROUP BY customer",
}


@dataclass(frozen=True)
class Line:
    query: str
    what: str
    rows: int
    changed: int
    ms: float

    def __str__(self) -> str:
        return f"{self.query:12} {self.what:14} {self.rows:>10,} rows {self.changed:>8,} changed {self.ms:9.0f} ms"


def main() -> int:
    sizes = SOURCE_ROWS[:2] if "--short" in sys.argv else SOURCE_ROWS
    with open_stage() as stage:
        for line in measured(stage, sizes):
            print(line, flush=True)
    return 0


def measured(stage: Stage, sizes: tuple[int, ...]) -> Iterator[Line]:
    engine, spark = stage.engine, stage.spark
    _write(spark.range(5_000).selectExpr("id", "concat('r', id % 20) AS region"), str(stage.folder / "customers"))
    engine.add_source("customers", str(stage.folder / "customers"))
    for size in sizes:
        sales, path = f"sales{size}", str(stage.folder / f"sales{size}")
        _write(_sales(spark, 0, size), path)
        engine.add_source(sales, path)
        names = {query: f"{query}_{size}" for query in QUERIES}
        for query, name in names.items():
            engine.create_stream_table(name, QUERIES[query].format(sales=sales), refresh_mode="DIFFERENTIAL")
        first = size
        for _ in range(WARM_UPS if size == sizes[0] else 2):
            _append(spark, path, first, 100)
            first += 100
            for name in names.values():
                engine.refresh_stream_table(name)
        for changed in (each for each in CHANGED_ROWS if each <= size):
            spent: dict[str, list[float]] = {query: [] for query in QUERIES}
            for turn in range(ROUNDS):
                if turn % 2 == 0:
                    _append(spark, path, first, changed)
                    first += changed
                else:
                    spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= {first - changed} AND id < {first}")
                for query, name in names.items():
                    done = engine.refresh_stream_table(name)
                    assert done.outcome is Outcome.DIFFERENTIAL, done
                    spent[query].append(_ms(done))
            for query, ms in spent.items():
                yield Line(query, "differential", size, changed, statistics.median(ms))
        spent = {query: [] for query in QUERIES}
        for _ in range(ROUNDS):
            # the same rows again
            spark.read.format("delta").load(path).write.format("delta").mode("overwrite").save(path)
            for query, name in names.items():
                spent[query].append(_ms(engine.refresh_stream_table(name)))
        for query, ms in spent.items():
            yield Line(query, "same rows anew", first, 2 * first, statistics.median(ms))
        for query, name in names.items():
            ms = [_ms(engine.refresh_stream_table(name, full=True)) for _ in range(ROUNDS)]
            yield Line(query, "full", first, 0, statistics.median(ms))


def _ms(record: RefreshRecord) -> float:
    return sum(record.phases_ms.values())


def _sales(spark: Any, first: int, rows: int) -> Any:
    return spark.range(first, first + rows).selectExpr(
        "id", "id * 7919 % 5000 AS customer", "CAST((id % 10000) / 100 AS DECIMAL(12,2)) AS amount"
    )


def _append(spark: Any, path: str, first: int, rows: int) -> None:
    _sales(spark, first, rows).coalesce(1).write.format("delta").mode("append").save(path)


def _write(frame: Any, path: str) -> None:
    frame.repartition(4).write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)


if __name__ == "__main__":
    sys.exit(main())
