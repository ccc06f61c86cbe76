"""The matrix: whatever a commit does, the reader that is chosen gives the difference of the two versions."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.lake import changes, commits, differences, files, log, quoting, tables, views
from engine.lake.commits import ChangeKind, ChangeSummary
from engine.lake.session import SparkHost
from engine.records import Column

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("Id", "bigint"),
    Column("a.b'c", "decimal(12,2)"),
    Column("at", "timestamp"),
    Column("day", "date"),
    Column("local_at", "timestamp_ntz"),
    Column("bytes", "binary"),
    Column("tags", "array<string>"),
    Column("who", "struct<name:string,age:int>"),
    Column("notes", "map<string,int>"),
    Column("ratio", "double"),
    Column("ok", "boolean"),
    Column("tiny", "tinyint"),
)
NAMES = [column.name for column in COLUMNS]

SOME_ROWS = """
SELECT id AS Id, CAST(id * 1.25 AS decimal(12,2)) AS `a.b'c`,
       CASE WHEN id % 7 = 0 THEN NULL ELSE timestamp'1969-12-31 23:59:59.123456' + make_dt_interval(id) END AS at,
       date'1900-01-01' + CAST(id AS int) AS day, timestamp_ntz'2024-03-31 02:30:00.000001' AS local_at,
       CAST(concat('b', id) AS binary) AS bytes, array('x', NULL, CAST(id AS string)) AS tags,
       named_struct('name', CASE WHEN id % 5 = 0 THEN NULL ELSE 'n' END, 'age', CAST(id AS int)) AS who,
       map('k', CAST(id AS int)) AS notes, id / 3D AS ratio, id % 2 = 0 AS ok, CAST(id % 100 AS tinyint) AS tiny
