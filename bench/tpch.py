"""TPC-H: all 22 queries as stream tables, and the standard's refresh functions between refreshes.

Orders come with their lines (RF1) and others go with theirs (RF2), two commits to each of two tables. A query counts
where it reads one of the two. Each is refreshed in AUTO, then recomputed in full (warm, AQE on, an overwrite), then by
DuckDB from the same files; in the end every stream table is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any

import duckdb

from bench.reads import counted
from bench.sources import Source, duckdb_over, recompute_ms
from bench.stage import Stage, timed_ms
from engine.records import RefreshRecord
from tests.tpc.suite import TPCH, extension

KEYS = {
    "region": ("r_regionkey",), "nation": ("n_nationkey",), "supplier": ("s_suppkey",), "customer": ("c_custkey",),
    "part": ("p_partkey",), "partsupp": ("ps_partkey", "ps_suppkey"), "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}  # fmt: skip
CHANGING = ("orders", "lineitem")
FILES = {"lineitem": 8, "orders": 4, "partsupp": 2}
ROUNDS = 3
#: the generator uses eight keys of each 32, and new orders take others of them
OLD_KEYS, ALL_KEYS = 8, 32


@dataclass
class World:
    stage: Stage
    scale: float
    sources: dict[str, Source]
    db: duckdb.DuckDBPyConnection
    commits: int = 0

    @staticmethod
    def made(stage: Stage, scale: float) -> World:
        folder = stage.folder / f"tpch_{scale:g}".replace(".", "_")
        folder.mkdir()
        db = duckdb.connect(config={"memory_limit": "6GB"})
        db.execute(f"LOAD '{extension('tpch')}'")
        db.execute(f"CALL dbgen(sf = {scale})")
        suffix = folder.name
        sources = {name: Source(folder, f"{name}_{suffix}", key) for name, key in KEYS.items()}
        for name, source in sources.items():
            chosen = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in TPCH.relations[name])
            db.execute(f"COPY (SELECT {chosen} FROM {name}) TO '{folder}/{name}.parquet'")
            source.create(stage, f"{folder}/{name}.parquet", FILES.get(name, 1) if scale >= 0.1 else 1)
        return World(stage, scale, sources, db)

    def query(self, number: int) -> str:
        """With the names of this world's tables, each under its own name in the query."""
        import sqlglot
        from sqlglot import exp as e

        tree = sqlglot.parse_one(TPCH.query(number), dialect="spark")
        for table in tree.find_all(e.Table):
            if table.name in self.sources:
                alias = table.alias or table.name
                table.replace(e.alias_(e.to_table(self.sources[table.name].name), alias, table=True))
        return tree.sql("spark", pretty=True)

    def change(self, orders: int) -> None:
        """RF1 and RF2: so many orders come, so many go, the oldest first."""
        self.commits += 1
        # copies of orders from all over, with keys that the generator leaves out
        new_key = f"- {{0}} % {OLD_KEYS} + {{0}} % {OLD_KEYS} + {OLD_KEYS} * (1 + {self.commits} % 3)"
        step = max(1, int(1_500_000 * self.scale) // orders)
        picked = (
            f"SELECT o_orderkey FROM (SELECT o_orderkey, row_number() OVER (ORDER BY o_orderkey) AS place FROM orders)"
            f" WHERE (place + {self.commits * 13}) % {step} = 0 LIMIT {orders}"
        )
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            columns = ", ".join(
                f"CAST({c.name} {new_key.format(key) if c.name == key else ''} AS {c.type}) AS {c.name}"
                for c in TPCH.relations[name]
            )
            rows = self.db.sql(f"SELECT {columns} FROM {name} WHERE {key} IN ({picked})").to_arrow_table()
            self.sources[name].append(rows)
        first = (self.commits - 1) * orders
        gone = f"SELECT o_orderkey FROM orders ORDER BY o_orderkey LIMIT {orders} OFFSET {first}"
        for name, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            rows = self.db.sql(f"SELECT {', '.join(KEYS[name])} FROM {name} WHERE {key} IN ({gone})").to_arrow_table()
            self.sources[name].remove(rows)


@dataclass(frozen=True)
class Turn:
    refresh_ms: float
    full_ms: float
    duckdb_ms: float
    record: RefreshRecord
    rows_read: int
    bytes_read: int


def measure(stage: Stage, scale: float, fractions: tuple[float, ...], rounds: int = ROUNDS) -> dict[str, Any]:
    """The first fraction is the one that the headline numbers speak of."""
    world = World.made(stage, scale)
    names = _created(world)
    cases = [case for fraction in fractions for case in _of_fraction(world, names, fraction, rounds)]
    for name in names.values():
        assert stage.engine.verify(name).equal, name
    world.db.close()
    changed = [case for case in cases if case["fraction"] == fractions[0] and case["changed"]]
    speedups = [case["speedup"] for case in changed]
    full_ms, refresh_ms = (sum(case[key] for case in changed) for key in ("full_ms", "refresh_ms"))
    return {
        "tpch_sf": scale,
        "tpch_change_fraction": fractions[0],
        "tpch_speedup_sum": full_ms / refresh_ms,
        "tpch_speedup_geomean": exp(sum(map(log, speedups)) / len(speedups)),
        "tpch_speedup_min": min(speedups),
        "tpch_over_duckdb_sum": refresh_ms / sum(case["duckdb_ms"] for case in changed),
        "tpch": cases,
    }


def growth(stage: Stage, small: float, large: float, rounds: int = ROUNDS) -> dict[str, Any]:
    """The same change of sources ten times as large: what a refresh costs then, in the median query of each kind."""
    orders = max(10, round(1_500_000 * small / 1_000))
    took: dict[float, dict[int, float]] = {}
    for scale in (small, large):
        world = World.made(stage, scale)
        names = _created(world, AGGREGATES + JOINS)
        measured: dict[int, list[float]] = {number: [] for number in names}
        for turn in range(rounds + 1):
            world.change(orders)
            for number, name in names.items():
                ms = timed_ms(lambda name=name: stage.engine.refresh_stream_table(name))
                if turn:
                    measured[number].append(ms)
        took[scale] = {number: median(all_ms) for number, all_ms in measured.items()}
        world.db.close()
    grown = {number: took[large][number] / took[small][number] for number in took[small]}
    return {
        "growth_aggregate_ratio": median(grown[number] for number in AGGREGATES),
        "growth_join_ratio": median(grown[number] for number in JOINS),
        "growth_scales": [small, large],
        "growth_changed_orders": orders,
        "growth": {f"q{number:02}": round(ratio, 2) for number, ratio in grown.items()},
    }


#: of one table alone, and of several inner joins
AGGREGATES, JOINS = (1, 6), (3, 5, 7, 8, 9, 10, 12, 14)


def _created(world: World, numbers: tuple[int, ...] = TPCH.numbers) -> dict[int, str]:
    suffix = f"tpch_{world.scale:g}".replace(".", "_")
    names = {number: f"q{number:02}_{suffix}" for number in numbers}
    for number, name in names.items():
        world.stage.engine.create_stream_table(name, world.query(number), schedule="1h")
    return names


def _of_fraction(world: World, names: dict[int, str], fraction: float, rounds: int) -> list[dict[str, Any]]:
    orders = max(1, round(1_500_000 * world.scale * fraction))
    turns: dict[int, list[Turn]] = {number: [] for number in names}
    for turn in range(rounds + 1):
        world.change(orders)
        with duckdb_over(tuple(world.sources.values())) as db:
            for number, name in names.items():
                found = _turn(world, name, db, world.query(number))
                if turn:  # the first compiles code
                    turns[number].append(found)
    return [_case(world, number, fraction, turns[number]) for number in names]


def _turn(world: World, name: str, db: duckdb.DuckDBPyConnection, query: str) -> Turn:
    engine, records = world.stage.engine, []
    with counted(world.stage) as read:
        refresh_ms = timed_ms(lambda: records.append(engine.refresh_stream_table(name)))
    full_ms = timed_ms(lambda: engine.refresh_stream_table(name, full=True))
    took_ms = recompute_ms(db, query, world.stage.folder)
    return Turn(refresh_ms, full_ms, took_ms, records[0], read.rows, read.bytes)


def _case(world: World, number: int, fraction: float, turns: list[Turn]) -> dict[str, Any]:
    refresh_ms, full_ms = median(turn.refresh_ms for turn in turns), median(turn.full_ms for turn in turns)
    last = turns[-1].record
    return {
        "query": f"q{number:02}",
        "scale": world.scale,
        "fraction": fraction,
        "changed": any(world.sources[name].name in world.query(number) for name in CHANGING),
        "refresh_ms": round(refresh_ms, 1),
        "full_ms": round(full_ms, 1),
        "duckdb_ms": round(median(turn.duckdb_ms for turn in turns), 1),
        "speedup": round(full_ms / refresh_ms, 2),
        "outcome": ", ".join(sorted({turn.record.outcome.value for turn in turns})),
        "strategy": last.strategy,
        "rows_in": last.rows_in,
        "rows_written": last.rows_inserted + last.rows_updated + last.rows_deleted,
        "rows_read": int(median(turn.rows_read for turn in turns)),
        "bytes_read": int(median(turn.bytes_read for turn in turns)),
        "phases_ms": {name: round(ms, 1) for name, ms in last.phases_ms.items()},
    }
