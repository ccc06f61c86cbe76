"""Wrong requests and sources that are not what they were: a typed error with a way out, and nothing half done."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from engine.engine import Engine
from engine.errors import (
    AlreadyExists,
    DependentsExist,
    InvalidArgument,
    NegativeMultiplicity,
    NotFound,
    NotPopulated,
    QueryParseError,
    SourceDropped,
    SourceReplaced,
    SourceSchemaChanged,
    SourceWithoutChanges,
    Tampered,
    TrickleError,
    UnsupportedOperator,
    VolatileFunction,
)
from engine.event_records import EventKind
from engine.lake import quoting, tables
from engine.lake.session import SparkHost
from engine.records import Outcome, ReasonCode, State
from tests.spark.shop import BY_REGION, PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark


def nothing_is_there(engine: Engine) -> None:
    assert engine.stream_tables() == ()
    assert list(engine.workspace.warehouse.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "error", "where"),
    [
        ("SELECT nosuch FROM orders", QueryParseError, "line 1, column 8"),
        ("SELECT id\nFROM ordres", NotFound, "line 2, column 6"),
        ("SELECT id FORM orders", QueryParseError, "line 1, column 16"),
        ("SELECT id, rand() FROM orders", VolatileFunction, "line 1, column 12"),
        ("SELECT id, id FROM orders", QueryParseError, None),
        ("SELECT 1 AS one", QueryParseError, None),
        ("DELETE FROM orders", QueryParseError, None),
        ("", QueryParseError, None),
        ("SELECT customer, id FROM orders GROUP BY customer", QueryParseError, None),
        ("SELECT id AS __trickle_x FROM orders", InvalidArgument, None),
    ],
)
def test_a_wrong_query_is_refused_at_its_place(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, query: str, error: type[TrickleError], where: str | None
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(error) as caught:
            engine.create_stream_table("wrong", query)
        if where is not None:
            assert str(caught.value.position) == where
        nothing_is_there(engine)


def test_names_are_taken_once(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        for name in ("paid", "PAID", "orders"):
            with pytest.raises(AlreadyExists) as caught:
                engine.create_stream_table(name, PAID)
            assert caught.value.hint
        with pytest.raises(AlreadyExists):
            engine.add_source("Paid", shop.path("orders"))
        for bad in ("", "a b", "../up", "x" * 200, "__trickle_x", "a.b"):
            with pytest.raises(InvalidArgument):
                engine.create_stream_table(bad, PAID)
        holds(engine, "paid")


def test_what_is_read_cannot_be_dropped(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        engine.create_stream_table("more", "SELECT id FROM paid")
        with pytest.raises(DependentsExist, match="paid"):
            engine.drop_source("orders")
        with pytest.raises(DependentsExist, match="more"):
            engine.drop_stream_table("paid")
        assert [each.name for each in engine.stream_tables()] == ["more", "paid"]


def test_a_strict_mode_is_refused_where_it_cannot_be_kept(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(UnsupportedOperator) as caught:
            engine.create_stream_table(
                "many",
                "SELECT customer FROM orders GROUP BY customer HAVING SUM(CAST(id AS DOUBLE)) > 1",
                refresh_mode="DIFFERENTIAL",
            )
        assert "floating-point" in caught.value.message
        for schedule in ("0s", "10ms", "soon", "-5s", ""):
            with pytest.raises(InvalidArgument):
                engine.create_stream_table("paid", PAID, schedule=schedule)
        with pytest.raises(InvalidArgument):
            engine.create_stream_table("paid", PAID, refresh_mode="SOMETIMES")
        nothing_is_there(engine)


def test_a_path_without_a_delta_table(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        for path in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(NotFound) as caught:
                engine.add_source("other", path)
            assert caught.value.hint
        assert [each.source.name for each in engine.sources()] == ["customers", "orders"]


def test_a_source_without_change_feed(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake", cdf=False)
    with opened(tmp_path / "ws", shop) as engine:
        made = engine.create_stream_table("paid", PAID, refresh_mode="DIFFERENTIAL")
        assert any("told by the files" in notice.text for notice in made.notices)
        assert not tables.cdf_enabled(shop.path("orders"))
        shop.insert("orders", order(90, 3, 500))
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        shop.table("orders").update(updates={"amount": "amount + 1"}, predicate="id < 5")
        shop.table("orders").delete("id = 90")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        shop.insert("orders", order(91, 3, 500))
        allowed = engine.create_stream_table("by_region", BY_REGION, refresh_mode="DIFFERENTIAL", enable_cdf=True)
        assert any("was switched on" in notice.text for notice in allowed.notices)
        # its frontier is older than the feed
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        shop.insert("orders", order(92, 3, 500))
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        assert engine.refresh_stream_table("by_region").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")
        holds(engine, "by_region")


def test_who_wants_a_feed_gets_no_other_way(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake", cdf=False)
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(SourceWithoutChanges) as caught:
            engine.add_source("strict", shop.path("orders"), cdc_mode="cdf")
        assert "enable" in (caught.value.hint or "")
        engine.add_source("strict", shop.path("orders"), cdc_mode="cdf", enable_cdf=True)
        engine.create_stream_table("paid", PAID.replace("orders", "strict"))
        table = quoting.table(shop.path("orders"))
        engine._host.session().sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
        shop.insert("orders", order(90, 3, 500))
        record = engine.refresh_stream_table("paid")
        assert (record.outcome, record.reason.code) == (Outcome.FULL, ReasonCode.NO_CHANGE_FEED)
        explained = engine.explain_st("paid").explanation
        assert (explained.mode, explained.reason and explained.reason.code) == ("full", ReasonCode.NO_CHANGE_FEED)
        with pytest.raises(SourceWithoutChanges):
            engine.create_stream_table("strictly", PAID.replace("orders", "strict"), refresh_mode="DIFFERENTIAL")
        engine.enable_change_feed("strict")
        assert tables.cdf_enabled(shop.path("orders"))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody can write there, not even root, whom permissions do not stop."""
    if os.geteuid():
        freeze, thaw = ["chmod", "a-w"], ["chmod", "u+w"]
    else:
        freeze, thaw = ["chattr", "+i"], ["chattr", "-i"]
    subprocess.run([*freeze, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run([*thaw, str(folder)], check=True)


def test_a_change_feed_that_storage_refuses(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake", cdf=False)
    with opened(tmp_path / "ws", shop) as engine:
        with read_only(Path(shop.path("orders")) / "_delta_log"):
            with pytest.raises(TrickleError) as caught:
                engine.create_stream_table("paid", PAID, enable_cdf=True)
            assert caught.value.hint
            nothing_is_there(engine)
            # without the feed it can still be read, and is recomputed
            engine.create_stream_table("paid", PAID)
        holds(engine, "paid")


def test_a_source_that_is_gone_comes_back(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        shutil.move(shop.path("orders"), tmp_path / "aside")
        with pytest.raises(SourceDropped) as caught:
            engine.refresh_stream_table("paid")
        assert caught.value.hint
        status = engine.status("paid")
        assert (status.state, status.error) == (State.FAILED, str(caught.value))
        shutil.move(tmp_path / "aside", shop.path("orders"))
        shop.insert("orders", order(90, 3, 500))
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        assert engine.status("paid").state is State.FRESH


@pytest.mark.parametrize("how", ["replaced", "rewound"])
def test_another_table_at_the_same_path_is_never_no_data(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, how: str
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        shop.insert("orders", order(90, 3, 500))
        if how == "rewound":
            shutil.copytree(shop.path("orders"), tmp_path / "backup")
            shop.insert("orders", order(91, 3, 501))
        engine.create_stream_table("paid", PAID)
        shutil.rmtree(shop.path("orders"))
        if how == "rewound":
            shutil.move(tmp_path / "backup", shop.path("orders"))
        else:
            shop.add("orders", engine_schema(), [order(1, 1, 100)])
        shop.insert("orders", order(92, 3, 502))  # the same version number as before, another commit
        if how == "replaced":
            with pytest.raises(SourceReplaced):
                engine.refresh_stream_table("paid")
            assert engine.status("paid").state is State.SUSPENDED
            engine.refresh_stream_table("paid", full=True)
            holds(engine, "paid")
            return
        record = engine.refresh_stream_table("paid")
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.SOURCE_REPLACED)
        holds(engine, "paid")


def engine_schema() -> object:
    from tests.spark.shop import ORDERS

    return ORDERS


def test_somebody_else_wrote_the_stream_table(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        DeltaTable(engine.stream_table("by_region").path).delete("region = 'r0'")
        for change in (False, True):
            if change:
                shop.insert("orders", order(90, 3, 500))
            with pytest.raises(Tampered) as caught:
                engine.refresh_stream_table("by_region")
            assert "DELETE" in (caught.value.detail or "")
        assert engine.status("by_region").state is State.TAMPERED
        assert not engine.verify("by_region").equal
        record = engine.refresh_stream_table("by_region", full=True)
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.TAMPERED)
        holds(engine, "by_region")
        assert engine.status("by_region").state is State.FRESH


def test_optimizing_a_stream_table_is_not_tampering(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        for number in range(3):
            shop.insert("orders", order(90 + number, 3, 500))
            engine.refresh_stream_table("paid")
        DeltaTable(engine.stream_table("paid").path).optimize.compact()
        shop.table("orders").delete("id = 91")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")


@pytest.mark.parametrize("rows", ["200000", "1"], ids=["driver", "spark"])
def test_a_change_that_contradicts_what_is_stored_commits_nothing(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, rows: str
) -> None:
    """The stored rows are made wrong under a stamp of our own, as a bug would: the guard must see it."""
    from engine.lake import apply
    from engine.lake.stamp import last_stamp

    with opened(tmp_path / "ws", shop, refresh__max_driver_delta_rows=rows) as engine:
        engine.create_stream_table("paid", PAID)
        table = engine.stream_table("paid")
        pinned = tables.pin(table.path)
        written = last_stamp(pinned.path, pinned.version)
        assert written is not None
        from dataclasses import replace

        frame = spark_host.session().read.format("delta").load(table.path).where("id <> 5")
        forged = replace(
            written.stamp, refresh_id="forged", sequence=written.stamp.sequence + 1, on_version=pinned.version
        )
        apply.overwrite_frame(spark_host.session(), table.path, pinned.version, frame, forged)
        version = tables.pin(table.path).version
        shop.table("orders").delete("id = 5 or id = 6")
        with pytest.raises(NegativeMultiplicity) as caught:
            engine.refresh_stream_table("paid")
        assert "5" in (caught.value.detail or "")
        assert tables.pin(table.path).version == version
        assert "id=5" in next(each.text for each in engine.events() if each.kind is EventKind.REINITIALIZE_NEEDED)
        # nobody has to ask: the next refresh makes it right, and says why
        record = engine.refresh_stream_table("paid")
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.NEGATIVE_MULTIPLICITY)
        holds(engine, "paid")


def test_schema_changes_of_a_source(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        spark = spark_host.session()
        spark.sql(f"ALTER TABLE delta.`{shop.path('orders')}` ADD COLUMN note STRING")
        assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA
        spark.sql(f"INSERT INTO delta.`{shop.path('orders')}` VALUES (90, 3, 5.00, 'paid', 'new')")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")
        renamed = spark.read.format("delta").load(shop.path("orders")).withColumnRenamed("amount", "price")
        renamed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(shop.path("orders"))
        with pytest.raises(SourceSchemaChanged) as caught:
            engine.refresh_stream_table("paid")
        assert "amount" in (caught.value.detail or "")
        assert engine.status("paid").state is State.SUSPENDED


def test_reading_what_was_never_filled(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID, initialize=False)
        assert engine.status("paid").state is State.UNPOPULATED
        for read in (
            lambda: engine.preview("paid"),
            lambda: engine.sql("SELECT * FROM paid"),
            lambda: engine.verify("paid"),
            lambda: engine.create_stream_table("more", "SELECT id FROM paid"),
        ):
            with pytest.raises(NotPopulated):
                read()
        record = engine.refresh_stream_table("paid")
        assert (record.outcome, record.reason.code) == (Outcome.FULL, ReasonCode.NOT_POPULATED)
        holds(engine, "paid")


def test_a_failed_first_fill_leaves_nothing(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        with pytest.raises(TrickleError):
            engine.create_stream_table("broken", "SELECT id, CAST(status AS INT) AS n FROM orders")
        nothing_is_there(engine)
        assert engine.history() == ()


def test_a_stream_table_is_written_by_trickle_alone(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        with pytest.raises(InvalidArgument, match="stream table"):
            engine.sql("DELETE FROM paid")
        with pytest.raises(NotFound):
            engine.sql("DELETE FROM nosuch")


def test_odd_values_and_names(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    import pyarrow as pa

    rows = pa.table(
        {
            "a b": pa.array([float("nan"), 0.0, -0.0, float("inf"), 1e300, None]),
            "it's": pa.array(["x'y", 'q"q', "line\nbreak", "", None, "ü🙂"]),
            "select": pa.array([1, 2, None, 4, 5, 6], pa.int64()),
        }
    )
    path = str(tmp_path / "odd")
    mapping = {"delta.enableChangeDataFeed": "true"}
    renamed = rows.rename_columns(["a_b", "it's", "select"])
    write_deltalake(path, renamed, configuration=mapping)
    with opened(tmp_path / "ws", shop) as engine:
        engine.add_source("odd", path)
        engine.create_stream_table("kept", "SELECT * FROM odd", refresh_mode="DIFFERENTIAL")
        engine.create_stream_table(
            "grouped",
            "SELECT `it's`, SUM(a_b) AS s, COUNT(`select`) AS n FROM odd GROUP BY `it's`",
            refresh_mode="DIFFERENTIAL",
        )
        write_deltalake(path, renamed, mode="append")
        DeltaTable(path).delete("`select` = 2 or `select` = 4")
        for record in engine.refresh_all():
            assert record.outcome is Outcome.DIFFERENTIAL
        holds(engine, "kept")
        holds(engine, "grouped")
