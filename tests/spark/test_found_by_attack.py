"""What somebody found who tried to break the promise: each of these once left wrong rows, or said what is not true."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from engine.engine import Engine
from engine.errors import (
    CommitConflict,
    NotFound,
    RefreshFailed,
    RefreshOvertaken,
    SourceSchemaChanged,
    Tampered,
    TrickleError,
)
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import changes, hold, log, netting, tables
from engine.lake.session import SparkHost
from engine.records import Outcome, ReasonCode
from tests.spark.shop import PAID, Shop, holds, opened, order, source

pytestmark = pytest.mark.spark


@contextmanager
def right_before_the_commit(act: Callable[[], None]) -> Iterator[None]:
    """Of the first refresh that comes there; what `act` does passes undisturbed."""

    def once(point: Failpoint) -> None:
        if point is Failpoint.COMPUTED:
            points.on_pass = lambda _: None
            act()

    with FAILPOINTS.armed() as points:
        points.on_pass = once
        yield


MAPPED = ", 'delta.columnMapping.mode'='name'"


@pytest.mark.parametrize(
    "query", ["SELECT id, b FROM m", "SELECT DISTINCT id, b FROM m"], ids=["differential", "recomputed"]
)
def test_another_column_under_the_same_name(engine: Engine, spark: Any, tmp_path: Path, query: str) -> None:
    """No row is written, and yet all values of the column are others."""
    table = source(
        engine, spark, tmp_path / "m", "id BIGINT, a INT, b INT", "(1, 10, 20)", "(2, 11, 21)", properties=MAPPED
    )
    engine.create_stream_table("st", query)
    engine.create_stream_table("untouched", "SELECT id, a FROM m")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN (b INT)")
    stops(engine, "st", "the column b is another one")
    assert engine.refresh_stream_table("untouched").outcome is Outcome.NO_DATA
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN b TO x")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN a TO b")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN x TO a")
    for name, column in (("st", "b"), ("untouched", "a")):
        stops(engine, name, f"the column {column} is another one")
        holds(engine, name)


def stops(engine: Engine, name: str, why: str) -> None:
    """And goes on when somebody says that it is all right."""
    with pytest.raises(SourceSchemaChanged) as caught:
        engine.refresh_stream_table(name)
    assert why in (caught.value.detail or "")
    assert engine.refresh_stream_table(name, full=True).outcome is Outcome.FULL


def test_another_column_in_the_stream_table_itself(engine: Engine, spark: Any) -> None:
    engine.create_stream_table("paid", PAID)
    table = f"delta.`{engine.stream_table('paid').path}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA, "nothing is called otherwise yet"
    spark.sql(f"ALTER TABLE {table} DROP COLUMN amount")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN (amount DECIMAL(12,2))")
    with pytest.raises(Tampered, match="rows or columns"):
        engine.refresh_stream_table("paid")
    assert engine.refresh_stream_table("paid", full=True).outcome is Outcome.REINITIALIZE
    holds(engine, "paid")


def test_a_function_made_anew_while_no_source_changes(engine: Engine, spark: Any) -> None:
    name = f"fee_again_{os.getpid()}"
    spark.sql(f"CREATE OR REPLACE FUNCTION {name}(x BIGINT) RETURNS BIGINT RETURN x + 1")
    try:
        engine.create_stream_table("fees", f"SELECT id, {name}(id) AS fee FROM orders")
        assert engine.refresh_stream_table("fees").outcome is Outcome.NO_DATA
        spark.sql(f"CREATE OR REPLACE FUNCTION {name}(x BIGINT) RETURNS BIGINT RETURN x + 2")
        done = engine.refresh_stream_table("fees")
        assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)
        holds(engine, "fees")
        assert engine.refresh_stream_table("fees").outcome is Outcome.NO_DATA
    finally:
        spark.sql(f"DROP FUNCTION {name}")


# ---------------------------------------------------------------- who takes a table away meanwhile


def test_a_commit_never_lands_in_another_table_of_the_same_name(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    """One engine stands right before its commit; another drops the stream table and makes it anew."""
    with opened(tmp_path / "ws", shop) as one, opened(tmp_path / "ws", shop) as other:
        one.create_stream_table("paid", PAID)
        shop.insert("orders", order(700, 1, 100))

        def replace_it() -> None:
            other.drop_stream_table("paid")
            other.create_stream_table("paid", PAID)

        with right_before_the_commit(replace_it), pytest.raises(NotFound, match="gone"):
            one.refresh_stream_table("paid")
        holds(other, "paid")
        assert other.refresh_stream_table("paid").outcome is Outcome.NO_DATA


def test_a_drop_waits_for_a_commit(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_stream_table("paid", PAID)
    table = engine.stream_table("paid")
    monkeypatch.setattr(hold, "_WAIT_S", 0.2)
    with hold.for_commit(table.path, table.id), pytest.raises(CommitConflict, match="being written"):
        engine.drop_stream_table("paid")
    holds(engine, "paid")
    monkeypatch.setattr(hold, "_WAIT_S", 10.0)
    committing = hold.for_commit(table.path, table.id)
    committing.__enter__()
    threading.Timer(0.3, lambda: committing.__exit__(None, None, None)).start()
    assert engine.drop_stream_table("paid").dropped == ("paid",)
    with pytest.raises(NotFound), hold.for_commit(table.path, table.id):
        raise AssertionError("there is nothing to commit to")


def test_a_strangers_table_in_its_place_is_not_overwritten(engine: Engine, tmp_path: Path) -> None:
    engine.create_stream_table("paid", PAID)
    path = engine.stream_table("paid").path
    shutil.move(path, tmp_path / "aside")
    with pytest.raises(NotFound, match="is gone") as gone:
        engine.refresh_stream_table("paid")
    assert "trickle repair paid" in (gone.value.hint or "")
    write_deltalake(path, pa.table({"mine": [1, 2, 3]}))
    for full in (False, True):
        with pytest.raises(Tampered, match="another table is in the place"):
            engine.refresh_stream_table("paid", full=full)
    (said,) = engine.repair_stream_table("paid").repairs
    assert not said.mended
    assert log.newest_version(path) == 0
    shutil.rmtree(path)
    assert engine.repair_stream_table("paid").repairs
    assert engine.refresh_stream_table("paid").outcome is Outcome.FULL
    holds(engine, "paid")


def test_repair_takes_the_table_that_was_refreshed_and_tells_of_a_copy(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    home = tmp_path / "ws"
    with opened(home, shop) as engine:
        engine.create_stream_table("paid", PAID)
        path = Path(engine.stream_table("paid").path)
        for name in ("paid_backup", "a_backup"):
            shutil.copytree(path, path.with_name(name))
        shop.insert("orders", order(701, 1, 100))
        engine.refresh_stream_table("paid")
    for file in (home / ".trickle").glob("catalog.db*"):
        file.unlink()
    with Engine.open(home, start_spark=True) as engine:
        found = engine.repair()
        assert engine.stream_table("paid").path == str(path)
        copies = [each.name for each in found.repairs if "older copy of paid" in each.text]
        assert copies == ["a_backup", "paid_backup"]
        holds(engine, "paid")


# ---------------------------------------------------------------- sources


def test_a_backup_behind_a_log_that_was_cleaned(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """The commit that was read is cleaned away, in this history as in the one that it never was part of."""
    path = tmp_path / "s"
    table = source(engine, spark, path, "k STRING, v INT", "('a', 1)")
    shutil.copytree(path, tmp_path / "backup")
    spark.sql(f"INSERT INTO {table} VALUES ('b', 2)")
    spark.sql(f"INSERT INTO {table} VALUES ('c', 8)")
    engine.create_stream_table("st", "SELECT k, SUM(v) AS v FROM s GROUP BY k")
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    for number in range(12):
        spark.sql(f"INSERT INTO {table} VALUES ('w', {number})")
    for version in range(4):
        log.commit_file(str(path), version).unlink()
    done = engine.refresh_stream_table("st")
    assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.SOURCE_REPLACED)
    holds(engine, "st")


def test_a_history_that_went_on_behind_a_cleaned_log_is_followed(engine: Engine, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "s"
    table = source(engine, spark, path, "k STRING, v INT", "('a', 1)")
    spark.sql(f"INSERT INTO {table} VALUES ('b', 2)")
    engine.create_stream_table("st", "SELECT k, SUM(v) AS v FROM s GROUP BY k")
    for number in range(9):
        spark.sql(f"INSERT INTO {table} VALUES ('w', {number})")
        spark.sql(f"DELETE FROM {table} WHERE v = {number}")
    for version in range(3):
        log.commit_file(str(path), version).unlink()
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")


def test_zeros_of_both_signs(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """Spark groups them; a column that shows them does not."""
    table = source(
        engine,
        spark,
        tmp_path / "f",
        "id BIGINT, x DOUBLE, arr ARRAY<DOUBLE>",
        "(1, 0.0, array(0.0))",
        "(2, 1.0, null)",
    )
    engine.create_stream_table("st", "SELECT id, CAST(x AS STRING) AS s, arr FROM f")
    spark.sql(f"UPDATE {table} SET x = double('-0.0') WHERE id = 1")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")
    spark.sql(f"UPDATE {table} SET arr = array(double('-0.0')) WHERE id = 1")
    spark.sql(f"INSERT INTO {table} VALUES (3, double('-0.0'), array(double('NaN')))")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")
    spark.sql(f"DELETE FROM {table} WHERE id IN (1, 3)")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")


def test_a_zero_keeps_its_sign_when_its_row_changes(engine: Engine, spark: Any, tmp_path: Path) -> None:
    """Keys of Spark's GROUP BY have none, and a change is grouped by its rows."""
    minus = "double('-0.0')"
    rows = (f"(1, {minus}, array({minus}))", "(2, 0.0, array(0.0))")
    table = source(engine, spark, tmp_path / "f", "id BIGINT, x DOUBLE, arr ARRAY<DOUBLE>", *rows)
    engine.create_stream_table("st", "SELECT id, x, arr FROM f")
    engine.create_stream_table("joined", "SELECT a.id, b.x FROM f a JOIN f b ON a.id = b.id AND a.x = b.x")
    steps = (
        f"UPDATE {table} SET id = id + 2",
        f"INSERT INTO {table} VALUES (5, {minus}, NULL), (6, 0.0, array({minus}))",
        f"DELETE FROM {table} WHERE id = 4",
    )
    for step in steps:
        spark.sql(step)
        for name, read in (("st", "id, x, arr"), ("joined", "id, x")):
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
            holds(engine, name)
            shown = ", ".join(f"CAST({column} AS STRING) AS {column}" for column in read.split(", "))
            stored = engine.select(f"SELECT {shown} FROM {name} ORDER BY id").to_pylist()
            assert stored == engine.select(f"SELECT {shown} FROM f ORDER BY id").to_pylist(), step


