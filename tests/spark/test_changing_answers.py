"""Stream tables whose answer changes by itself, and functions that somebody made, on real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.errors import InvalidArgument, VolatileFunction
from engine.lake import log, sql_functions, stamp
from engine.lake.session import SparkHost
from engine.records import Outcome, Position, ReasonCode
from tests.spark.shop import Shop, holds, opened, order

pytestmark = pytest.mark.spark

SINCE = (
    "SELECT id, now() AS seen, unix_timestamp() AS s, current_date AS d FROM orders "
    "WHERE current_date() > DATE '2020-01-01'"
)


@pytest.fixture
def functions(spark_host: SparkHost) -> Iterator[None]:
    """Spark's catalog belongs to the JVM, which all engines of the run share."""
    session = spark_host.session()
    made = ("twice", "plus_one", "seen_on", "dice")
    session.sql("CREATE OR REPLACE FUNCTION plus_one(x BIGINT) RETURNS BIGINT DETERMINISTIC RETURN x + 1")
    session.sql("CREATE OR REPLACE FUNCTION twice(x BIGINT) RETURNS BIGINT DETERMINISTIC RETURN plus_one(x) * 2")
    session.sql("CREATE OR REPLACE FUNCTION seen_on(x INT) RETURNS DATE RETURN date_add(current_date(), x)")
    session.sql("CREATE OR REPLACE FUNCTION dice(x INT) RETURNS DOUBLE RETURN x + rand()")
    yield
    for name in made:
        session.sql(f"DROP FUNCTION IF EXISTS {name}")


