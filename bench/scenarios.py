"""Ten kinds of query over sources of several sizes, under small and large changes.

For each: a differential refresh, a full one by Spark, and the same computed anew by DuckDB from the same files. The
three take turns within one run. A change is one commit that inserts, updates and deletes (6 : 3 : 1) in `orders`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import duckdb

from bench.reads import counted
from bench.sources import DELETE, INSERT, OP, UPDATE, Source, duckdb_over, recompute_ms
from bench.stage import Stage, timed_ms
from engine.records import Outcome, RefreshRecord

#: rows of `orders`; of changed rows, the share of these
SIZES, FRACTIONS = (100_000,), (0.001, 0.05, 0.5)
ALL_SIZES, ALL_FRACTIONS = (10_000, 100_000, 1_000_000), (0.0001, 0.001, 0.01, 0.1, 0.5)
ROUNDS = 3
#: odd, and with no factor in common with any size: numbers times it, modulo the size, come in no order
STRIDE = 7_919

ORDER = """
    {id} AS id, CAST({id} * 31 % {customers} AS BIGINT) AS customer, CAST({id} * 17 % 500 AS INT) AS product,
    CAST(({id} + {salt}) % 9 + 1 AS INT) AS quantity,
    CAST(({id} * 37 + {salt} * 11) % 100000 / 100 AS DECIMAL(12, 2)) AS amount
