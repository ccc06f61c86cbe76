"""Taking DML back, on tables of every kind that it is allowed for, as Spark makes them and reads them afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from engine.errors import CommitConflict
from engine.lake import apply, log, undo

pytestmark = pytest.mark.spark

VECTORS = "'delta.enableDeletionVectors' = 'true'"
#: columns besides `id` and `v`, clauses, properties, and what is done to the table before it has rows
KINDS = {
    "plain": ("", "", "'delta.enableChangeDataFeed' = 'true'", ""),
    "vectors": ("", "PARTITIONED BY (v)", f"'delta.enableChangeDataFeed' = 'true', {VECTORS}", ""),
    "mapped": ("", "", f"'delta.columnMapping.mode' = 'name', {VECTORS}", "ADD CONSTRAINT positive CHECK (id > 0)"),
    "generated": (
        ", g INT GENERATED ALWAYS AS (id + 1), t TIMESTAMP_NTZ, x VARIANT",
        "",
        f"'delta.checkpointPolicy' = 'v2', {VECTORS}",
        "",
    ),
}
REFUSED = {
    "tracked": ("", "", "'delta.enableRowTracking' = 'true'", "RowTracking"),
    "timed": ("", "", "'delta.enableInCommitTimestamps' = 'true'", "InCommitTimestamp"),
    "numbered": (", k BIGINT GENERATED ALWAYS AS IDENTITY", "", VECTORS, "IdentityColumns"),
    "clustered": ("", "CLUSTER BY (id)", VECTORS, "ClusteredTable"),
}
DML = (
    "UPDATE {} SET v = 'x' WHERE id = 2",
    "DELETE FROM {} WHERE id < 3",
    "INSERT INTO {} (id, v) VALUES (9, 'z')",
    "DELETE FROM {}",
)


def made(spark: SparkSession, path: Path, more: str, clause: str, properties: str) -> str:
    place = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {place} (id INT, v STRING{more}) USING delta {clause} TBLPROPERTIES ({properties})")
    return place


def sent(spark: SparkSession, place: str, path: Path, dml: str, mark: str) -> int:
    before = log.newest_version(str(path))
    with apply.saying(spark, undo.said(mark)):
        spark.sql(dml.format(place))
    version = undo.find(str(path), mark, before)
    assert version == before + 1
    return version


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_as_it_was_and_goes_on(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    more, clause, properties, before = KINDS[kind]
    path = tmp_path / kind
    place = made(spark, path, more, clause, properties)
    if before:
        spark.sql(f"ALTER TABLE {place} {before}")
    spark.sql(f"INSERT INTO {place} (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, NULL)")
    assert undo.why_not(str(path)) is None

    def rows() -> list[str]:
        return sorted(map(str, spark.read.format("delta").load(str(path)).collect()))

    there = rows()
    for number, dml in enumerate(DML):
        version = sent(spark, place, path, dml, f"mark {number}")
        assert rows() != there
        assert undo.take_back(str(path), version, f"mark {number}") == version + 1
        assert rows() == there, dml
        info = log.commit_info(str(path), version + 1)
        assert info is not None
        assert undo.is_undo(info.user_metadata)
    spark.sql(f"INSERT INTO {place} (id, v) VALUES (5, 'c')")
    assert len(rows()) == 5


@pytest.mark.parametrize("kind", REFUSED)
def test_what_delta_rs_cannot_put_back_is_known_before(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    more, clause, properties, said = REFUSED[kind]
    path = tmp_path / kind
    place = made(spark, path, more, clause, properties)
    spark.sql(f"INSERT INTO {place} (id, v) VALUES (1, 'a')")
    assert undo.why_not(str(path)) is not None
    # as soon as it can, it may
    with pytest.raises(DeltaError, match=said):
        DeltaTable(path).restore(log.newest_version(str(path)) - 1, commit_properties=CommitProperties())


def test_what_others_wrote_since_is_not_wiped_away(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "met"
    place = made(spark, path, "", "", VECTORS)
    version = sent(spark, place, path, "INSERT INTO {} (id, v) VALUES (1, 'ours')", "mine")
    spark.sql(f"INSERT INTO {place} (id, v) VALUES (2, 'theirs')")
    with pytest.raises(CommitConflict, match="somebody else") as caught:
        undo.take_back(str(path), version, "mine")
    assert "WRITE in version 2" in (caught.value.detail or "")
    assert spark.read.format("delta").load(str(path)).count() == 2
    assert undo.find(str(path), "nobody's", 0) is None
    # one that takes new rows only keeps them
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    assert "new rows only" in (undo.why_not(str(path)) or "")


#: a value of each property that stays allowed
PLAIN = {
    "checkpointInterval": "20",
    "checkpointPolicy": "v2",
    "checkpoint.writeStatsAsJson": "true",
    "checkpoint.writeStatsAsStruct": "true",
    "columnMapping.mode": "name",
    "dataSkippingNumIndexedCols": "2",
    "dataSkippingStatsColumns": "id",
    "deletedFileRetentionDuration": "interval 8 days",
    "enableChangeDataFeed": "true",
    "enableDeletionVectors": "true",
    "enableExpiredLogCleanup": "true",
    "logRetentionDuration": "interval 40 days",
    "randomizeFilePrefixes": "true",
    "randomPrefixLength": "3",
    "setTransactionRetentionDuration": "interval 9 days",
}


def test_properties_that_may_be_set_take_nothing_away(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "plain"
    place = made(spark, path, "", "", VECTORS)
    spark.sql(f"INSERT INTO {place} VALUES (1, 'a'), (2, 'b')")
    for name, value in PLAIN.items():
        asked = (f"delta.{name}", value)
        assert undo.why_no_more((asked,), clusters=False) is None
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('{asked[0]}' = '{value}')")
        assert undo.why_not(str(path)) is None, asked
    assert {f"delta.{name}".casefold() for name in PLAIN} == {
        name for name in undo._PLAIN if not name.startswith("delta.feature.")
    }
    version = sent(spark, place, path, DML[1], "m")
    assert undo.take_back(str(path), version, "m") == version + 1
    assert spark.read.format("delta").load(str(path)).count() == 2


@pytest.mark.parametrize(
    "asked", ["delta.appendOnly", "delta.enableRowTracking", "delta.enableInCommitTimestamps", "CLUSTER BY (id)"]
)
def test_what_is_refused_does_take_it_away(spark: SparkSession, tmp_path: Path, asked: str) -> None:
    path = tmp_path / "other"
    place = made(spark, path, "", "", VECTORS)
    clusters = asked.startswith("CLUSTER")
    assert undo.why_no_more(() if clusters else ((asked, "true"),), clusters=clusters) is not None
    done = asked if clusters else f"SET TBLPROPERTIES ('{asked}' = 'true')"
    spark.sql(f"ALTER TABLE {place} {done}")
    assert undo.why_not(str(path)) is not None
