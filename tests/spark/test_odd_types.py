"""Types of Spark 4.2 that Delta does not have, or has half: what works works, and what does not is told at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import InvalidArgument, QueryParseError
from engine.lake.session import SparkHost
from engine.records import Outcome, ReasonCode
from tests.spark.shop import Shop, holds, opened

pytestmark = pytest.mark.spark

SWITCHES = {"spark.databricks.delta.schema.typeCheck.enabled": "false", "spark.sql.timeType.enabled": "true"}


@pytest.fixture(scope="module")
def odd(spark_host: SparkHost, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Delta tables that need to be forced upon it, by the name of their type: writers of other makes have such."""
    session = spark_host.session()
    for key, value in SWITCHES.items():
        session.conf.set(key, value)
    folder = tmp_path_factory.mktemp("odd")
    made = {}
    for name, type_, value in (
        ("variant", "VARIANT", 'parse_json(\'{"b": 1, "a": [2]}\')'),
        ("years", "INTERVAL YEAR TO MONTH", "INTERVAL '1-2' YEAR TO MONTH"),
        ("days", "INTERVAL DAY TO SECOND", "INTERVAL '1 2:3:4' DAY TO SECOND"),
        ("collated", "STRING COLLATE UTF8_LCASE", "'aBc'"),
        ("clock", "TIME", "TIME'12:13:14'"),
        ("nothing", "VOID", "NULL"),
    ):
        made[name] = str(folder / name)
        session.sql(
            f"CREATE TABLE delta.`{made[name]}` (id INT, v {type_}) USING delta "
            "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )
        session.sql(f"INSERT INTO delta.`{made[name]}` SELECT 1, {value}")
    for key in SWITCHES:
        session.conf.unset(key)
    return made


@pytest.fixture
def engine(tmp_path: Path, spark_host: SparkHost) -> Iterator[Engine]:
    with opened(tmp_path / "ws", Shop(tmp_path / "lake")) as made:
        yield made


@pytest.mark.parametrize(
    ("expression", "type_", "hint"),
    [
        ("make_interval(id)", "interval", "timestampdiff"),
        ("INTERVAL '1' DAY", "interval day", "timestampdiff"),
        ("array(INTERVAL '1' YEAR)", "array<interval year>", "timestampdiff"),
        ("TIME'1:2:3'", "time(6)", "CAST"),
        ("status COLLATE UTF8_LCASE", "string collate UTF8_LCASE", "CAST"),
        ("st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')", "geometry", "st_asbinary"),
        ("array()", "array<void>", "cast"),
    ],
)
def test_what_cannot_be_stored_is_told_before_anything_is_made(
    engine: Engine, expression: str, type_: str, hint: str
) -> None:
    for mode in ("AUTO", "FULL"):
        with pytest.raises(QueryParseError, match="the column v cannot be stored") as caught:
            engine.create_stream_table("odd", f"SELECT id, {expression} AS v FROM orders", refresh_mode=mode)
        assert f"of type {type_}" in (caught.value.detail or "")
        assert hint in (caught.value.hint or "")


def test_what_only_the_maintenance_would_have_to_store_is_recomputed(engine: Engine) -> None:
    made = engine.create_stream_table(
        "by_status", "SELECT COUNT(*) AS n FROM orders GROUP BY status COLLATE UTF8_LCASE"
    )
    assert made.table.full_reason is not None
    assert made.table.full_reason.code is ReasonCode.UNSUPPORTED
    assert "string collate UTF8_LCASE" in made.table.full_reason.text
    holds(engine, "by_status")
    engine.create_stream_table("fields", "SELECT id, named_struct('interval', 1, 'time', 2) AS v FROM orders")
    holds(engine, "fields")


@pytest.mark.parametrize(
    ("name", "query", "outcome"),
    [
        ("variant", "SELECT id, variant_get(v, '$.b', 'int') AS b FROM variant", Outcome.DIFFERENTIAL),
        ("variant", "SELECT id, v FROM variant", Outcome.FULL),
        ("years", "SELECT id FROM years", Outcome.DIFFERENTIAL),
        ("years", "SELECT id, CAST(v AS STRING) AS v FROM years", Outcome.FULL),
        ("days", "SELECT id, CAST(v AS STRING) AS v FROM days", Outcome.DIFFERENTIAL),
        ("collated", "SELECT id FROM collated", Outcome.DIFFERENTIAL),
        ("collated", "SELECT id, CAST(v AS STRING) AS v FROM collated WHERE v = 'ABC'", Outcome.FULL),
        ("nothing", "SELECT id, CAST(v AS STRING) AS v FROM nothing", Outcome.FULL),
    ],
)
def test_sources_with_odd_columns(
    engine: Engine, spark_host: SparkHost, odd: dict[str, str], name: str, query: str, outcome: Outcome
) -> None:
    engine.add_source(name, odd[name])
    engine.create_stream_table("st", query)
    holds(engine, "st")
    spark_host.session().sql(f"INSERT INTO delta.`{odd[name]}` SELECT id + 1, v FROM delta.`{odd[name]}` LIMIT 1")
    record = engine.refresh_stream_table("st")
    assert record.outcome is outcome, record.reason
    assert engine.preview("st").num_rows > 1
    holds(engine, "st")


def test_what_nobody_can_open_is_no_source(engine: Engine, odd: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="clock cannot be a source") as caught:
        engine.add_source("clock", odd["clock"])
    assert "time(6)" in (caught.value.detail or "")
    engine.add_source("collated", odd["collated"])
    with pytest.raises(QueryParseError, match="cannot be stored"):
        engine.create_stream_table("st", "SELECT id, v FROM collated")