def test_both_ways_of_netting_tell_the_same_rows_apart(spark: Any) -> None:
    values = [0.0, -0.0, float("nan"), None, 1.5]
    rows = pa.table(
        {
            "x": pa.array([*values, *values, 0.0, -0.0], pa.float64()),
            netting.WEIGHT: pa.array([1] * 5 + [-1, 1, -1, -1, 1] + [1, 1], pa.int32()),
        }
    )
    frame = netting.of_frame(spark.createDataFrame(rows)).toArrow()
    assert sorted(map(repr, frame.to_pylist())) == sorted(map(repr, netting.of_rows(rows).to_pylist()))


@pytest.mark.parametrize("folder", ["brack[et] ^|", "a*b?{c},'%"])
def test_folders_whose_names_have_a_meaning_elsewhere(spark_host: SparkHost, tmp_path: Path, folder: str) -> None:
    """Patterns to Spark, not to be written to delta-rs: the source and the workspace both lie in such a folder."""
    spark = spark_host.session()
    home = tmp_path / folder
    Engine.init(home)
    with Engine.open(home, start_spark=True) as engine:
        engine.wait_for_spark(240)
        table = source(engine, spark, home / "odd", "id BIGINT, v BIGINT", "(1, 1)", "(2, 2)")
        engine.create_stream_table("st", "SELECT v, COUNT(*) AS n FROM odd GROUP BY v")
        engine.create_stream_table("plain", "SELECT id FROM odd")
        for statement in (f"INSERT INTO {table} VALUES (3, 1)", f"DELETE FROM {table} WHERE id = 2"):
            spark.sql(statement)
            for name in ("st", "plain"):
                assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
                holds(engine, name)