"""

SCENARIOS = {
    "scan": "SELECT id, customer, product, quantity, amount FROM orders",
    "filter": "SELECT id, amount FROM orders WHERE quantity > 6 AND amount > 100",
    "join": "SELECT o.id, c.region, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "aggregate": (
        "SELECT product, COUNT(*) AS n, SUM(amount) AS amount, AVG(quantity) AS mean FROM orders GROUP BY product"
    ),
    "join_aggregate": (
        "SELECT c.region, o.product, SUM(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id"
        " GROUP BY c.region, o.product"
    ),
    "window": (
        "SELECT id, customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place"
        " FROM orders"
    ),
    "top_k": "SELECT id, customer, amount FROM orders ORDER BY amount DESC, id LIMIT 100",
    "distinct": "SELECT DISTINCT customer, product FROM orders",
    "union": (
        "SELECT id, amount FROM orders WHERE quantity = 1 UNION ALL SELECT id, -amount FROM orders WHERE quantity = 9"
    ),
    "semi_join": (
        "SELECT id, segment FROM customers c"
        " WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.amount > 900)"
    ),
}


@dataclass
class World:
    """One size of everything."""

    stage: Stage
    rows: int
    orders: Source
    customers: Source
    #: of the rows that were there at first, how many were touched
    touched: int = 0
    commits: int = 0

    @staticmethod
    def made(stage: Stage, rows: int) -> World:
        folder = stage.folder / f"scenarios_{rows}"
        folder.mkdir()
        customers = max(rows // 20, 10)
        with duckdb.connect() as db:
            order = ORDER.format(id="range", customers=customers, salt=0)
            db.execute(f"COPY (SELECT {order} FROM range({rows})) TO '{folder}/orders.parquet'")
            db.execute(
                f"COPY (SELECT range AS id, 'r' || range % 25 AS region, 's' || range % 5 AS segment"
                f" FROM range({customers})) TO '{folder}/customers.parquet'"
            )
        world = World(
            stage, rows, Source(folder, f"orders_{rows}", ("id",)), Source(folder, f"customers_{rows}", ("id",))
        )
        files = max(1, min(8, rows // 50_000))
        world.orders.create(stage, f"{folder}/orders.parquet", files)
        world.customers.create(stage, f"{folder}/customers.parquet", 1)
        return world

    def query(self, scenario: str) -> str:
        text = SCENARIOS[scenario]
        for source in (self.orders, self.customers):
            text = text.replace(source.name.removesuffix(f"_{self.rows}"), source.name)
        return text

    def change(self, fraction: float) -> None:
        """No row is touched twice, as long as there are others."""
        changed = max(10, round(self.rows * fraction))
        updated, deleted = changed * 3 // 10, changed // 10
        inserted = changed - updated - deleted
        first, self.touched = self.touched, self.touched + updated + deleted
        self.commits += 1
        new = ORDER.format(id="id", customers=max(self.rows // 20, 10), salt=self.commits)
        with duckdb.connect() as db:
            rows = db.sql(
                f"WITH touched AS (SELECT range AS place, (range * {STRIDE}) % {self.rows} AS id"
                f" FROM range({first}, {self.touched})),"
                f" fresh AS (SELECT {self.rows * (self.commits + 1)} + range AS id FROM range({inserted}))"
                f" SELECT {new}, '{INSERT}' AS {OP} FROM fresh"
                f" UNION ALL SELECT {new}, CASE WHEN place < {first + updated} THEN '{UPDATE}' ELSE '{DELETE}' END"
                f" FROM touched"
            ).to_arrow_table()
        self.orders.change(rows)


def measure(stage: Stage, sizes: tuple[int, ...], fractions: tuple[float, ...], rounds: int = ROUNDS) -> dict[str, Any]:
    return {"scenarios": [case for rows in sizes for case in _of_size(World.made(stage, rows), fractions, rounds)]}


def _of_size(world: World, fractions: tuple[float, ...], rounds: int) -> Iterator[dict[str, Any]]:
    engine = world.stage.engine
    names = {scenario: f"{scenario}_{world.rows}" for scenario in SCENARIOS}
    for scenario, name in names.items():
        engine.create_stream_table(name, world.query(scenario), schedule="1h", refresh_mode="DIFFERENTIAL")
    for fraction in fractions:
        found: dict[str, list[dict[str, Any]]] = {scenario: [] for scenario in SCENARIOS}
        # the first is not counted: code gets compiled
        for number in range(rounds + 1):
            world.change(fraction)
            with duckdb_over((world.orders, world.customers)) as db:
                for scenario, name in names.items():
                    turn = _turn(world, name, db, world.query(scenario))
                    if number:
                        found[scenario].append(turn)
        for scenario, turns in found.items():
            yield {"scenario": scenario, "rows": world.rows, "fraction": fraction} | _medians(turns)
    for name in names.values():
        assert engine.verify(name).equal, name


def _turn(world: World, name: str, db: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """After a change, before which all three knew the same."""
    records: list[RefreshRecord] = []
    engine = world.stage.engine
    with counted(world.stage) as read:
        refresh_ms = timed_ms(lambda: records.append(engine.refresh_stream_table(name)))
    assert records[0].outcome is Outcome.DIFFERENTIAL, records[0]
    with counted(world.stage) as read_full:
        full_ms = timed_ms(lambda: engine.refresh_stream_table(name, full=True))
    return {
        "refresh_ms": refresh_ms,
        "full_ms": full_ms,
        "duckdb_ms": recompute_ms(db, query, world.stage.folder),
        "rows_read": read.rows,
        "bytes_read": read.bytes,
        "full_rows_read": read_full.rows,
        "full_bytes_read": read_full.bytes,
        "rows_in": records[0].rows_in,
        "rows_written": records[0].rows_inserted + records[0].rows_updated + records[0].rows_deleted,
        "strategy": records[0].strategy,
        "phases_ms": records[0].phases_ms,
    }


def _medians(turns: list[dict[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key, value in turns[0].items():
        match value:
            case dict():
                told[key] = {name: round(median(turn[key].get(name, 0.0) for turn in turns), 2) for name in value}
            case str():
                told[key] = ", ".join(sorted({turn[key] for turn in turns}))
            case float():
                told[key] = round(median(turn[key] for turn in turns), 2)
            case _:
                told[key] = int(median(turn[key] for turn in turns))
    told["speedup"] = round(told["full_ms"] / told["refresh_ms"], 2)
    return told
