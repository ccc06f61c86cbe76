"""A full refresh, against the plain Spark CREATE TABLE … AS SELECT of the same query.

Both run in one session with one set of settings, in turn, and each measures from asking until its commit can be read.
The plain table is new each time: no Change Data Feed, no deletion vectors, no stamp, no columns of ours. Two queries:
rows without a key, where each stored row gets an id of its own, and an aggregate. The headline is the worse of both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.stage import Stage, spread, timed_ms
from engine.lake import quoting, tables
from engine.lake.heads import HeadReader
from engine.records import Outcome, RefreshRecord

ROWS = 2_000_000
FILES = 8
WARM_UPS = 2
#: odd, as a median wants it
ROUNDS = 5

COLUMNS = (
    "id",
    "abs(xxhash64(id) % 50000) AS customer",
    "CAST(abs(xxhash64(id, 1) % 2000) AS INT) AS product",
    "CAST(abs(xxhash64(id, 2) % 9) + 1 AS INT) AS quantity",
    "CAST(abs(xxhash64(id, 3) % 1000000) / 100 AS DECIMAL(12,2)) AS amount",
    "timestamp_seconds(1700000000 + id * 3) AS placed_at",
)


@dataclass(frozen=True)
class Case:
    """One query, with `{source}` where it reads."""

    key: str
    query: str


CASES = (
    Case(
        "rows",
        "SELECT customer, product, quantity, amount, placed_at, amount * quantity AS total\n"
        "FROM {source}\nWHERE quantity > 1",
    ),
    Case(
        "aggregate",
        "SELECT customer, COUNT(*) AS orders, SUM(quantity) AS pieces, SUM(amount) AS amount, AVG(amount) AS mean\n"
        "FROM {source}\nGROUP BY customer",
    ),
)


def measure(stage: Stage, rounds: int = ROUNDS) -> dict[str, Any]:
    source = stage.folder / "purchases"
    made = stage.spark.range(ROWS).selectExpr(*COLUMNS).repartition(FILES)
    made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(source))
    stage.engine.add_source("purchases", str(source))
    numbers: dict[str, Any] = {"full_over_ctas_ratio": 0.0}
    for case in CASES:
        found = compare(stage, case, str(source), rounds)
        numbers |= found
        numbers["full_over_ctas_ratio"] = max(numbers["full_over_ctas_ratio"], found[f"full_{case.key}_ratio"])
    return numbers


def compare(stage: Stage, case: Case, source: str, rounds: int) -> dict[str, Any]:
    name = f"full_{case.key}"
    created = stage.engine.create_stream_table(name, case.query.format(source="purchases"), schedule="1h")
    heads = HeadReader()
    records: list[RefreshRecord] = []

    def refresh() -> None:
        before = heads.head(created.table.path).version
        records.append(stage.engine.refresh_stream_table(name, full=True))
        assert records[-1].outcome is Outcome.FULL, records[-1]
        assert heads.head(created.table.path).version > before

    plain = stage.folder / f"plain_{case.key}"
    query = case.query.format(source=quoting.table(source))

    def ctas() -> None:
        stage.spark.sql(f"CREATE TABLE {quoting.table(str(plain))} USING delta AS {query}")

    def ctas_ms() -> float:
        shutil.rmtree(plain, ignore_errors=True)
        return timed_ms(ctas)

    sides: tuple[tuple[list[float], Callable[[], float]], ...] = (
        (full_ms := [], lambda: timed_ms(refresh)),
        (plain_ms := [], ctas_ms),
    )
    for number in range(WARM_UPS + rounds):
        # whoever comes second finds the machine as the first one left it: they take turns
        for measured, side in sides if number % 2 else reversed(sides):
            measured.append(side())
    # a small change leaves other settings behind: both sides must have run with those for large ones
    assert stage.spark.conf.get("spark.sql.adaptive.enabled") == "true"
    assert tables.pin(str(plain)).rows() == tables.pin(created.table.path).rows()
    del full_ms[:WARM_UPS], plain_ms[:WARM_UPS], records[:WARM_UPS]
    return {
        f"full_{case.key}_ratio": spread(full_ms).p50_ms / spread(plain_ms).p50_ms,
        f"full_{case.key}_ms": spread(full_ms).p50_ms,
        f"full_{case.key}_plain_ms": spread(plain_ms).p50_ms,
        f"full_{case.key}_phases_ms": {
            phase: spread([record.phases_ms[phase] for record in records]).p50_ms for phase in records[0].phases_ms
        },
    }
