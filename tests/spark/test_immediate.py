"""IMMEDIATE on Spark: DML is followed before it returns, or has no net effect, or is kept and told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.errors import (
    ChangeKept,
    ChangeUndone,
    DependentsExist,
    InvalidArgument,
    SourceSchemaChanged,
    TrickleError,
    UnsupportedOperator,
    VolatileFunction,
)
from engine.event_records import EventKind
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.lake import quoting
from engine.lake.session import SparkHost
from engine.records import Initiator, Outcome, RefreshMode, State
from engine.results import AlterKind, WriteResult
from tests.spark.shop import BY_REGION, PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark

#: no row of amount zero can be followed
SHARES = "SELECT id, CAST(1000 / amount AS INT) AS share FROM orders WHERE status = 'paid'"
ALL = ("by_region", "rich", "shares")


class Place:
    def __init__(self, folder: Path, engine: Engine, shop: Shop) -> None:
        self.folder, self.engine, self.shop = folder, engine, shop

    def sql(self, text: str) -> WriteResult:
        written = self.engine.sql(text).value
        assert isinstance(written, WriteResult)
        return written

    def rows(self, name: str) -> list[dict[str, object]]:
        return sorted(self.engine.select(f"SELECT * FROM {name}").to_pylist(), key=repr)

    def up_to_date(self) -> None:
        """All of it, without any refresh, and it is what recomputing gives."""
        self.nobody_is_behind()
        for name in ALL:
            holds(self.engine, name)

    def nobody_is_behind(self) -> None:
        for name in ALL:
            table = self.engine.stream_table(name)
            progress = self.engine._catalog.get_progress(table.id)
            paths = {source: self.engine._core.plans.relations.path(source) for source in table.sources}
            assert not self.engine._core.refresher.observer.has_moved(paths, progress), name
            assert self.engine.status(name).state is State.FRESH

    def history_of_orders(self, after: int) -> list[str]:
        found = self.shop.table("orders").history()
        return [each["operation"] for each in reversed(found) if each["version"] > after]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, spark_host: SparkHost) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("immediate")
    shop = Shop(folder / "shop")
    with opened(folder / "ws", shop) as engine:
        rich = "SELECT region FROM by_region WHERE total > 800"
        for name, query in (("by_region", BY_REGION), ("rich", rich), ("shares", SHARES)):
            # never due by itself while the tests run
            engine.create_stream_table(name, query, refresh_mode="IMMEDIATE", schedule="1h")
        engine.create_stream_table("twin", BY_REGION, refresh_mode="DIFFERENTIAL")
        yield Place(folder, engine, shop)


def test_each_kind_of_dml_is_followed_before_it_returns(place: Place) -> None:
    for dml in (
        "INSERT INTO orders VALUES (100, 1, 900.00, 'paid')",
        "UPDATE orders SET amount = amount + 1 WHERE id = 100",
        "MERGE INTO orders t USING (SELECT 100 AS id UNION ALL SELECT 101) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET customer = 2 "
        "WHEN NOT MATCHED THEN INSERT (id, customer, amount, status) VALUES (s.id, 0, 5, 'paid')",
        "DELETE FROM orders WHERE id = 100",
    ):
        done = place.sql(dml)
        assert [each.st for each in done.refreshes] == list(ALL), dml
        assert {each.outcome for each in done.refreshes} <= {Outcome.DIFFERENTIAL, Outcome.NO_DATA}
        assert done.refreshes[0].outcome is Outcome.DIFFERENTIAL
        assert {each.initiated_by for each in done.refreshes} == {Initiator.IMMEDIATE}
        assert done.version == place.shop.table("orders").version()
        assert place.engine.history("by_region", 1)[0].initiated_by is Initiator.IMMEDIATE
        place.nobody_is_behind()
    assert place.engine.refresh_stream_table("twin").outcome is Outcome.DIFFERENTIAL
    assert place.rows("twin") == place.rows("by_region")
    assert place.sql("DELETE FROM orders WHERE id = -1").version == place.shop.table("orders").version()


def test_what_cannot_be_followed_has_no_net_effect(place: Place) -> None:
    engine, version = place.engine, place.shop.table("orders").version()
    before = {name: place.rows(name) for name in ("orders", *ALL)}
    engine.refresh_stream_table("twin")
    for dml in ("INSERT INTO orders VALUES (110, 1, 0.00, 'paid')", "UPDATE orders SET amount = 0 WHERE id < 9"):
        with pytest.raises(ChangeUndone, match="orders was undone: shares could not follow") as caught:
            place.sql(dml)
        assert "DIVIDE_BY_ZERO" in (caught.value.detail or "")
        assert {name: place.rows(name) for name in ("orders", *ALL)} == before
        place.up_to_date()
    assert place.history_of_orders(version) == ["WRITE", "RESTORE", "UPDATE", "RESTORE"]
    last = [each.outcome for each in engine.history("by_region", 4)]
    assert set(last) == {Outcome.DIFFERENTIAL}
    assert any(event.kind is EventKind.CHANGE_UNDONE for event in engine.events())
    # others read the undoing as the change that it is
    assert engine.refresh_stream_table("twin").outcome in (Outcome.DIFFERENTIAL, Outcome.NO_DATA)
    holds(engine, "twin")


def test_a_foreign_commit_in_between_keeps_the_dml_and_tells(place: Place) -> None:
    engine, shop = place.engine, place.shop
    version = shop.table("orders").version()

    def meanwhile(point: Failpoint) -> None:
        if point is Failpoint.SOURCE_CHANGED:
            shop.insert("orders", order(121, 1, 700))

    with FAILPOINTS.armed() as points:
        points.on_pass = meanwhile
        with pytest.raises(ChangeKept, match="orders keeps its change, which shares could not follow") as caught:
            place.sql("INSERT INTO orders VALUES (120, 1, 0.00, 'paid')")
    assert "somebody else has committed since" in (caught.value.detail or "")
    assert engine.status("shares").state is State.LATE
    late = next(event for event in engine.events(limit=500) if event.kind is EventKind.LATE)
    assert late.subject == "shares"
    assert place.history_of_orders(version) == ["WRITE", "WRITE"]
    assert {120, 121} <= {row["id"] for row in place.rows("orders")}
    for name in ("by_region", "rich"):
        holds(engine, name)
    # what is wrong can be put right through the same door
    place.sql("DELETE FROM orders WHERE id = 120")
    place.up_to_date()


def wait_until(condition: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    return time.monotonic() - began


def test_after_a_crash_it_is_carried_forward_and_commits_of_others_are_followed(place: Place) -> None:
    engine = place.engine
    with (
        FAILPOINTS.armed(Arming(Failpoint.SOURCE_CHANGED, Action.CRASH)),
        pytest.raises(SimulatedCrash),
    ):
        place.sql("INSERT INTO orders VALUES (130, 1, 4.00, 'paid')")
    assert 130 in {row["id"] for row in place.rows("orders")}
    assert 130 not in {row["id"] for row in place.rows("shares")}

    def has(number: int) -> Callable[[], bool]:
        def look() -> bool:
            last = engine.history("shares", 1)[0]
            return last.initiated_by is Initiator.SCHEDULER and last.rows_inserted == number

        return look

    engine.start_scheduler()
    try:
        wait_until(has(1))
        # not due for an hour, and followed nevertheless
        place.shop.insert("orders", order(131, 1, 500), order(132, 2, 600))
        wait_until(has(2))
    finally:
        engine.stop_scheduler(30)
    place.sql("DELETE FROM orders WHERE id IN (130, 131)")
    place.up_to_date()


def test_many_writers_at_once_lose_nothing(place: Place, tmp_path: Path) -> None:
    """Each reads what it changes; without turns they would take the same numbers, or meet."""
    engine, writers = place.engine, 20
    place.shop.add("numbers", pa.schema([("n", pa.int64())]), [{"n": 0}])
    engine.add_source("numbers", place.shop.path("numbers"))
    engine.create_stream_table("counted", "SELECT MAX(n) AS n, COUNT(*) AS c FROM numbers", refresh_mode="IMMEDIATE")
    wrong: list[BaseException] = []

    def write(text: str) -> None:
        try:
            place.sql(text)
        except BaseException as error:
            wrong.append(error)

    threads = [
        threading.Thread(target=write, args=("INSERT INTO numbers SELECT MAX(n) + 1 FROM numbers",))
        for _ in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(row["n"] for row in place.rows("numbers")) == list(range(writers + 1))  # type: ignore[type-var]
    assert place.rows("counted") == [{"n": writers, "c": writers + 1}]
    engine.drop_stream_table("counted")


def test_a_stream_table_of_any_mode_follows_where_it_is_named(place: Place) -> None:
    engine = place.engine
    engine.create_stream_table("slow", PAID)
    engine.create_stream_table("sums", "SELECT COUNT(*) AS c FROM slow", refresh_mode="FULL")
    try:
        done = engine.write_and_refresh("INSERT INTO orders VALUES (140, 1, 3.00, 'paid')", "sums")
        assert {each.st for each in done.refreshes} == {*ALL, "slow", "sums"}
        order_of = [each.st for each in done.refreshes]
        assert order_of.index("slow") < order_of.index("sums")
        assert {each.st: each.initiated_by for each in done.refreshes}["slow"] is Initiator.API
        for name in ("slow", "sums"):
            holds(engine, name)
        place.up_to_date()
        with pytest.raises(InvalidArgument, match="sums does not read customers"):
            engine.write_and_refresh("DELETE FROM customers WHERE id = 77", "sums")
        engine.pause_stream_table("shares")
        paused = engine.sql("DELETE FROM orders WHERE id = 140")
        assert "shares is paused" in paused.notices[0].text
        engine.resume_stream_table("shares")
        engine.refresh_stream_table("shares")
        place.up_to_date()
    finally:
        engine.drop_stream_table("slow", cascade=True)


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT id, current_date() AS d FROM orders", VolatileFunction, "reads the clock"),
        (
            "SELECT customer FROM orders GROUP BY customer HAVING SUM(CAST(id AS DOUBLE)) > 1",
            UnsupportedOperator,
            "IMM",
        ),
        ("SELECT id FROM orders ORDER BY id LIMIT 1001", UnsupportedOperator, "the first 1,001 rows"),
        ("SELECT region FROM twin", InvalidArgument, "twin is refreshed on a schedule"),
        ("SELECT id FROM polled", InvalidArgument, "polled is polled"),
        ("SELECT id FROM lasting", InvalidArgument, "could not be taken back"),
    ],
)
def test_what_immediate_refuses(place: Place, query: str, error: type[TrickleError], words: str) -> None:
    engine, known = place.engine, {each.source.name for each in place.engine.sources()}
    session = engine._host.session()
    if "polled" in query and "polled" not in known:
        session.range(3).write.parquet(str(place.folder / "parquet"))
        engine.add_source("polled", place.folder / "parquet", format="parquet")
    if "lasting" in query and "lasting" not in known:
        path = str(place.folder / "lasting")
        session.sql(
            f"CREATE TABLE {quoting.table(path)} (id INT) USING delta TBLPROPERTIES ("
            "'delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'true')"
        )
        engine.add_source("lasting", path)
    for attempt in (
        lambda: engine.create_stream_table("refused", query, refresh_mode="IMMEDIATE"),
        lambda: engine.preview_stream_table(query, refresh_mode="IMMEDIATE"),
    ):
        with pytest.raises(error, match=words) as caught:
            attempt()
        assert caught.value.hint
    assert all(table.name != "refused" for table in engine.stream_tables())


def test_altering_to_it_and_from_it(place: Place) -> None:
    engine = place.engine
    assert engine.status("twin").effective_mode == "differential"
    place.shop.insert("orders", order(150, 1, 700))
    altered = engine.alter_stream_table("twin", refresh_mode="IMMEDIATE")
    assert (altered.kind, altered.refresh and altered.refresh.outcome) == (AlterKind.SETTINGS, Outcome.DIFFERENTIAL)
    assert engine.status("twin").effective_mode == "immediate"
    assert engine.explain_st("twin").table.refresh_mode is RefreshMode.IMMEDIATE
    done = place.sql("DELETE FROM orders WHERE id = 150")
    assert {each.st for each in done.refreshes} == {*ALL, "twin"}
    with pytest.raises(DependentsExist, match="rich, which is IMMEDIATE"):
        engine.alter_stream_table("by_region", refresh_mode="AUTO")
    assert engine.alter_stream_table("twin", refresh_mode="DIFFERENTIAL").refresh is None
    done = place.sql("INSERT INTO orders VALUES (151, 1, 7.00, 'paid')")
    assert {each.st for each in done.refreshes} == set(ALL)
    place.up_to_date()


def test_what_fails_before_the_dml_leaves_no_commit(place: Place) -> None:
    engine, version = place.engine, place.shop.table("orders").version()
    for wrong in ("INSERT INTO orders SELECT nosuch FROM orders", "UPDATE orders SET amount = 1 / (id - id)"):
        with pytest.raises(TrickleError):
            place.sql(wrong)
    assert place.shop.table("orders").version() == version
    # somebody drops a column that is read
    path = place.shop.path("customers")
    session = engine._host.session()
    session.sql(
        f"ALTER TABLE {quoting.table(path)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    session.sql(f"ALTER TABLE {quoting.table(path)} RENAME COLUMN region TO area")
    with pytest.raises(SourceSchemaChanged, match="by_region"):
        place.sql("INSERT INTO orders VALUES (160, 1, 7.00, 'paid')")
    assert place.shop.table("orders").version() == version
