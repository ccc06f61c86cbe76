"""Options and verbs of stream tables: partitions, append_only, names, doing it anew, many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from engine.compile.statements import CreateStreamTable, parse_statement
from engine.engine import Engine
from engine.errors import (
    AlreadyExists,
    CycleDetected,
    DependentsExist,
    InvalidArgument,
    NotFound,
    NotPopulated,
    RefreshFailed,
    TrickleError,
)
from engine.event_records import EventKind
from engine.lake import apply, log, tables
from engine.lake.stamp import Stamp
from engine.records import Column, Outcome, ReasonCode, State
from engine.refresh import carried
from engine.results import AlterKind, CreateResult
from tests.spark.shop import BY_REGION, PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark

#: kept by row, and by group; and a Spark that commits everything
BY_ROW = "SELECT id, region, amount FROM sales"
BY_GROUP = "SELECT region, day, SUM(amount) AS total, COUNT(*) AS n FROM sales GROUP BY region, day"
WAYS = ({}, {"refresh__max_driver_delta_rows": "0"})


def files_of(path: str, version: int, *kinds: str) -> list[str | None]:
    """The partitions, by region, of files that a commit adds or removes."""
    touched = []
    for action in log.actions(path, version) or []:
        for kind in kinds:
            if kind in action:
                touched.append((action[kind].get("partitionValues") or {}).get("region"))
    return touched


SALES = pa.schema([("id", pa.int64()), ("region", pa.string()), ("day", pa.date32()), ("amount", pa.int64())])


class Sales:
    """A source, changed by delta-rs: Spark takes its time for every statement."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.path = str(folder / "sales")
        rows = [(n, "abc"[n % 3], date(2026, 1, n % 4 + 1), n) for n in range(30)]
        self._write("error", *rows, (100, None, date(2026, 1, 1), 7), (101, None, None, 8))
        engine.add_source("sales", self.path)

    def insert(self, *rows: tuple[object, ...]) -> None:
        self._write("append", *rows)

    def _write(self, mode: Any, *rows: tuple[object, ...]) -> None:
        made = pa.Table.from_pylist([dict(zip(SALES.names, row, strict=True)) for row in rows], SALES)
        write_deltalake(self.path, made, mode=mode, configuration={"delta.enableChangeDataFeed": "true"})

    def update(self, where: str, **to: str) -> None:
        DeltaTable(self.path).update(updates=to, predicate=where)

    def delete(self, where: str) -> None:
        DeltaTable(self.path).delete(where)


@pytest.mark.parametrize("query", [BY_ROW, BY_GROUP])
@pytest.mark.parametrize("how", WAYS)
def test_only_files_of_touched_partitions_are_read_and_written(
    tmp_path: Path, shop: Shop, query: str, how: dict[str, str]
) -> None:
    with opened(tmp_path / "ws", shop, **how) as engine:
        sales = Sales(engine, tmp_path)
        made = engine.create_stream_table("st", query, partition_by=["REGION"]).table
        assert made.partition_by == ("region",)
        assert tables.partition_columns(made.path) == ("region",)
        changes: tuple[tuple[Callable[[], None], set[str | None]], ...] = (
            (lambda: sales.update("id IN (3, 6)", amount="amount + 5"), {"a"}),
            (lambda: sales.update("id IN (4, 101)", amount="amount + 1"), {"b", None}),
            (lambda: sales.delete("id = 5"), {"c"}),
            (lambda: sales.update("id = 7", region="'a'"), {"a", "b"}),
            (lambda: sales.update("id = 8", region="NULL"), {"c", None}),
        )
        for change, regions in changes:
            change()
            before = log.newest_version(made.path)
            done = engine.refresh_stream_table("st")
            assert done.outcome is Outcome.DIFFERENTIAL
            assert done.strategy.startswith("merge by spark" if how else "merge from driver")
            (version,) = range(before + 1, log.newest_version(made.path) + 1)
            assert set(files_of(made.path, version, "add", "cdc")) <= regions
            removed = [each["remove"]["path"] for each in log.actions(made.path, version) or [] if "remove" in each]
            assert {folder.split("/")[0].removeprefix("region=") for folder in removed if "/" in folder} <= {
                "__HIVE_DEFAULT_PARTITION__" if each is None else each for each in regions
            }
            info = log.commit_info(made.path, version)
            assert info is not None
            scanned = info.metrics.get("num_target_files_scanned")
            if scanned is not None:
                assert int(scanned) <= len(files_before(made.path, before, regions)), info.metrics
            holds(engine, "st")
        assert engine.refresh_stream_table("st", full=True).outcome is Outcome.FULL
        assert tables.partition_columns(made.path) == ("region",)
        holds(engine, "st")


