"""Commits by both writers on the real thing: what Spark wrote, delta-rs goes on with, and Spark reads."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from engine.errors import CommitConflict, NegativeMultiplicity, Tampered
from engine.lake import apply, data_files, log, quoting, tables
from engine.lake.apply import OPERATION, Counts
from engine.lake.commits import ChangeKind, summarise
from engine.lake.session import SparkHost
from engine.lake.stamp import Stamp, find_refresh, foreign_change, last_stamp
from engine.records import Column, Outcome, SourceVersion

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("key.a", "bigint"),
    Column("key'b", "string"),
    Column("at", "timestamp"),
    Column("price", "decimal(38,6)"),
    Column("tags", "array<string>"),
    Column("day", "date"),
    Column("local_at", "timestamp_ntz"),
    Column("__trickle_count", "bigint", nullable=False),
)
IDENTITY = ("key.a", "key'b", "at", "price")
SCHEMA = pa.schema(
    [
        ("key.a", pa.int64()),
        ("key'b", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(38, 6)),
        ("tags", pa.list_(pa.string())),
        ("day", pa.date32()),
        ("local_at", pa.timestamp("us")),
        ("__trickle_count", pa.int64()),
    ]
)
AT = datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC)
OLD = datetime(1066, 10, 14, 9, 0, tzinfo=UTC)


def row(a: Any, b: Any, at: Any, price: Any, tags: Any, n: int) -> dict[str, Any]:
    values = (a, b, at, price and Decimal(price), tags, date(1582, 10, 4), datetime(2024, 3, 31, 2, 30), n)
    return dict(zip(SCHEMA.names, values, strict=True))


FIRST = [
    row(1, "it's", AT, "12345678901234567890123456789012.123456", ["a", None], 1),
    row(2, 'say "x" \\ `y`', OLD, "-0.000001", [], 2),
    row(None, None, None, None, None, 3),
    row(None, "", AT, "0", ["\n"], 4),
    row(3, "drop", AT, "1", ["x"], 5),
]


def change_set(*changes: tuple[str, dict[str, Any]]) -> pa.Table:
    rows = [{**values, OPERATION: operation} for operation, values in changes]
    return pa.Table.from_pylist(rows, SCHEMA.append(pa.field(OPERATION, pa.string())))


def stamp(sequence: int, refresh_id: str = "") -> Stamp:
    frontier = {"orders": SourceVersion(7, "abc", "id-1")}
    return Stamp("st-1", refresh_id or f"r-{sequence}", sequence, Outcome.DIFFERENTIAL, frontier, frontier, "fp", 1, 2)


CHANGES = change_set(
    ("U", row(1, "it's", AT, "12345678901234567890123456789012.123456", ["changed"], 10)),
    ("U", row(None, None, None, None, ["was null"], 30)),
    ("D", row(3, "drop", AT, "1", None, 0)),
    ("I", row(4, "new", None, "7", None, 40)),
    ("I", row(None, "new", OLD, None, ["q'"], 41)),
)
EXPECTED = Counts(inserted=2, updated=2, deleted=1)
AFTER = [
    row(1, "it's", AT, "12345678901234567890123456789012.123456", ["changed"], 10),
    FIRST[1],
    row(None, None, None, None, ["was null"], 30),
    FIRST[3],
    row(4, "new", None, "7", None, 40),
    row(None, "new", OLD, None, ["q'"], 41),
]


def shown(rows: list[dict[str, Any]]) -> Counter[str]:
    table = pa.Table.from_pylist([{name: row[name] for name in SCHEMA.names} for row in rows], SCHEMA)
    return Counter(repr(list(row.values())) for row in table.to_pylist())


def stored(session: Any, path: str, version: int | None = None) -> Counter[str]:
    at = "" if version is None else f" VERSION AS OF {version}"
    return shown(session.sql(f"SELECT * FROM {quoting.table(path)}{at}").toArrow().to_pylist())


def frame(session: Any, rows: pa.Table) -> Any:
    """As a query gives it: what is never NULL is known not to be."""
    types = ", ".join(
        f"{quoting.name(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}" for column in COLUMNS
    )
    operation = f", {OPERATION} string" if OPERATION in rows.column_names else ""
    return session.createDataFrame(rows, schema=StructType.fromDDL(types + operation))


@pytest.fixture(scope="module")
def made(spark_host: SparkHost, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """A stream table with deletion vectors, and one without, as a FULL refresh leaves it."""
    session = spark_host.session()
    result = {}
    for vectors in (True, False):
        path = str(tmp_path_factory.mktemp("made") / "st")
        properties = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": str(vectors).lower(),
        }
        tables.create(session, path, COLUMNS, properties, "made by Trickle")
        doomed = pa.Table.from_pylist([*FIRST, row(99, "x", None, None, None, 9)], SCHEMA)
        apply.overwrite_frame(session, path, 0, frame(session, doomed), stamp(1))
        # with vectors switched on, this leaves one
        apply.merge_frame(
            session,
            path,
            1,
            frame(session, change_set(("D", row(99, "x", None, None, None, 9)))),
            IDENTITY,
            stamp(2),
            Counts(deleted=1),
        )
        result[vectors] = path
    return result


@pytest.fixture(params=[True, False], ids=["vectors", "plain"])
def st(request: pytest.FixtureRequest, made: dict[bool, str], delta_path: str) -> str:
    shutil.copytree(made[request.param], delta_path)
    return delta_path


def test_a_full_refresh_keeps_table_and_stamp(spark: Any, st: str) -> None:
    assert stored(spark, st) == shown(FIRST)
    pinned = tables.pin(st)
    assert pinned.version == 2
    assert pinned.columns == COLUMNS
    assert pinned.rows() == len(FIRST)
    found = last_stamp(pinned.path, pinned.version)
    assert found is not None
    assert (found.version, found.stamp) == (2, stamp(2))
    commit = apply.overwrite_frame(spark, st, 2, frame(spark, pa.Table.from_pylist(AFTER, SCHEMA)), stamp(3))
    assert (commit.version, commit.inserted, commit.deleted) == (3, len(AFTER), len(FIRST))
    assert stored(spark, st) == shown(AFTER)
    assert tables.cdf_enabled(st)
    assert tables.columns(st) == COLUMNS


def test_a_full_refresh_shows_the_next_stream_table_what_it_changed(spark: Any, st: str) -> None:
    apply.overwrite_frame(spark, st, 2, frame(spark, pa.Table.from_pylist(AFTER, SCHEMA)), stamp(3))
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3).load(st)
    changes = feed.toArrow().to_pylist()
    assert shown([row for row in changes if row["_change_type"] == "delete"]) == shown(FIRST)
    assert shown([row for row in changes if row["_change_type"] == "insert"]) == shown(AFTER)
    assert summarise(st, 2, 3).kind is ChangeKind.OVERWRITE
    assert not list(Path(st).glob("full-*/_*")), "nothing but files is left"
    spark.sql(f"VACUUM {quoting.table(st)}")
    assert stored(spark, st) == shown(AFTER)


def test_no_reader_leaves_out_files_of_a_full_refresh_that_it_needs(spark: Any, st: str) -> None:
    """Their bounds are ours, made from what stands at the end of the files."""
    long = row(5, "x" * 40, AT, "-12345678901234567890123456789012.123456", None, 50)
    rows = [*AFTER, long]
    apply.overwrite_frame(spark, st, 2, frame(spark, pa.Table.from_pylist(rows, SCHEMA)), stamp(3))
    bounds = pa.table(tables.pin(st).handle.get_add_actions(flatten=True)).to_pylist()
    assert {"min.at", "max.price", "null_count.day", "min.key'b"} <= bounds[0].keys()
    assert sum(each["num_records"] for each in bounds) == len(rows)
    for column in (each.name for each in COLUMNS if each.name != "tags"):
        quoted, type_ = quoting.name(column), next(each.type for each in COLUMNS if each.name == column)
        for value in {each[column] for each in rows}:
            expected = sum(each[column] == value for each in rows)
            literal = "NULL" if value is None else "'" + str(value).replace("\\", r"\\").replace("'", r"\'") + "'"
            condition = f"{quoted} <=> CAST({literal} AS {type_})"
            found = spark.sql(f"SELECT count(*) FROM {quoting.table(st)} WHERE {condition}").collect()[0][0]
            assert found == expected, condition


def test_a_full_refresh_can_leave_no_rows(spark: Any, st: str) -> None:
    for version in (2, 3):
        commit = apply.overwrite_frame(spark, st, version, frame(spark, SCHEMA.empty_table()), stamp(version + 1))
        assert commit.version == version + 1
        assert stored(spark, st) == shown([])


def test_a_full_refresh_is_refused_when_somebody_commits_meanwhile(
    spark: Any, st: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = data_files.write

    def overtaken(*given: Any) -> data_files.Written:
        written = write(*given)
        spark.sql(f"DELETE FROM {quoting.table(st)} WHERE true")
        return written

    monkeypatch.setattr(data_files, "write", overtaken)
    with pytest.raises(CommitConflict):
        apply.overwrite_frame(spark, st, 2, frame(spark, pa.Table.from_pylist(AFTER, SCHEMA)), stamp(3))
    assert stored(spark, st) == shown([])


@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
def test_both_writers_apply_a_change_set(spark: Any, st: str, writer: str) -> None:
    if writer == "delta-rs":
        commit = apply.merge(tables.pin(st), CHANGES, IDENTITY, stamp(3), EXPECTED)
    else:
        commit = apply.merge_frame(spark, st, 2, frame(spark, CHANGES), IDENTITY, stamp(3), EXPECTED)
    assert commit.version == log.newest_version(st) == 3
    assert (commit.inserted, commit.updated, commit.deleted) == (2, 2, 1)
    assert stored(spark, st) == shown(AFTER)
    assert find_refresh(st, "r-3", 0) == 3
    found = last_stamp(st, log.newest_version(st))
    assert found is not None
    assert found.stamp == stamp(3)
    # and the next stream table sees exactly this change
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3).load(st)
    changes = feed.toArrow().to_pylist()
    net = shown([row for row in changes if row["_change_type"] in ("insert", "update_postimage")])
    net.subtract(shown([row for row in changes if row["_change_type"] in ("delete", "update_preimage")]))
    net.update(shown(FIRST))
    net.subtract(shown(AFTER))
    assert not any(net.values())


@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
@pytest.mark.parametrize(
    ("operation", "values"),
    [("U", row(77, "gone", AT, "1", None, 1)), ("D", row(77, "gone", AT, "1", None, 1)), ("I", FIRST[1])],
    ids=["replace what is not there", "delete what is not there", "insert what is there"],
)
def test_a_row_that_does_not_fit_commits_nothing(
    spark: Any, st: str, writer: str, operation: str, values: dict[str, Any]
) -> None:
    changes = change_set((operation, values), ("D", FIRST[4]))
    attempts = {
        "delta-rs": lambda: apply.merge(tables.pin(st), changes, IDENTITY, stamp(3), Counts(deleted=2)),
        "spark": lambda: apply.merge_frame(spark, st, 2, frame(spark, changes), IDENTITY, stamp(3)),
    }
    with pytest.raises(NegativeMultiplicity) as caught:
        attempts[writer]()
    assert "row to be" in (caught.value.detail or "")
    assert f"For example key.a={values['key.a']!r}" in (caught.value.detail or "")
    assert log.newest_version(st) == 2
    assert stored(spark, st) == shown(FIRST)


def test_one_identity_twice_commits_nothing(spark: Any, st: str) -> None:
    changes = change_set(("U", FIRST[0]), ("U", FIRST[0]))
    with pytest.raises(NegativeMultiplicity, match="two rows have one identity"):
        apply.merge(tables.pin(st), changes, IDENTITY, stamp(3), Counts(updated=2))
    with pytest.raises(NegativeMultiplicity, match="two rows have one identity"):
        apply.merge_frame(spark, st, 2, frame(spark, changes), IDENTITY, stamp(3))
    assert log.newest_version(st) == 2


def test_optimize_in_between_is_a_conflict_for_the_pinned_and_nothing_foreign(spark: Any, st: str) -> None:
    pinned = tables.pin(st)
    spark.sql(f"OPTIMIZE {quoting.table(st)}")
    newest = log.newest_version(st)
    if newest == 2:  # nothing to compact: a property is as free of data
        newest = tables.set_properties(st, {"x": "y"})
    for attempt in (
        lambda: apply.merge(pinned, CHANGES, IDENTITY, stamp(3), EXPECTED),
        lambda: apply.append(tables.pin(st, 2), pa.Table.from_pylist(AFTER[-1:], SCHEMA), stamp(3)),
        lambda: apply.empty(tables.pin(st, 2), stamp(3)),
        lambda: apply.merge_frame(spark, st, 2, frame(spark, CHANGES), IDENTITY, stamp(3)),
    ):
        with pytest.raises(CommitConflict):
            attempt()
    assert foreign_change(st, 2, newest) is None
    again = tables.pin(st)
    assert apply.merge(again, CHANGES, IDENTITY, stamp(3), EXPECTED).version == newest + 1
    assert stored(spark, st) == shown(AFTER)


def test_a_used_sequence_is_refused_by_both_writers(spark: Any, st: str) -> None:
    for sequence in (1, 2):
        with pytest.raises(CommitConflict):
            apply.merge(tables.pin(st), CHANGES, IDENTITY, stamp(sequence, "other"), EXPECTED)
        with pytest.raises(CommitConflict):
            apply.empty(tables.pin(st), stamp(sequence, "other"))
        # Spark skips it without a word: only the log tells
        with pytest.raises(CommitConflict):
            apply.merge_frame(spark, st, 2, frame(spark, CHANGES), IDENTITY, stamp(sequence, "other"))
    assert log.newest_version(st) == 2


def test_what_somebody_else_wrote_is_noticed(spark: Any, st: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.sql(f"DELETE FROM {quoting.table(st)} WHERE `key.a` = 1")
    said = foreign_change(st, 2, 3)
    assert said is not None
    assert "DELETE in version 3" in said
    # between our look and Spark's commit: the commit goes through, and we say so
    monkeypatch.setattr(apply, "_refuse_newer", lambda path, version: None)
    fitting = change_set(("I", row(4, "new", None, "7", None, 40)))
    with pytest.raises(Tampered):
        apply.merge_frame(spark, st, 2, frame(spark, fitting), IDENTITY, stamp(3))


def test_appends_and_stamps_alone(spark: Any, st: str) -> None:
    more = pa.Table.from_pylist(AFTER[-2:], SCHEMA)
    first = apply.append(tables.pin(st), more, stamp(3))
    second = apply.append_frame(spark, st, 3, frame(spark, more), stamp(4))
    third = apply.empty(tables.pin(st), replace(stamp(5), outcome=Outcome.NO_DATA))
    assert [(c.version, c.inserted) for c in (first, second, third)] == [(3, 2), (4, 2), (5, 0)]
    assert stored(spark, st) == shown(FIRST + AFTER[-2:] * 2)
    found = last_stamp(st, log.newest_version(st))
    assert found is not None
    assert (found.stamp.sequence, found.stamp.outcome) == (5, Outcome.NO_DATA)
    assert stored(spark, st, 5) == stored(spark, st, 4)


def test_the_session_is_left_as_it_was(spark_host: SparkHost, st: str) -> None:
    # one of its own: Spark cannot list a session's views once the files of one of them are gone
    spark = spark_host.session().newSession()
    apply.merge_frame(spark, st, 2, frame(spark, CHANGES), IDENTITY, stamp(3), EXPECTED)
    for key in ("commitInfo.userMetadata", "write.txnAppId", "write.txnVersion"):
        assert spark.conf.get(f"spark.databricks.delta.{key}", None) is None
    assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("__trickle")]
