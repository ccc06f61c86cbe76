"""Running statements in a session: views over versions, results as Arrow, typed failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.lake import failures, quoting
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: below this many changed rows one task is faster than a plan for many
SMALL_ROWS = 50_000

_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
}


def tune(session: SparkSession, *, small: bool) -> None:
    """Settings for what is about to run: a small change wants neither many tasks nor plans that adapt."""
    if getattr(session, "_trickle_small", None) == small:
        return
    base = session.sparkContext.getConf()
    for key, value in _SMALL.items():
        usual = base.get(key)
        if small:
            session.conf.set(key, value)
        elif usual is not None:
            session.conf.set(key, usual)
        else:
            session.conf.unset(key)
    session._trickle_small = small  # type: ignore[attr-defined]


def view_of_version(
    session: SparkSession, name: str, path: str, version: int | None, columns: Sequence[Column]
) -> None:
    """A temporary view of a table's columns, as of a version or as it is."""
    at = "" if version is None else f" VERSION AS OF {version}"
    listed = ", ".join(quoting.name(column.name) for column in columns)
    run(
        session,
        f"CREATE OR REPLACE TEMPORARY VIEW {quoting.name(name)} AS "  # noqa: S608  quoted
        f"SELECT {listed} FROM {quoting.table(path)}{at}",
        f"reading {name}",
    )


def empty_change_view(session: SparkSession, name: str, path: str, columns: Sequence[Column], weight: str) -> None:
    """A temporary view with the shape of a change and no rows: for analysing a statement before any change."""
    listed = ", ".join(quoting.name(column.name) for column in columns)
    run(
        session,
        f"CREATE OR REPLACE TEMPORARY VIEW {quoting.name(name)} AS "  # noqa: S608  quoted
        f"SELECT {listed}{', ' if listed else ''}1 AS {quoting.name(weight)} FROM {quoting.table(path)} WHERE false",
        f"reading {name}",
    )


def empty_view(session: SparkSession, name: str, columns: Sequence[Column]) -> None:
    """A temporary view with these columns and no rows."""
    listed = ", ".join(f"CAST(NULL AS {column.type}) AS {quoting.name(column.name)}" for column in columns)
    run(session, f"CREATE OR REPLACE TEMPORARY VIEW {quoting.name(name)} AS SELECT {listed} WHERE false", name)


def local_view(session: SparkSession, name: str, rows: pa.Table) -> None:
    """A small result as a local relation, of whose size Spark knows."""
    try:
        session.createDataFrame(rows).createOrReplaceTempView(name)
    except Exception as error:
        raise failures.typed(error, "handing rows to Spark") from error


def run(session: SparkSession, sql: str, doing: str) -> DataFrame:
    try:
        return session.sql(sql)
    except Exception as error:
        raise failures.typed(error, doing) from error


def collect(frame: DataFrame, doing: str) -> pa.Table:
    try:
        return frame.toArrow()
    except Exception as error:
        raise failures.typed(error, doing) from error


def collect_at_most(frame: DataFrame, rows: int, doing: str) -> pa.Table | None:
    """The result when it has no more rows than that, else None; more is never brought to the driver."""
    found = collect(frame.limit(rows + 1), doing)
    return None if found.num_rows > rows else found
