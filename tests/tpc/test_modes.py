"""TPC-H through the engine, on real Spark: IMMEDIATE follows each statement and is what DIFFERENTIAL is, what could not
be followed has no net effect, and stream tables stand on stream tables.

One query each day. `TRICKLE_TPCH=all pytest tests/tpc/test_modes.py` takes all 22 through three cycles.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import islice

import duckdb
import pytest
from deltalake import write_deltalake

from engine.engine import Engine
from engine.errors import ChangeUndone
from engine.lake.session import SparkHost
from engine.records import Outcome
from engine.results import WriteResult
from tests.tpc import tpch_changes
from tests.tpc.suite import TPCH, extension

pytestmark = pytest.mark.spark

EVERYTHING = os.environ.get("TRICKLE_TPCH") == "all"
NUMBERS = [n for n in TPCH.numbers if EVERYTHING or n % 22 == date.today().toordinal() % 22]
CYCLES = 3 if EVERYTHING else 1
FOLLOWED = {Outcome.DIFFERENTIAL, Outcome.NO_DATA}

#: two levels, and one that stands on two of them
CHAIN = {
    "revenues": (
        "SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem GROUP BY l_orderkey"
    ),
    "customers": (
        "SELECT o_custkey, SUM(revenue) AS revenue, COUNT(*) AS orders FROM orders JOIN revenues"
        " ON l_orderkey = o_orderkey GROUP BY o_custkey"
    ),
    "waiting": "SELECT o_custkey, COUNT(*) AS waiting FROM orders WHERE o_orderstatus = 'O' GROUP BY o_custkey",
    "urgent": (
        "SELECT c.o_custkey, c.revenue, w.waiting FROM customers c LEFT JOIN waiting w ON w.o_custkey = c.o_custkey"
        " WHERE c.revenue > 100000"
    ),
}
#: the last of them, from the sources alone
FLAT = """
WITH revenues AS (
  SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem GROUP BY l_orderkey
), customers AS (
  SELECT o_custkey, SUM(revenue) AS revenue FROM orders JOIN revenues ON l_orderkey = o_orderkey GROUP BY o_custkey
), waiting AS (
  SELECT o_custkey, COUNT(*) AS waiting FROM orders WHERE o_orderstatus = 'O' GROUP BY o_custkey
)
SELECT c.o_custkey, c.revenue, w.waiting FROM customers c LEFT JOIN waiting w ON w.o_custkey = c.o_custkey
WHERE c.revenue > 100000
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, spark_host: SparkHost) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("tpch")
    db = duckdb.connect()
    db.execute(f"LOAD '{extension('tpch')}'; {TPCH.generate}")
    for name, columns in TPCH.relations.items():
        chosen = ", ".join(f"CAST({column.name} AS {column.type}) AS {column.name}" for column in columns)
        rows = db.sql(f"SELECT {chosen} FROM {name}").to_arrow_table()
        write_deltalake(folder / name, rows, configuration={"delta.enableChangeDataFeed": "true"})
    Engine.init(folder / "ws")
    with Engine.open(folder / "ws", start_spark=True) as engine:
        engine.wait_for_spark(240)
        for name in TPCH.relations:
            engine.add_source(name, str(folder / name))
        for number in NUMBERS:
            for prefix, mode in (("i", "IMMEDIATE"), ("d", "DIFFERENTIAL")):
                # never due by itself while the tests run
                engine.create_stream_table(f"{prefix}{number}", TPCH.query(number), refresh_mode=mode, schedule="1h")
        yield engine


def rows(engine: Engine, name: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in engine.select(f"SELECT * FROM {name}").to_pylist())


def written(engine: Engine, dml: str) -> WriteResult:
    done = engine.sql(dml).value
    assert isinstance(done, WriteResult)
    assert {each.outcome for each in done.refreshes} <= FOLLOWED, dml
    return done


def test_immediate_is_differential(engine: Engine) -> None:
    """After each cycle of inserts, deletes and updates, of keys too."""
    for cycle in islice(tpch_changes.cycles(7), CYCLES):
        for statement in cycle:
            written(engine, statement.sql)
        for number in NUMBERS:
            assert engine.refresh_stream_table(f"d{number}").outcome in FOLLOWED
            assert rows(engine, f"i{number}") == rows(engine, f"d{number}"), number
            assert engine.verify(f"i{number}").equal, number


ONE_ROW = (
    "INSERT INTO orders VALUES (7000001, 1, 'O', 1000.00, DATE '1995-03-01', '1-URGENT', 'Clerk#1', 0, 'one')",
    "INSERT INTO lineitem VALUES (7000001, 1, 2, 1, 10, 9000.00, 0.05, 0.02, 'R', 'O', DATE '1995-03-20',"
    " DATE '1995-03-21', DATE '1995-03-25', 'NONE', 'MAIL', 'one')",
    "UPDATE lineitem SET l_quantity = 49, l_returnflag = 'A' WHERE l_orderkey = 7000001",
    "UPDATE orders SET o_custkey = 4, o_orderdate = DATE '1993-10-10' WHERE o_orderkey = 7000001",
    "UPDATE customer SET c_mktsegment = 'BUILDING', c_nationkey = 6 WHERE c_custkey = 4",
    "DELETE FROM lineitem WHERE l_orderkey = 7000001",
    "DELETE FROM orders WHERE o_orderkey = 7000001",
)


@pytest.mark.parametrize("dml", ONE_ROW, ids=lambda dml: " ".join(dml.split()[:3]))
def test_a_single_row(engine: Engine, dml: str) -> None:
    written(engine, dml)
    for number in NUMBERS:
        assert engine.verify(f"i{number}").equal, number


def test_what_cannot_be_followed_has_no_net_effect(engine: Engine) -> None:
    strict = "SELECT o_orderkey, CAST(1000 / (o_shippriority - 77) AS INT) AS share FROM orders"
    engine.create_stream_table("strict", strict, refresh_mode="IMMEDIATE", schedule="1h")
    names = ["orders", *(f"i{number}" for number in NUMBERS)]
    before = {name: rows(engine, name) for name in names}
    for dml in (
        "INSERT INTO orders VALUES (7000002, 1, 'O', 1.00, DATE '1995-03-01', '1-URGENT', 'Clerk#1', 77, 'no')",
        "UPDATE orders SET o_shippriority = 77, o_orderdate = DATE '1995-03-02' WHERE o_orderkey < 100",
    ):
        with pytest.raises(ChangeUndone, match="strict could not follow"):
            engine.sql(dml)
        assert {name: rows(engine, name) for name in names} == before
    engine.drop_stream_table("strict")
    for number in NUMBERS:
        assert engine.verify(f"i{number}").equal, number


def test_chains_and_fan_in(engine: Engine) -> None:
    for name, query in CHAIN.items():
        engine.create_stream_table(name, query, refresh_mode="IMMEDIATE", schedule="1h")
    (cycle,) = islice(tpch_changes.cycles(8), 1)
    of_both = [each for each in cycle if each.table in ("orders", "lineitem")]
    for statement in of_both if EVERYTHING else of_both[:5]:
        written(engine, statement.sql)
    for name in CHAIN:
        assert engine.verify(name).equal, name
    flat = Counter(tuple(row.values()) for row in engine.select(FLAT).to_pylist())
    assert rows(engine, "urgent") == flat
    assert flat, "nothing was compared"