def test_partitions_with_special_characters(engine: Engine, spark: Any, tmp_path: Path) -> None:
    table = source(
        engine, spark, tmp_path / "p", "id BIGINT, r STRING", "(1, 'a b/c=%d é')", "(2, 'x:y')", by="PARTITIONED BY (r)"
    )
    engine.create_stream_table("st", "SELECT r, COUNT(*) AS n FROM p GROUP BY r")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'x:y'), (4, 'a b/c=%d é')")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")


def test_a_panic_of_delta_rs_is_a_failed_refresh(engine: Engine, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does not take it for an Exception: it would end the thread, and nobody would know."""
    engine.create_stream_table("paid", PAID)
    shop.insert("orders", order(702, 1, 100))

    class PanicException(BaseException):
        pass

    def panics(*_: object) -> None:
        raise PanicException("called `Option::unwrap()` on a `None` value")

    with monkeypatch.context() as patched:
        patched.setattr(changes, "_from_delta_rs", panics)
        with pytest.raises(RefreshFailed, match="broke down"):
            engine.refresh_stream_table("paid")
    assert engine.history("paid")[0].outcome is Outcome.FAILED
    assert isinstance(engine.status("paid").error, str)
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")


def test_delta_rs_really_panics(spark: Any, tmp_path: Path) -> None:
    """If this fails, delta-rs has learned it, and `changes` need not send such folders to Spark."""
    path = str(tmp_path / "brack[et]")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    )
    with pytest.raises(BaseException, match="object store url") as caught:
        tables.pin(path).handle.load_cdf(starting_version=0).read_all()
    assert type(caught.value).__name__ == "PanicException"
    assert not isinstance(caught.value, Exception)


# ---------------------------------------------------------------- two processes, and one folder that becomes two


def test_who_loses_a_race_has_not_failed(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as one, opened(tmp_path / "ws", shop) as other:
        one.create_stream_table("paid", PAID)
        shop.insert("orders", order(703, 1, 100))

        def be_faster() -> None:
            assert other.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL

        with (
            right_before_the_commit(be_faster),
            pytest.raises(RefreshOvertaken, match="another process refreshed paid"),
        ):
            one.refresh_stream_table("paid")
        last = one.history("paid")[0]
        assert (last.outcome, last.reason.code) == (Outcome.SKIPPED, ReasonCode.OVERTAKEN)
        assert one.status("paid").error is None
        holds(one, "paid")


def test_what_a_stranger_forbade_is_not_called_a_conflict(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("by_region", "SELECT status, COUNT(*) AS n FROM orders GROUP BY status")
    tables.set_properties(engine.stream_table("by_region").path, {"delta.appendOnly": "true"})
    shop.insert("orders", order(704, 1, 100))
    with pytest.raises(RefreshFailed, match="takes new rows only") as caught:
        engine.refresh_stream_table("by_region")
    assert "trickle repair by_region" in (caught.value.hint or "")
    assert "delta.appendOnly" in engine.repair_stream_table("by_region").repairs[0].text
    done = engine.refresh_stream_table("by_region")
    assert (done.outcome, done.strategy) == (Outcome.DIFFERENTIAL, "merge from driver")
    holds(engine, "by_region")


def test_a_copied_workspace_has_tables_of_its_own(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        before = log.newest_version(engine.stream_table("paid").path)
    shutil.copytree(tmp_path / "ws", tmp_path / "copy")
    shop.insert("orders", order(705, 1, 100))
    with Engine.open(tmp_path / "copy", start_spark=True) as engine:
        path = engine.stream_table("paid").path
        assert Path(path).is_relative_to(tmp_path / "copy")
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")
    with opened(tmp_path / "ws", shop) as engine:
        assert log.newest_version(engine.stream_table("paid").path) == before
        assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
        holds(engine, "paid")


def test_errors_name_tables_as_people_do(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    shop.insert("orders", order(706, 1, 100))
    shop.table("orders").update({"amount": "amount + 1"}, predicate="id < 20")
    log.commit_file(shop.path("orders"), log.newest_version(shop.path("orders"))).write_text("no json")
    with pytest.raises(TrickleError) as caught:
        engine.refresh_stream_table("paid")
    assert shop.path("orders") not in caught.value.message