FROM range({start}, {end})
"""

Action = Callable[[Any, str], None]


def rows(start: int, end: int) -> str:
    return SOME_ROWS.format(start=start, end=end)


def sql(template: str) -> Action:
    def run(session: Any, path: str) -> None:
        for statement in template.split(";"):
            session.sql(statement.format(t=quoting.table(path), rows=rows(200, 210), some=rows(5, 8)))

    return run


MERGE = (
    "MERGE INTO {t} t USING (SELECT id AS k FROM range(95, 105)) s ON t.Id = s.k "
    "WHEN MATCHED AND s.k = 96 THEN DELETE WHEN MATCHED THEN UPDATE SET ok = NULL "
    "WHEN NOT MATCHED THEN INSERT (Id) VALUES (s.k)"
)

COMMITS: dict[str, tuple[Action, ChangeKind]] = {
    "append": (sql("INSERT INTO {t} {rows}"), ChangeKind.APPEND),
    "delete": (sql("DELETE FROM {t} WHERE Id % 10 = 3"), ChangeKind.CHANGE),
    "delete twice": (sql("DELETE FROM {t} WHERE Id = 3;DELETE FROM {t} WHERE Id = 4"), ChangeKind.CHANGE),
    "update": (sql("UPDATE {t} SET `a.b'c` = `a.b'c` + 1 WHERE Id < 5"), ChangeKind.CHANGE),
    "merge": (sql(MERGE), ChangeKind.CHANGE),
    "overwrite": (sql("INSERT OVERWRITE {t} {some}"), ChangeKind.OVERWRITE),
    "replace where": (sql("INSERT INTO {t} REPLACE WHERE Id BETWEEN 5 AND 7 {some}"), ChangeKind.CHANGE),
    "restore": (
        sql("DELETE FROM {t} WHERE Id < 30;RESTORE {t} TO VERSION AS OF 2"),
        ChangeKind.OVERWRITE,
    ),
    "delete all": (sql("DELETE FROM {t}"), ChangeKind.OVERWRITE),
    "truncate": (sql("TRUNCATE TABLE {t}"), ChangeKind.OVERWRITE),
    "optimize": (sql("OPTIMIZE {t}"), ChangeKind.DATALESS),
    "optimize and append": (sql("OPTIMIZE {t};INSERT INTO {t} {rows}"), ChangeKind.APPEND),
    "properties": (sql("ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')"), ChangeKind.DATALESS),
    "delta-rs append": (lambda session, path: rs_append(path), ChangeKind.APPEND),
    "delta-rs delete": (lambda session, path: rs_delete(path), ChangeKind.CHANGE),
    "delta-rs update": (lambda session, path: rs_update(path), ChangeKind.CHANGE),
    "delta-rs overwrite": (lambda session, path: rs_overwrite(path), ChangeKind.OVERWRITE),
}


def rs_append(path: str) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    pinned = tables.pin(path)
    schema = pa.schema(pinned.handle.schema().to_arrow())
    write_deltalake(pinned.handle, pa.Table.from_pylist([{"Id": 1}, {"Id": None}], schema), mode="append")


def rs_overwrite(path: str) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    pinned = tables.pin(path)
    schema = pa.schema(pinned.handle.schema().to_arrow())
    write_deltalake(pinned.handle, pa.Table.from_pylist([{"Id": 1}], schema), mode="overwrite")


def rs_delete(path: str) -> None:
    tables.pin(path).handle.delete("`Id` = 3")


def rs_update(path: str) -> None:
    tables.pin(path).handle.update(updates={"`ok`": "false"}, predicate="`Id` < 5")


def make(session: Any, path: str, vectors: bool) -> None:
    """Version 1 has 100 rows and then some twice in version 2; 3 touches some, so that vectors exist."""
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": str(vectors).lower(),
    }
    tables.create(session, path, COLUMNS, properties, "it's a \\ comment")
    session.sql(f"INSERT INTO {quoting.table(path)} {rows(0, 100)}")
    session.sql(f"INSERT INTO {quoting.table(path)} {rows(0, 10)}")
    session.sql(f"DELETE FROM {quoting.table(path)} WHERE Id IN (20, 21)")


@pytest.fixture(scope="module")
def made(spark_host: SparkHost, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """Made once and copied for each case: a Delta table may be moved."""
    result = {vectors: str(tmp_path_factory.mktemp("made") / "table") for vectors in (True, False)}
    for vectors, path in result.items():
        make(spark_host.session(), path, vectors)
    return result


def frozen(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, dict):
        return tuple((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value


def counted(frame: Any) -> Counter[Any]:
    """The net weight of every row that does not cancel out."""
    result: Counter[Any] = Counter()
    for row in frame.toArrow().to_pylist():
        weight = row.pop(changes.WEIGHT)
        result[tuple(frozen(value) for value in row.values())] += weight
    return Counter({row: weight for row, weight in result.items() if weight})


def difference(session: Any, path: str, before: int, after: int) -> Counter[Any]:
    result: Counter[Any] = Counter()
    for version, sign in ((after, 1), (before, -1)):
        listed = ", ".join(map(quoting.name, NAMES))
        table = session.sql(f"SELECT {listed} FROM {quoting.table(path)} VERSION AS OF {version}").toArrow()
        for row in table.to_pylist():
            result[tuple(frozen(value) for value in row.values())] += sign
    return Counter({row: weight for row, weight in result.items() if weight})


def read(session: Any, path: str, summary: ChangeSummary, most: int = 100_000) -> changes.SourceChange:
    change = changes.read(session, path, NAMES, summary, "delta_x", most)
    views.make_ready(session, ("delta_x",))
    return change


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "plain"])
@pytest.mark.parametrize("commit", COMMITS)
def test_the_chosen_reader_gives_the_difference(
    spark: Any, made: dict[bool, str], delta_path: str, commit: str, vectors: bool
) -> None:
    action, kind = COMMITS[commit]
    shutil.copytree(made[vectors], delta_path)
    before = log.newest_version(delta_path)
    assert files.of(delta_path, before).has_deletions is vectors
    action(spark, delta_path)
    after = log.newest_version(delta_path)
    assert files.of(delta_path, after) == files._asked(delta_path, after)
    expected = difference(spark, delta_path, before, after)

    summary = commits.summarise(delta_path, before, after)
    assert summary.kind == kind
    assert bool(expected) == (kind is not ChangeKind.DATALESS)

    change = read(spark, delta_path, summary)
    assert counted(spark.table("delta_x")) == expected
    if change.rows is not None:
        assert change.rows == spark.table("delta_x").count()
        # an estimate of what was recorded: rows that came and went again, or stayed as they were, are none of ours
        recorded = changes._from_spark(spark, delta_path, NAMES, before, after).count()
        assert change.rows <= recorded
        assert recorded <= summary.rows_estimate <= 2 * recorded
    if kind is ChangeKind.DATALESS:
        assert change.reader == "none"
    elif summary.delta_rs_is_right:
        assert change.reader == "delta-rs"
    types = [(field.name, field.dataType) for field in spark.table("delta_x").schema.fields[:-1]]
    assert types == [(field.name, field.dataType) for field in spark.read.format("delta").load(delta_path).schema]

    if kind is not ChangeKind.DATALESS:
        large = read(spark, delta_path, summary, most=0)
        assert (large.reader, large.rows) == ("spark", None)
        assert counted(spark.table("delta_x")) == expected
        files_tell(spark, delta_path, summary, expected)


def files_tell(session: Any, path: str, summary: ChangeSummary, expected: Counter[Any]) -> None:
    """The same change, from the files that only one of the versions has."""
    for most in (100_000, 0):
        change = read(session, path, replace(summary, by_files=True), most)
        assert counted(session.table("delta_x")) == expected
        assert change.reader in ("files", "files by spark")
        # of an overwrite nobody knows before how much really changed: nothing is no more than nothing
        assert change.rows is not None if most else change.rows in (None, 0)
        if change.rows is not None:
            assert change.rows == session.table("delta_x").count() == sum(map(abs, expected.values()))


def test_a_small_change_is_a_local_relation(spark: Any, made: dict[bool, str], delta_path: str) -> None:
    """So Spark knows its size, and broadcasts it without asking."""
    shutil.copytree(made[True], delta_path)
    for before, reader in ((1, "delta-rs"), (2, "spark")):
        change = read(spark, delta_path, commits.summarise(delta_path, before, before + 1))
        assert (change.reader, change.rows is not None) == (reader, True)
        explained = spark.sql("EXPLAIN SELECT count(*) FROM delta_x").collect()[0][0]
        assert "LocalTableScan" in explained
        assert "FileScan" not in explained


def test_timestamps_in_sparks_old_form_are_not_left_to_delta_rs(spark: Any, delta_path: str) -> None:
    """delta-rs would read the year 1066 as 2235, and not say a word."""
    key = "spark.sql.parquet.outputTimestampType"
    ours = spark.conf.get(key)
    tables.create(spark, delta_path, COLUMNS[:3], {"delta.enableChangeDataFeed": "true"})
    insert = f"INSERT INTO {quoting.table(delta_path)} VALUES (1, 1, timestamp'1066-10-14 09:00:00')"
    try:
        spark.conf.set(key, "INT96")
        spark.sql(insert)
    finally:
        spark.conf.set(key, ours)
    spark.sql(insert)
    for after, wanted, reader in (
        (0, ["at"], "spark"),
        (0, ["Id", "a.b'c"], "delta-rs"),
        (1, ["at"], "delta-rs"),
    ):
        summary = commits.summarise(delta_path, after, after + 1)
        change = changes.read(spark, delta_path, wanted, summary, "delta_x", 100)
        views.make_ready(spark, ("delta_x",))
        assert change.reader == reader
        if wanted == ["at"]:
            assert spark.sql("SELECT year(at) AS y FROM delta_x").collect()[0]["y"] == 1066


# ---------------------------------------------------------------- without a Change Data Feed


@pytest.fixture(scope="module")
def unrecorded(spark_host: SparkHost, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tables whose writers record nothing: plain ones, and one that only Delta knows how to read."""
    session = spark_host.session()
    found = {}
    for kind in ("vectors", "plain"):
        found[kind] = str(tmp_path_factory.mktemp("unrecorded") / "table")
        make(session, found[kind], vectors=kind == "vectors")
        table = quoting.table(found[kind])
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    found["partitioned and mapped"] = path = found["vectors"] + "_partitioned"
    writer = session.read.format("delta").load(found["vectors"]).write.format("delta").partitionBy("ok")
    writer.option("delta.columnMapping.mode", "name").option("delta.enableDeletionVectors", "true").save(path)
    session.sql(f"INSERT INTO {quoting.table(path)} {rows(300, 310)}")
    session.sql(f"DELETE FROM {quoting.table(path)} WHERE Id IN (22, 301)")
    return found