def test_the_clock_is_read_at_one_moment_that_is_written_down(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        before = datetime.now(UTC)
        made = engine.create_stream_table("seen", SINCE, schedule="10s")
        assert "it is recomputed each time it is due" in made.notices[0].text
        records = [made.refresh, *(engine.refresh_stream_table("seen") for _ in range(2))]
        assert [record.outcome for record in records if record] == [Outcome.FULL] * 3
        table = engine.stream_table("seen")
        for record in records[1:]:
            assert record is not None
            assert record.reason.code is ReasonCode.STABLE
        last = stamp.last_stamp(table.path, log.newest_version(table.path))
        assert last is not None
        assert last.stamp.evaluated is not None
        moment = last.stamp.evaluated.at
        assert before < moment == records[2].evaluated_at  # type: ignore[union-attr]
        assert engine.history("seen")[0].evaluated_at == moment
        rows = engine.preview("seen").to_pylist()
        assert {row["seen"] for row in rows} == {moment}
        assert {row["d"] for row in rows} == {moment.date()}
        assert len(rows) == 60
        holds(engine, "seen")
        status = engine.status("seen")
        assert (status.effective_mode, status.reason) == ("full", engine.explain_st("seen").explanation.reason)
        assert status.reason is not None
        assert status.reason.text == "now reads the clock"
    with opened(tmp_path / "ws", shop) as engine:
        holds(engine, "seen")  # another process has the moment from the log alone


def test_a_policy_refuses_the_clock_but_not_what_was_accepted(
    tmp_path: Path, spark_host: SparkHost, shop: Shop
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("seen", SINCE)
        with pytest.raises(VolatileFunction, match="now reads the clock"):
            engine.create_stream_table("strict", SINCE, refresh_mode="DIFFERENTIAL")
    with opened(tmp_path / "ws", shop, compile__volatile_function_policy="reject") as engine:
        assert engine.refresh_stream_table("seen").outcome is Outcome.FULL
        with pytest.raises(VolatileFunction) as caught:
            engine.sql(f"CREATE STREAM TABLE another AS {SINCE}")
        assert caught.value.position == Position(1, 43)
        engine.create_stream_table("asked_for", SINCE, refresh_mode="FULL")
        holds(engine, "asked_for")


def test_what_cannot_be_computed_again_is_not_compared(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, functions: None
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        for name, query, why in (
            ("words", "SELECT id FROM orders WHERE DATE 'today' > DATE '2020-01-01'", "'today'"),
            ("hidden", "SELECT id, seen_on(1) AS day FROM orders", "a function that it calls"),
        ):
            made = engine.create_stream_table(name, query)
            assert made.table.full_reason is not None
            assert made.table.full_reason.code is ReasonCode.STABLE
            with pytest.raises(InvalidArgument) as caught:
                engine.verify(name)
            assert why in (caught.value.detail or "")
        engine.create_stream_table("mine", "SELECT id, current_user() AS me, now() AS n FROM orders")
        holds(engine, "mine")


def test_chance_is_refused_but_for_full(tmp_path: Path, spark_host: SparkHost, shop: Shop, functions: None) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        for mode in ("AUTO", "DIFFERENTIAL"):
            for call, why in (("rand()", "draws at random"), ("uuid()", "draws at random"), ("dice(1)", "dice ")):
                with pytest.raises(VolatileFunction, match=why) as caught:
                    engine.create_stream_table(
                        "dice_table", f"SELECT id,\n  {call} AS r FROM orders", refresh_mode=mode
                    )
                assert caught.value.position == Position(2, 3)
                assert "FULL" in (caught.value.hint or "")
        made = engine.create_stream_table(
            "any", "SELECT id, rand() AS r FROM orders", refresh_mode="FULL", schedule="10s"
        )
        assert "verify cannot compare" in made.notices[0].text
        assert engine.refresh_stream_table("any").outcome is Outcome.FULL
        with pytest.raises(InvalidArgument, match="changes by itself"):
            engine.verify("any")
        for mode in ("AUTO", "FULL"):
            with pytest.raises(VolatileFunction, match="never allowed"):
                engine.create_stream_table(
                    "code", "SELECT reflect('java.lang.Math', 'abs', -1) AS c FROM orders", refresh_mode=mode
                )


def test_functions_of_ones_own_are_maintained_and_watched(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, functions: None
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("doubled", "SELECT id, twice(id) AS t FROM orders", refresh_mode="DIFFERENTIAL")
        assert engine.refresh_stream_table("doubled").outcome is Outcome.NO_DATA
        shop.insert("orders", order(100, 1, 100))
        assert engine.refresh_stream_table("doubled").outcome is Outcome.DIFFERENTIAL
        holds(engine, "doubled")
        # what is called inside of what is called
        spark_host.session().sql(
            "CREATE OR REPLACE FUNCTION plus_one(x BIGINT) RETURNS BIGINT DETERMINISTIC RETURN x + 10"
        )
        record = engine.refresh_stream_table("doubled")
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)
        holds(engine, "doubled")
        assert {row["t"] for row in engine.preview("doubled").to_pylist() if row["id"] == 100} == {220}
        # now it reads the clock, and is recomputed each time
        spark_host.session().sql(
            "CREATE OR REPLACE FUNCTION plus_one(x BIGINT) RETURNS BIGINT RETURN x + year(current_date())"
        )
        assert engine.refresh_stream_table("doubled").outcome is Outcome.REINITIALIZE
        assert engine.refresh_stream_table("doubled").outcome is Outcome.FULL
        assert engine.status("doubled").reason is not None


def test_the_settings_declare_what_nobody_can_see_into(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    query = "SELECT id, py_double(id) AS d FROM orders"
    with opened(tmp_path / "ws", shop, compile__immutable_functions="py_double") as engine:
        spark_host.session().udf.register("py_double", lambda x: 2 * x, "bigint")
        engine.create_stream_table("doubled", query, refresh_mode="DIFFERENTIAL")
        shop.insert("orders", order(100, 1, 100))
        assert engine.refresh_stream_table("doubled").outcome is Outcome.DIFFERENTIAL
        holds(engine, "doubled")
    with opened(tmp_path / "ws2", shop) as engine:
        spark_host.session().udf.register("py_double", lambda x: 2 * x, "bigint")
        with pytest.raises(VolatileFunction, match="nobody has declared it immutable"):
            engine.create_stream_table("doubled", query)


def test_spark_tells_aggregates_of_ones_own_from_other_functions(spark_host: SparkHost, functions: None) -> None:
    import pyarrow as pa
    from pyspark.sql.functions import arrow_udf

    session = spark_host.session()

    def total(values: pa.Array) -> float:
        return float(values.sum().as_py())

    total.__annotations__ = {"values": pa.Array, "return": float}
    session.udf.register("own_total", arrow_udf("double")(total))
    session.udf.register("own_double", lambda x, y: x, "bigint")
    assert sql_functions.aggregates(session, "own_total") is True
    assert sql_functions.aggregates(session, "own_double") is False
    assert sql_functions.aggregates(session, "default.twice") is False
    assert sql_functions.aggregates(session, "nobody_made_this") is None
