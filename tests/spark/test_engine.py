"""The engine on real Spark and Delta: the promise after every change, and the way it was kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from engine.errors import RefreshSkipped
from engine.explain_text import text_of
from engine.lake import log, stamp, tables
from engine.lake.session import SparkHost
from engine.records import Initiator, Outcome, ReasonCode, State
from tests.spark.shop import BY_REGION, PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark

QUERIES = {
    "by_region": BY_REGION,
    "paid": PAID,
    "large": "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) > 100",
    "totals": "SELECT COUNT(*) AS n, SUM(amount) AS total, COUNT(customer) AS known FROM orders",
    "chained": "SELECT region, total FROM by_region WHERE orders > 3",
}


def changes(shop: Shop) -> None:
    """Everything that can happen to rows between two refreshes, all at once and twice over."""
    shop.insert("orders", order(100, 2, 999), order(100, 2, 999), order(101, None, None, None), order(102, 9, 1))
    shop.table("orders").delete("id < 8")
    shop.table("orders").update(predicate="id = 20", updates={"customer": "1", "amount": "77.70"})
    shop.table("customers").update(predicate="id = 1", updates={"region": "'moved'"})


@pytest.mark.parametrize(
    ("settings", "strategies"),
    [
        ({}, {"append from driver", "merge from driver"}),
        ({"refresh__max_driver_delta_rows": "1"}, {"append by spark", "merge by spark"}),
    ],
    ids=["driver", "spark"],
)
def test_equal_after_every_change_and_never_by_recomputing(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, settings: dict[str, str], strategies: set[str]
) -> None:
    with opened(tmp_path / "ws", shop, **settings) as engine:
        for name, query in QUERIES.items():
            made = engine.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", schedule="10s")
            assert made.refresh is not None
            assert made.refresh.reason.code is ReasonCode.NOT_POPULATED
        used = set()
        shop.insert("orders", order(90, 3, 500), order(91, 4, 700))
        for step in range(3):
            for record in engine.refresh_all():
                assert record.outcome is Outcome.DIFFERENTIAL, (record.st, step, record.reason)
                used.add(record.strategy)
            for name in QUERIES:
                holds(engine, name)
            changes(shop)
        assert used == strategies


def test_without_a_change_there_is_no_spark_job_and_no_commit(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        path = engine.stream_table("by_region").path
        version = tables.pin(path).version
        tracker = spark_host.session().sparkContext.statusTracker()
        before = set(tracker.getJobIdsForGroup(None))
        records = [engine.refresh_stream_table("by_region") for _ in range(5)]
        assert {record.outcome for record in records} == {Outcome.NO_DATA}
        assert set(tracker.getJobIdsForGroup(None)) == before
        assert not any(tracker.getJobIdsForGroup(record.refresh_id) for record in records)
        assert tables.pin(path).version == version


def test_maintenance_of_a_source_is_not_a_change(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        shop.insert("orders", order(90, 3, 500))
        engine.refresh_stream_table("by_region")
        shop.table("orders").optimize.compact()
        assert engine.refresh_stream_table("by_region").outcome is Outcome.NO_DATA
        holds(engine, "by_region")


def test_the_last_stamp_says_what_the_rows_stand_for(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        shop.insert("orders", order(90, 3, 500))
        record = engine.refresh_stream_table("by_region")
        table = engine.stream_table("by_region")
        written = stamp.last_stamp(table.path, log.newest_version(table.path))
        assert written is not None
        assert written.stamp.refresh_id == record.refresh_id
        assert written.stamp.sequence == 2
        assert {name: at.version for name, at in written.stamp.frontier.items()} == {"orders": 1, "customers": 0}
        assert written.stamp.fingerprint == table.fingerprint


def test_a_new_process_goes_on_where_the_log_says(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        engine.create_stream_table("paid", PAID)
    changes(shop)
    with opened(tmp_path / "ws", shop) as engine:
        # what the catalog remembers is only a cache: lose it, and the log still tells
        for table in engine.stream_tables():
            from dataclasses import replace

            progress = engine._catalog.get_progress(table.id)
            engine._catalog.save_progress(replace(progress, sequence=0, frontier=None, populated=False))
        for record in engine.refresh_all():
            assert record.outcome is Outcome.DIFFERENTIAL, record.reason
        holds(engine, "by_region")
        holds(engine, "paid")


def test_two_engines_refresh_the_same_table_once_each(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as one, opened(tmp_path / "ws", shop) as other:
        one.create_stream_table("paid", PAID)
        for number in range(3):
            shop.insert("orders", order(200 + number, 1, 100))
            first, second = (one, other) if number % 2 else (other, one)
            assert first.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
            assert second.refresh_stream_table("paid").outcome is Outcome.NO_DATA
        holds(one, "paid")


def test_an_unsupported_query_is_recomputed_and_says_where_and_why(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    query = "SELECT id, paid\nFROM orders PIVOT (SUM(amount) FOR (status, customer) IN (('paid', 1) AS paid))"
    with opened(tmp_path / "ws", shop) as engine:
        made = engine.create_stream_table("turned", query)
        assert made.table.full_reason is not None
        assert made.table.full_reason.code is ReasonCode.UNSUPPORTED
        assert str(made.table.full_reason.position) == "line 2, column 6"
        assert any("PIVOT" in notice.text for notice in made.notices)
        changes(shop)
        record = engine.refresh_stream_table("turned")
        assert (record.outcome, record.reason.code) == (Outcome.FULL, ReasonCode.UNSUPPORTED)
        assert engine.status("turned").effective_mode == "full"
        holds(engine, "turned")
        assert engine.refresh_stream_table("turned").outcome is Outcome.NO_DATA


def test_readers_see_no_hidden_column(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        assert engine.preview("by_region").column_names == ["region", "total", "mean", "orders"]
        rows = engine.sql("SELECT * FROM by_region ORDER BY region").rows
        assert rows.column_names == ["region", "total", "mean", "orders"]
        hidden = {column.name for column in tables.columns(engine.stream_table("by_region").path)} - {
            *rows.column_names
        }
        assert hidden
        assert all(name.startswith("__trickle") for name in hidden)


def test_scheduler_refreshes_what_changes_until_it_is_stopped(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION, schedule="1s")
        engine.create_stream_table("chained", QUERIES["chained"], schedule="1s")
        seen: list[str] = []
        engine.subscribe(lambda event: seen.append(f"{event.subject} {event.kind}"))
        assert engine.start_scheduler().place == "here"
        shop.insert("orders", order(300, 1, 100))
        _until(lambda: {"by_region refresh_completed", "chained refresh_completed"} <= set(seen))
        last = engine.history("by_region", limit=50)
        assert Outcome.DIFFERENTIAL in {each.outcome for each in last}
        assert {each.initiated_by for each in last if each.outcome is Outcome.DIFFERENTIAL} == {Initiator.SCHEDULER}
        engine.pause_stream_table("by_region")
        assert engine.status("by_region").state is State.PAUSED
        engine.stop_scheduler(drain_timeout_s=30)
        count = len(engine.history(limit=1000))
        shop.insert("orders", order(301, 1, 100))
        assert len(engine.history(limit=1000)) == count
        assert engine.scheduler_status().place == "off"


def test_a_second_scheduler_waits_for_the_first(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as one, opened(tmp_path / "ws", shop) as other:
        assert one.start_scheduler().place == "here"
        status = other.start_scheduler()
        assert status.place == "held"
        one.stop_scheduler()
        _until(lambda: other.scheduler_status().place == "here")


def test_cancel_leaves_no_trace(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    import threading

    from engine.errors import RefreshCancelled

    # Some ten seconds of work for one core, and not more: Spark's tasks look for their end once a batch of rows read,
    # which is all of this table, so the core is busy until then.
    slow = "SELECT SUM(o.id * a.id * b.id % 7) AS n, COUNT(*) AS m FROM orders o" + "".join(
        f" CROSS JOIN orders {alias}" for alias in "abc"
    )
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("slow", slow, initialize=False)
        failure: list[BaseException] = []

        def run() -> None:
            try:
                engine.refresh_stream_table("slow")
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        _until(
            lambda: any(each.phase == "run" for each in engine.overview().scheduler.running) or not thread.is_alive()
        )
        with pytest.raises(RefreshSkipped):
            engine.refresh_stream_table("slow")
        assert engine.cancel_refresh("slow")
        thread.join(60)
        assert not thread.is_alive()
        assert [type(each) for each in failure] == [RefreshCancelled]
        assert tables.pin(engine.stream_table("slow").path).version == 0
        assert engine.status("slow").state is State.UNPOPULATED
        assert not engine.cancel_refresh("slow")


def test_everything_goes_through_sql(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        made = engine.sql(
            f"CREATE STREAM TABLE by_region WITH (schedule = '5s', refresh_mode = 'DIFFERENTIAL') AS {BY_REGION}"
        )
        assert made.value.created
        assert not engine.sql(f"CREATE STREAM TABLE IF NOT EXISTS by_region AS {BY_REGION}").value.created
        assert engine.sql("INSERT INTO orders VALUES (500, 1, 12.50, 'paid')").value.version == 1
        assert engine.sql("UPDATE orders SET amount = amount + 1 WHERE id < 10").value.version == 2
        assert engine.sql("DELETE FROM orders WHERE id IN (11, 12)").value.version == 3
        assert engine.sql("REFRESH STREAM TABLE by_region").value.outcome is Outcome.DIFFERENTIAL
        assert engine.sql("VERIFY STREAM TABLE by_region").value.equal
        assert engine.sql("REFRESH STREAM TABLE by_region FULL").value.outcome is Outcome.FULL
        assert [each.name for each in engine.sql("SHOW STREAM TABLES").value] == ["by_region"]
        assert "Join inner" in text_of(engine.sql("EXPLAIN STREAM TABLE by_region").value)
        assert engine.sql("SELECT COUNT(*) AS n FROM by_region").rows.to_pydict() == {"n": [2]}
        assert engine.sql("DROP STREAM TABLE by_region").value.dropped == ("by_region",)
        assert engine.sql("DROP STREAM TABLE IF EXISTS by_region").value.dropped == ()


def test_drop_leaves_nothing_behind(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        engine.create_stream_table("chained", QUERIES["chained"])
        assert engine.drop_stream_table("by_region", cascade=True).dropped == ("chained", "by_region")
        assert list(engine.workspace.warehouse.iterdir()) == []
        assert engine.history() == ()
        assert engine.stream_tables() == ()
        engine.create_stream_table("by_region", BY_REGION)
        holds(engine, "by_region")


def test_any_delta_reader_reads_the_table(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        shop.insert("orders", order(90, 3, 500))
        engine.refresh_stream_table("paid")
        path = engine.stream_table("paid").path
        assert DeltaTable(path).protocol().reader_features in (None, [], ["deletionVectors"])
        expected = engine.preview("paid", 1000).num_rows
        assert DeltaTable(path).count() == expected


def _until(done: object, timeout_s: float = 90.0) -> None:
    import time

    deadline = time.monotonic() + timeout_s
    while not done():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