@pytest.mark.parametrize("commit", ["append", "delete twice", "merge", "overwrite", "restore", "optimize and append"])
def test_files_tell_also_where_they_hold_other_names_and_no_partitions(
    spark: Any, unrecorded: dict[str, str], delta_path: str, commit: str
) -> None:
    action, _ = COMMITS[commit]
    shutil.copytree(unrecorded["partitioned and mapped"], delta_path)
    before = log.newest_version(delta_path)
    action(spark, delta_path)
    after = log.newest_version(delta_path)
    summary = commits.summarise(delta_path, before, after)
    files_tell(spark, delta_path, summary, difference(spark, delta_path, before, after))


def test_what_was_only_appended_is_read_by_the_driver(spark: Any, unrecorded: dict[str, str], delta_path: str) -> None:
    shutil.copytree(unrecorded["vectors"], delta_path)
    before = log.newest_version(delta_path)
    spark.sql(f"INSERT INTO {quoting.table(delta_path)} {rows(400, 402)}")
    summary = replace(commits.summarise(delta_path, before, before + 1), by_files=True)
    assert summary.kind is ChangeKind.APPEND
    change = read(spark, delta_path, summary)
    assert (change.reader, change.rows) == ("files", 2)
    assert not differences.are_gone(delta_path, summary)
    for file in Path(delta_path).glob("*.parquet"):
        file.unlink()
    assert differences.are_gone(delta_path, summary)


