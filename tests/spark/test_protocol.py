"""The protocol's promises on real Spark and Delta, where another program decides what is kept and what is skipped."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from engine.engine import Engine
from engine.errors import SourceDropped
from engine.event_records import EventKind
from engine.lake import log, stamp, tables
from engine.lake.session import SparkHost
from engine.records import Initiator, Outcome, ReasonCode
from tests.spark.shop import BY_REGION, PAID, Shop, holds, opened, order

DAY_S = 86_400


# ---------------------------------------------------------------- the catalog is lost


def test_the_tables_bring_the_catalog_back(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    home = tmp_path / "ws"
    with opened(home, shop) as engine:
        engine.create_stream_table("by_region", BY_REGION, schedule="5m", comment="what a region pays")
        engine.create_stream_table("large", "SELECT region, total FROM by_region WHERE total > 10")
        before = {table.name: table for table in engine.stream_tables()}
    for file in (home / ".trickle").glob("catalog.db*"):
        file.unlink()
    shop.insert("orders", order(900, 1, 5_000))
    with Engine.open(home, start_spark=True) as engine:
        assert engine.stream_tables() == ()
        found = engine.repair()
        assert found.complete
        assert {each.name for each in found.repairs} >= {"by_region", "large", "orders", "customers"}
        assert {table.name: table for table in engine.stream_tables()} == before
        assert engine.repair().repairs == ()
        for name in ("by_region", "large"):
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
            holds(engine, name)


def test_repair_mends_one_table(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        path = engine.stream_table("paid").path
        assert engine.repair_stream_table("paid").repairs == ()
        tables.set_properties(path, {"delta.enableChangeDataFeed": "false"})
        (repair,) = engine.repair_stream_table("paid").repairs
        assert "delta.enableChangeDataFeed" in repair.text
        assert tables.cdf_enabled(path)
        DeltaTable(path).delete("id < 10")
        (repair,) = engine.repair_stream_table("paid").repairs
        assert not repair.mended
        assert "somebody else changed its rows or columns" in repair.text
        tables.remove(path, tmp_path / "ws" / ".trickle" / "warehouse")
        (repair,) = engine.repair_stream_table("paid").repairs
        assert "empty until its next refresh" in repair.text
        assert engine.refresh_stream_table("paid").outcome is Outcome.FULL
        holds(engine, "paid")


# ---------------------------------------------------------------- what a query means


def test_a_function_with_another_body_is_another_query(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        session = spark_host.session()
        name = f"fee_{os.getpid()}"
        session.sql(f"CREATE OR REPLACE FUNCTION {name}(x DECIMAL(12,2)) RETURNS DECIMAL(12,2) RETURN x + 1")
        try:
            engine.create_stream_table("fees", f"SELECT id, {name}(amount) AS fee FROM orders")
            holds(engine, "fees")
            session.sql(f"CREATE OR REPLACE FUNCTION {name}(x DECIMAL(12,2)) RETURNS DECIMAL(12,2) RETURN x + 2")
            shop.insert("orders", order(901, 1, 100))
            done = engine.refresh_stream_table("fees")
            assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)
            holds(engine, "fees")
            shop.insert("orders", order(902, 1, 100))
            assert engine.refresh_stream_table("fees").outcome is not Outcome.REINITIALIZE
        finally:
            session.sql(f"DROP FUNCTION {name}")


@pytest.mark.parametrize(
    ("setting", "other"), [("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")]
)
def test_another_zone_or_mode_is_another_query(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, setting: str, other: str
) -> None:
    """They are fixed; a program in which they are fixed otherwise must not go on with what this one stored."""
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        shop.insert("orders", order(904, 1, 100))
        conf = spark_host.session().conf
        usual = conf.get(setting)
        conf.set(setting, other)
        try:
            engine._core.plans.forget(engine.stream_table("paid").id)
            done = engine.refresh_stream_table("paid")
        finally:
            conf.set(setting, usual)
        assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)


# ---------------------------------------------------------------- retention


def age(path: str, days: int) -> None:
    """The log, as if its commits had been made so long ago: Delta goes by the times of the files."""
    at = time.time() - days * DAY_S
    for file in log.log_folder(path).iterdir():
        os.utime(file, (at, at))


def insert_by_spark(spark: Any, path: str, row: str) -> None:
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ({row})")


@pytest.mark.parametrize("commits_before", [3, 9], ids=["without a checkpoint", "whose commit makes a checkpoint"])
@pytest.mark.parametrize("query", [PAID, BY_REGION], ids=["the change alone", "the old version too"])
def test_a_source_that_was_quiet_for_a_month_is_differential(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, query: str, commits_before: int
) -> None:
    """One commit after 40 days, which lets Delta clean up all that is older than 30."""
    spark = spark_host.session()
    with opened(tmp_path / "ws", shop) as engine:
        for number in range(commits_before - log.newest_version(shop.path("orders"))):
            insert_by_spark(spark, shop.path("orders"), f"{1_000 + number}, 1, 10.00, 'paid'")
            insert_by_spark(spark, shop.path("customers"), f"{1_000 + number}, 'far'")
        engine.create_stream_table("st", query)
        for name in ("orders", "customers"):
            age(shop.path(name), 40)
        insert_by_spark(spark, shop.path("orders"), "2000, 1, 10.00, 'paid'")
        spark.sql(f"UPDATE delta.`{shop.path('customers')}` SET region = 'r9' WHERE id = 1")
        for name in ("orders", "customers"):
            gone = log.oldest_version(shop.path(name)) == 10
            assert gone is (commits_before == 9), "Delta kept what this test wants to be gone, or the other way round"
        done = engine.refresh_stream_table("st")
        assert done.outcome is Outcome.DIFFERENTIAL, done.reason
        holds(engine, "st")


def test_a_source_that_was_really_vacuumed_says_so(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    spark = spark_host.session()
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        path = shop.path("orders")
        shop.table("orders").update({"amount": "amount + 1"}, predicate="id < 20")
        shop.table("orders").delete("id = 3")
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
        assert not list(Path(path, "_change_data").rglob("*.parquet"))
        done = engine.refresh_stream_table("by_region")
        assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.HISTORY_LOST)
        assert EventKind.REINITIALIZE_NEEDED in {event.kind for event in engine.events()}
        holds(engine, "by_region")


def test_a_source_that_is_gone_says_so(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        tables.remove(shop.path("orders"), tmp_path)
        with pytest.raises(SourceDropped):
            engine.refresh_stream_table("paid")


# ---------------------------------------------------------------- the lease


def test_who_lost_the_lease_commits_nothing(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        shop.insert("orders", order(903, 1, 100))
        table = engine.stream_table("paid")
        version = log.newest_version(table.path)
        mine = engine._lease.acquire()
        engine._lease.release(mine)
        theirs = engine._lease.acquire()
        refresher = engine._core.refresher
        with pytest.raises(Exception, match="another process runs the scheduler"):
            refresher.refresh(table, asked_full=False, initiated_by=Initiator.SCHEDULER, epoch=mine)
        assert log.newest_version(table.path) == version
        done = refresher.refresh(table, asked_full=False, initiated_by=Initiator.SCHEDULER, epoch=theirs)
        assert done.outcome is Outcome.DIFFERENTIAL
        last = stamp.last_stamp(table.path, log.newest_version(table.path))
        assert last is not None
        assert last.stamp.lease_epoch == theirs
