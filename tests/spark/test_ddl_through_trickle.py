"""DDL on sources that is sent through Trickle: it asks first who would be harmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import DependentsExist, InvalidArgument, NotFound
from engine.lake.session import SparkHost
from engine.records import Outcome
from tests.spark.shop import holds
from tests.spark.test_source_ddl import NAMED, NATURAL, STAR, Lake

pytestmark = pytest.mark.spark


def test_who_would_be_harmed_is_named(tmp_path: Path, spark_host: SparkHost) -> None:
    lake = Lake(tmp_path, spark_host.session())
    Engine.init(tmp_path / "ws")
    with Engine.open(tmp_path / "ws", start_spark=True) as engine:
        engine.wait_for_spark(240)
        for name in ("items", "kinds"):
            engine.add_source(name, lake.folder / name)
        engine.create_stream_table("named", NAMED)
        engine.create_stream_table("recomputed", "SELECT id, rand() AS r FROM items", refresh_mode="FULL")
        for refused in (
            "ALTER TABLE items DROP COLUMN n",
            "ALTER TABLE items RENAME COLUMN kind TO sort",
            "ALTER TABLE `items` ALTER COLUMN n TYPE BIGINT",
            "ALTER TABLE items REPLACE COLUMNS (id INT)",
            "DROP TABLE items",
        ):
            with pytest.raises(DependentsExist, match="named") as caught:
                engine.sql(refused)
            assert caught.value.hint
        with pytest.raises(DependentsExist, match="recomputed uses id"):
            engine.sql("ALTER TABLE items DROP COLUMN id")
        for done in (
            "ALTER TABLE items RENAME COLUMN note TO remark",
            "ALTER TABLE items DROP COLUMN remark",
            "ALTER TABLE items ADD COLUMNS (label STRING, note STRING)",
            "ALTER TABLE items ALTER COLUMN n COMMENT 'how many'",
            "ALTER TABLE items SET TBLPROPERTIES ('mine' = 'yes')",
        ):
            before = engine.sources()[0].head
            assert engine.sql(done).value == (before or 0) + 1
        assert engine.refresh_stream_table("named").outcome is Outcome.NO_DATA

        engine.sql("ALTER TABLE items DROP COLUMN label")
        engine.create_stream_table("natural", NATURAL)
        with pytest.raises(DependentsExist, match="natural has a NATURAL JOIN, which would join by label of items"):
            engine.sql("ALTER TABLE items ADD COLUMN label STRING")
        engine.sql("ALTER TABLE items ADD COLUMN unrelated STRING")
        engine.create_stream_table("star", STAR)
        with pytest.raises(DependentsExist, match="star uses unrelated"):
            engine.sql("ALTER TABLE items DROP COLUMN unrelated")
        for wrong, error in (
            ("ALTER TABLE star ADD COLUMN x INT", InvalidArgument),
            ("DROP TABLE star", InvalidArgument),
            ("ALTER TABLE nosuch ADD COLUMN x INT", NotFound),
            ("DROP TABLE nosuch", NotFound),
        ):
            with pytest.raises(error):
                engine.sql(wrong)

        assert engine.sql("TRUNCATE TABLE items").kind == "dml"
        for name in ("named", "star", "natural"):
            engine.refresh_stream_table(name)
            holds(engine, name)
        assert engine.preview("star").num_rows == 0

        for name in ("named", "star", "natural", "recomputed"):
            engine.drop_stream_table(name)
        with pytest.raises(InvalidArgument, match="does not delete"):
            engine.sql("DROP TABLE items")
        engine.sql("ALTER TABLE items DROP COLUMN n")


def test_why_it_is_done_so(tmp_path: Path, spark_host: SparkHost) -> None:
    """What Spark and Delta do, on which this stands."""
    lake = Lake(tmp_path, spark_host.session())
    lake.sql("DROP TABLE {items}")  # without a word
    assert (tmp_path / "items" / "_delta_log").is_dir()
    lake.sql("ALTER TABLE {items} DROP COLUMN note")
    lake.sql("INSERT INTO {items} VALUES (4, 1, 5)")
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    with pytest.raises(Exception, match="CHANGE_DATA_FEED_INCOMPATIBLE"):
        feed.load(str(tmp_path / "items")).select("id").collect()