def files_before(path: str, version: int, regions: set[str | None]) -> list[str]:
    import pyarrow as pa

    actions = pa.table(tables.pin(path, version).handle.get_add_actions(flatten=True))
    return [each["path"] for each in actions.to_pylist() if each.get("partition.region") in regions]


def test_partitions_that_cannot_be(engine: Engine, tmp_path: Path) -> None:
    Sales(engine, tmp_path)
    for wanted, query, said in (
        (["regoin"], BY_ROW, "did you mean region?"),
        (["amount", "amount"], BY_ROW, "once"),
        (["id", "region", "amount"], BY_ROW, "leave one"),
        (["total"], "SELECT region, SUM(amount) / 2.0 AS total FROM sales GROUP BY region", "CAST(total AS DATE)"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            engine.create_stream_table("st", query, partition_by=wanted)
        assert said in (refused.value.hint or ""), refused.value
        assert refused.value.detail is None or refused.value.detail
    with pytest.raises(NotFound):
        engine.stream_table("st")


@pytest.mark.parametrize("how", WAYS)
def test_texts_that_no_folder_can_be_named_after(tmp_path: Path, shop: Shop, how: dict[str, str]) -> None:
    """Everything else goes there and back as it is."""
    odd = ["x/y=z %", "01", "1.0", "null", "%41", " a ", "é\\n", "2026-01-01", "a'b"]
    with opened(tmp_path / "ws", shop, **how) as engine:
        sales = Sales(engine, tmp_path)
        path = engine.create_stream_table("st", BY_GROUP, partition_by="region").table.path
        sales.insert(*((200 + number, text, None, 1) for number, text in enumerate(odd)))
        engine.refresh_stream_table("st")
        holds(engine, "st")
        sales.update("id >= 200", amount="2")
        assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
        holds(engine, "st")
        for bad, full in (("", False), ("", True), ("__HIVE_DEFAULT_PARTITION__", bool(how))):
            sales.insert((300, bad, None, 1))
            version = log.newest_version(path)
            with pytest.raises(RefreshFailed) as refused:
                engine.refresh_stream_table("st", full=full)
            assert "region" in str(refused.value)
            assert "NULLIF" in (refused.value.hint or "")
            assert log.newest_version(path) == version
            sales.delete("id = 300")
        engine.refresh_stream_table("st")
        holds(engine, "st")


def test_other_partitions_are_a_rebuild_and_come_back_with_the_catalog(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        sales = Sales(engine, tmp_path)
        made = engine.create_stream_table("st", BY_GROUP).table
        result = engine.alter_stream_table("st", partition_by=["day"])
        assert result.kind is AlterKind.REBUILD
        assert "partitioned by day" in result.text
        assert result.refresh is not None
        assert (result.refresh.outcome, result.refresh.reason.code) == (
            Outcome.REINITIALIZE,
            ReasonCode.LAYOUT_CHANGED,
        )
        assert tables.partition_columns(made.path) == ("day",)
        holds(engine, "st")
        assert engine.alter_stream_table("st", partition_by=["day"]).kind is AlterKind.NOTHING
        with pytest.raises(InvalidArgument):
            engine.alter_stream_table("st", query="SELECT region, COUNT(*) AS n FROM sales GROUP BY region")
        assert tables.properties(made.path)["delta.enableChangeDataFeed"] == "true"
    for file in (tmp_path / "ws" / ".trickle").glob("catalog.db*"):
        file.unlink()
    with opened(tmp_path / "ws", shop) as engine:
        engine.repair()
        assert engine.stream_table("st").partition_by == ("day",)
        sales.insert((400, "z", date(2026, 2, 1), 9))
        assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
        holds(engine, "st")
        assert engine.sql("ALTER STREAM TABLE st SET (partition_by = NULL)").value.kind is AlterKind.REBUILD
        assert tables.partition_columns(made.path) == ()
        holds(engine, "st")


def test_append_only_is_a_promise_that_is_checked(engine: Engine, shop: Shop) -> None:
    for query in (BY_REGION, "SELECT DISTINCT region FROM customers"):
        with pytest.raises(InvalidArgument) as refused:
            engine.create_stream_table("st", query, append_only=True)
        assert "append_only" in (refused.value.hint or "")
    with pytest.raises(InvalidArgument, match="contradict"):
        engine.create_stream_table("st", PAID, append_only=True, refresh_mode="FULL")
    made = engine.create_stream_table("st", PAID, append_only=True).table
    with pytest.raises(InvalidArgument, match="contradict"):
        engine.alter_stream_table("st", refresh_mode="FULL")
    with pytest.raises(InvalidArgument, match="cannot be append_only"):
        engine.alter_stream_table("st", query=BY_REGION)
    shop.insert("orders", order(90, 1, 100))
    assert engine.refresh_stream_table("st").strategy == "append from driver"
    assert engine.stream_table("st").append_only
    shop.table("orders").delete("id IN (1, 2)")
    shop.table("orders").update(updates={"amount": "3.00"}, predicate="id = 3")
    done = engine.refresh_stream_table("st")
    assert done.outcome is Outcome.DIFFERENTIAL
    assert done.rows_deleted >= 2
    holds(engine, "st")
    assert not engine.stream_table("st").append_only
    (event,) = [each for each in engine.events() if each.kind is EventKind.APPEND_ONLY_REVERTED]
    assert "orders" in event.text
    definition = carried.read(tables.properties(made.path), made.path)
    assert definition is not None
    assert not definition.table.append_only
    shop.insert("orders", order(91, 1, 100))
    engine.refresh_stream_table("st")
    assert len([each for each in engine.events() if each.kind is EventKind.APPEND_ONLY_REVERTED]) == 1
    assert engine.alter_stream_table("st", append_only=True).kind is AlterKind.SETTINGS


def test_another_name(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        made = engine.create_stream_table("paid", PAID).table
        engine.create_stream_table("other", BY_REGION)
        for taken in ("other", "orders"):
            with pytest.raises(AlreadyExists):
                engine.rename_stream_table("paid", taken)
        engine.create_stream_table("top", "SELECT * FROM paid WHERE amount > 3")
        with pytest.raises(DependentsExist, match="top"):
            engine.rename_stream_table("paid", "income")
        engine.drop_stream_table("top")
        engine.create_view("recent", "SELECT * FROM paid")
        with pytest.raises(DependentsExist, match="recent"):
            engine.rename_stream_table("paid", "income")
        engine.drop_view("recent")
        before = [each.refresh_id for each in engine.history("paid")]
        assert engine.rename_stream_table("paid", "Paid").name == "Paid"
        renamed = engine.sql("ALTER STREAM TABLE paid RENAME TO income").value
        assert (renamed.name, renamed.path, renamed.id) == ("income", made.path, made.id)
        assert [each.refresh_id for each in engine.history("income")] == before
        assert {each.st for each in engine.history("income")} == {"income"}
        with pytest.raises(NotFound):
            engine.status("paid")
        shop.insert("orders", order(90, 1, 100))
        assert engine.refresh_stream_table("income").outcome is Outcome.DIFFERENTIAL
        holds(engine, "income")
        # the old name is free again, and its folder is not
        again = engine.create_stream_table("paid", PAID).table
        assert again.path != made.path
        assert len(engine.history("paid")) == 1
        assert len(engine.history("income")) == len(before) + 1
    for file in (tmp_path / "ws" / ".trickle").glob("catalog.db*"):
        file.unlink()
    with opened(tmp_path / "ws", shop) as engine:
        engine.repair()
        assert {table.name: table.path for table in engine.stream_tables()} == {
            "income": made.path,
            "paid": again.path,
            "other": engine.stream_table("other").path,
        }
        holds(engine, "income")


def test_doing_it_anew(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    done = engine.reinitialize_stream_table("paid")
    assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.REQUESTED_REINITIALIZE)
    assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA
    assert engine.sql("REINITIALIZE STREAM TABLE paid").value.outcome is Outcome.REINITIALIZE
    assert engine.refresh_if_stale("paid", "1h") is None
    assert engine.sql("REFRESH STREAM TABLE paid IF OLDER THAN '1h'").value is None
    assert engine.refresh_if_stale("paid", 0) is not None
    holds(engine, "paid")


def test_what_was_never_filled(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID, initialize=False)
    assert engine.status("paid").state is State.UNPOPULATED
    for read in (
        lambda: engine.select("SELECT * FROM paid"),
        lambda: engine.preview("paid"),
        lambda: engine.create_stream_table("top", "SELECT id FROM paid"),
    ):
        with pytest.raises(NotPopulated) as refused:
            read()
        assert "trickle refresh paid" in (refused.value.hint or "")
    done = engine.refresh_stream_table("paid")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.NOT_POPULATED)
    holds(engine, "paid")


def test_all_or_none(engine: Engine, shop: Shop) -> None:
    asked = [
        {"name": "top", "query": "SELECT id FROM paid WHERE amount > 3", "schedule": "5m"},
        {"name": "paid", "query": PAID, "append_only": True},
        {"name": "per_region", "query": BY_REGION, "partition_by": ["region"]},
    ]
    results = engine.bulk_create(asked)
    assert [each.table.name for each in results] == ["top", "paid", "per_region"]
    for name in ("top", "paid", "per_region"):
        holds(engine, name)
    assert {each.outcome for each in engine.refresh_all()} == {Outcome.NO_DATA}
    for name in ("top", "paid", "per_region"):
        engine.drop_stream_table(name)
    cases: tuple[tuple[list[dict[str, Any]], type[TrickleError]], ...] = (
        ([*asked, {"name": "bad", "query": "SELECT nosuch FROM paid"}], TrickleError),
        ([*asked, {"name": "a", "query": "SELECT * FROM b"}, {"name": "b", "query": "SELECT * FROM a"}], CycleDetected),
        ([*asked, {"name": "PAID", "query": PAID}], AlreadyExists),
        ([*asked, {"name": "x", "query": PAID, "shedule": "5s"}], InvalidArgument),
        ([*asked, {"name": "x"}], InvalidArgument),
    )
    for wanted, kind in cases:
        with pytest.raises(kind):
            engine.bulk_create(wanted)
        assert engine.stream_tables() == ()
        assert not [entry for entry in engine.workspace.warehouse.iterdir() if (entry / "_delta_log").exists()]


def test_one_that_fails_keeps_no_other_from_its_turn(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    sales = Sales(engine, tmp_path)
    engine.create_stream_table("a", "SELECT id, 1 / (id - 500) AS x FROM sales")
    engine.create_stream_table("z", PAID)
    sales.insert((500, None, None, 0))
    shop.insert("orders", order(90, 1, 100))
    done = {each.st: each.outcome for each in engine.refresh_all()}
    assert done == {"a": Outcome.FAILED, "z": Outcome.DIFFERENTIAL}


def test_the_statement_that_makes_it_again(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table(
        "per_region",
        BY_REGION.replace("GROUP", "-- it's\n  GROUP"),
        comment='it\'s\\n\n "new"',
        schedule="1h30m",
        partition_by=["region"],
        differential_max_change_ratio=0.25,
    )
    engine.create_stream_table("order", PAID, append_only=True)
    engine.create_stream_table("theirs", "SELECT id::text AS t FROM orders", dialect="postgres")
    for name in ("per_region", "order", "theirs"):
        before = engine.stream_table(name)
        text = engine.sql(f"SHOW CREATE STREAM TABLE {name}").value
        assert isinstance(parse_statement(text), CreateStreamTable)
        engine.drop_stream_table(name)
        made = engine.sql(text).value
        assert isinstance(made, CreateResult)
        # all of it, but what each creation makes anew
        assert replace(made.table, id=before.id, created_at=before.created_at) == before
        assert engine.export_definition(name) == text


def test_repair_of_one_puts_right_what_it_must_be(engine: Engine, shop: Shop, spark: Any) -> None:
    made = engine.create_stream_table("paid", PAID).table
    spark.sql(
        f"ALTER TABLE delta.`{made.path}` SET TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'false', 'delta.appendOnly' = 'true')"
    )
    spark.sql(f"ALTER TABLE delta.`{made.path}` UNSET TBLPROPERTIES ('trickle.definition')")
    (repair,) = engine.sql("REPAIR STREAM TABLE paid").value.repairs
    assert "trickle.definition" in repair.text
    assert "delta.enableChangeDataFeed" in repair.text
    found = tables.properties(made.path)
    assert (found["delta.enableChangeDataFeed"], found["delta.appendOnly"]) == ("true", "false")
    assert carried.read(found, made.path) is not None
    shop.insert("orders", order(90, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    # the catalog forgot how far it was: the log is right
    with engine._catalog.database.write() as connection:
        connection.execute("UPDATE progress SET sequence = 1, refresh_id = 'other'")
    engine.repair_stream_table("paid")
    assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA
    holds(engine, "paid")


@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
@pytest.mark.parametrize("touched", ["a", None])
def test_files_of_other_partitions_need_not_even_be_there(
    spark: Any, delta_path: str, writer: str, touched: str | None
) -> None:
    """While a merge runs; their rows are told apart by an id alone, as those of results without a key are."""
    columns = (Column("k", "bigint"), Column("region", "string"), Column("v", "bigint"))
    tables.create(spark, delta_path, columns, carried.STORAGE, partition_by=["region"])
    rows = pa.table({"k": [5, 1, 3], "region": ["a", "b", None], "v": [0, 0, 0]})
    # bounds of the keys overlap: they do not tell the files apart
    more = pa.table({"k": [2, 9, 8], "region": ["a", "b", None], "v": [0, 0, 0]})
    apply.append(tables.pin(delta_path), pa.concat_tables([rows, more]), said(1, 0))
    key = {"a": 5, None: 3}[touched]
    change = pa.table({"k": [key], "region": pa.array([touched], pa.string()), "v": [7], apply.OPERATION: ["U"]})
    hidden = [file for file in Path(delta_path).rglob("region=b/*.parquet") if file.is_file()]
    assert hidden

    def merge(sequence: int, within: tuple[str, ...]) -> apply.Commit:
        pinned = tables.pin(delta_path)
        by, counts = said(sequence, pinned.version), apply.Counts(updated=1)
        if writer == "delta-rs":
            return apply.merge(pinned, change, ("k",), by, counts, within)
        frame = spark.createDataFrame(
            [tuple(change.to_pylist()[0].values())], "k long, region string, v long, op string"
        )
        frame = frame.withColumnRenamed("op", apply.OPERATION)
        return apply.merge_frame(spark, delta_path, pinned.version, frame, ("k",), by, counts, within)

    for file in hidden:
        file.rename(file.with_suffix(".away"))
    with pytest.raises(TrickleError):
        merge(2, ())
    assert merge(2, ("region",)).updated == 1
    for file in hidden:
        file.with_suffix(".away").rename(file)
    found = pa.table(QueryBuilder().register("t", DeltaTable(delta_path)).execute("SELECT k, v FROM t").read_all())
    assert {(row["k"], row["v"]) for row in found.to_pylist()} == {
        (each, 7 if each == key else 0) for each in (5, 1, 3, 2, 9, 8)
    }


def said(sequence: int, on_version: int) -> Stamp:
    return Stamp("st", f"refresh-{sequence}", sequence, Outcome.DIFFERENTIAL, {}, {}, "f", 1, on_version)