@pytest.mark.parametrize("kind", ["plain", "vectors", "partitioned and mapped"])
def test_a_change_of_which_no_column_is_asked_has_as_many_rows(
    spark: Any, unrecorded: dict[str, str], delta_path: str, kind: str
) -> None:
    """A product of two tables may need nothing else."""
    shutil.copytree(unrecorded[kind], delta_path)
    before = log.newest_version(delta_path)
    spark.sql(f"INSERT INTO {quoting.table(delta_path)} {rows(400, 402)}")
    spark.sql(f"DELETE FROM {quoting.table(delta_path)} WHERE Id IN (30, 31, 32)")
    summary = replace(commits.summarise(delta_path, before, before + 2), by_files=True)
    for most in (100_000, 0):
        changes.read(spark, delta_path, [], summary, "delta_x", most)
        views.make_ready(spark, ("delta_x",))
        assert spark.sql("SELECT sum(__w) AS net, count(*) AS n FROM delta_x").collect()[0].asDict() == {
            "net": -1,
            "n": 1,
        }


def test_a_rewritten_file_is_no_large_change(spark: Any, unrecorded: dict[str, str], delta_path: str) -> None:
    """Without deletion vectors an update of one row writes a file anew; the commit says how many rows it meant."""
    shutil.copytree(unrecorded["plain"], delta_path)
    before = log.newest_version(delta_path)
    spark.sql(f"UPDATE {quoting.table(delta_path)} SET ok = NULL WHERE Id = 50")
    assert commits.summarise(delta_path, before, before + 1).rows_estimate == 2
