"""What somebody found who attacked a second time: full refreshes as plain files, odd names, columns that changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import RefreshFailed, Tampered
from engine.lake import tables
from engine.records import Outcome
from tests.spark.shop import PAID, Shop, holds, order, source

pytestmark = pytest.mark.spark


@contextmanager
def written_by_a_spark_that(spark: Any, **settings: str) -> Iterator[None]:
    keys = {f"spark.sql.parquet.{key}": value for key, value in settings.items()}
    before = {key: spark.conf.get(key) for key in keys}
    try:
        for key, value in keys.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


@pytest.fixture
def moments(engine: Engine, spark: Any, tmp_path: Path) -> str:
    rows = ("(1, DATE'1500-01-01', TIMESTAMP'9999-12-31 00:00:00')", "(2, NULL, NULL)")
    table = source(engine, spark, tmp_path / "moments", "id BIGINT, day DATE, until TIMESTAMP", *rows)
    engine.create_stream_table("st", "SELECT id, day, until FROM moments")
    return table


def test_a_source_counts_its_days_by_an_older_calendar(engine: Engine, spark: Any, moments: str) -> None:
    """As all of Spark did before version 3. delta-rs read the first of January 1500 as the tenth."""
    with written_by_a_spark_that(spark, datetimeRebaseModeInWrite="LEGACY"):
        spark.sql(f"INSERT INTO {moments} VALUES (3, DATE'1500-01-01', TIMESTAMP'1500-01-01 00:00:00')")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")
    spark.sql(f"DELETE FROM {moments} WHERE id = 3")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")


@pytest.mark.parametrize(
    "other", [{"outputTimestampType": "INT96"}, {"datetimeRebaseModeInWrite": "LEGACY"}], ids=["INT96", "LEGACY"]
)
def test_a_stream_table_is_optimized_by_another_spark(
    engine: Engine, spark: Any, moments: str, other: dict[str, str]
) -> None:
    """INT96 is what a Spark writes that nobody told otherwise. The next merge made 1816 of the year 9999."""
    spark.sql(f"INSERT INTO {moments} VALUES (3, DATE'1500-01-01', TIMESTAMP'1500-01-01 00:00:00')")
    engine.refresh_stream_table("st")
    with written_by_a_spark_that(spark, **other):
        spark.sql(f"OPTIMIZE delta.`{engine.stream_table('st').path}`")
    spark.sql(f"UPDATE {moments} SET id = 20 WHERE id = 2")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")
    spark.sql(f"UPDATE {moments} SET id = 30 WHERE id = 3")
    assert engine.refresh_stream_table("st").outcome is Outcome.DIFFERENTIAL
    holds(engine, "st")


def test_fields_of_structs_may_be_called_anything(engine: Engine, shop: Shop) -> None:
    """Their type could not be spelled, and the creation failed with Spark's syntax error at or near '<'."""
    fields = "named_struct('x.y', id, 'a-b', array(named_struct('c:d', status)), '1', amount, 'ordinary', customer)"
    engine.create_stream_table("odd", f"SELECT id, {fields} AS s FROM orders", refresh_mode="DIFFERENTIAL")
    holds(engine, "odd")
    shop.insert("orders", order(90, 3, 500))
    assert engine.refresh_stream_table("odd").outcome is Outcome.DIFFERENTIAL
    assert engine.refresh_stream_table("odd", full=True).outcome is Outcome.FULL
    holds(engine, "odd")
    read = engine.stream_table("odd")
    described = tables.columns(read.path)
    assert [column.type for column in described if column.name == "s"] == [read.columns[1].type]
    engine.create_stream_table("downstream", "SELECT id, s FROM odd")
    holds(engine, "downstream")


def test_an_empty_file_of_a_full_refresh_leaves_nothing(engine: Engine, spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Its check sum was left, which VACUUM takes for hidden: its folder never became empty."""
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path / 'numbers'}` USING delta TBLPROPERTIES ('delta.enableChangeDataFeed'='true') "
        "AS SELECT id FROM range(10)"
    )
    engine.add_source("numbers", str(tmp_path / "numbers"))
    query = "SELECT id FROM numbers WHERE id < 0 UNION ALL SELECT id FROM numbers WHERE id >= 5"
    for name in ("some", "none"):
        engine.create_stream_table(name, query if name == "some" else query.replace("id >= 5", "id < 0"))
        folder = Path(engine.stream_table(name).path)
        files = {file.name for file in folder.glob("full-*/*")}
        rows = {name for name in files if name.endswith(".parquet")}
        assert files - rows <= {f".{name}.crc" for name in rows}


def test_columns_that_cannot_be_put_right_say_what_helps(engine: Engine, spark: Any) -> None:
    """The hint said `refresh --full`, and that said only what Delta had to say."""
    engine.create_stream_table("paid", PAID)
    table = f"delta.`{engine.stream_table('paid').path}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN (extra INT)")
    with pytest.raises(Tampered) as tampered:
        engine.refresh_stream_table("paid")
    assert (tampered.value.hint or "").startswith("by ALTER TABLE, drop the column extra; then `trickle refresh paid")
    with pytest.raises(RefreshFailed) as caught:
        engine.refresh_stream_table("paid", full=True)
    assert "columns" in caught.value.message
    assert "drop it and create it again" in (caught.value.hint or "")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN extra")
    with pytest.raises(Tampered) as tampered:
        engine.refresh_stream_table("paid")
    assert tampered.value.hint == "`trickle refresh paid --full` makes it right again"
    assert engine.refresh_stream_table("paid", full=True).outcome is Outcome.REINITIALIZE
    holds(engine, "paid")
