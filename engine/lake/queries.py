"""Running statements in a session: settings for what comes, results as Arrow, typed failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.lake import failures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: below this many changed rows one task is faster than a plan for many
SMALL_ROWS = 50_000
#: more rows than that are no part of a plan: each rule that compares plans compares all of them, and of 50,000 rows a
#: statement was analysed for 0.1 s and optimized for 0.5 s before it ran
_IN_PLAN_ROWS = 2_000


_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # only here: it also says into how many parts files are cut that are read
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
}


#: where the memory was not enough: nothing is held as a whole, and a task has little of it at a time
_FRUGAL = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4MB",
    "spark.sql.files.maxPartitionBytes": "16MB",
}


def tune(session: SparkSession, *, small: bool) -> None:
    """Settings for what is about to run: a small change wants neither many tasks nor plans that adapt."""
    wanted = _FRUGAL if getattr(session, "_trickle_frugal", False) else _SMALL if small else {}
    if getattr(session, "_trickle_tuned", None) == wanted:
        return
    for key, usual in _usual(session).items():
        value = wanted.get(key, usual)
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
    session._trickle_tuned = wanted  # type: ignore[attr-defined]


@contextmanager
def frugally(session: SparkSession) -> Iterator[None]:
    """All that runs in the session inside of the block takes little memory, and its time."""
    session._trickle_frugal = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        session._trickle_frugal = False  # type: ignore[attr-defined]


def _usual(session: SparkSession) -> dict[str, str | None]:
    """As it was before the first change. Remembered: the whole configuration takes 25 ms to cross over from the JVM."""
    if not hasattr(session, "_trickle_usual"):
        keys = dict.fromkeys((*_SMALL, *_FRUGAL))
        session._trickle_usual = {key: session.conf.get(key, None) for key in keys}  # type: ignore[attr-defined]
    found: dict[str, str | None] = session._trickle_usual  # type: ignore[attr-defined]
    return found


def run(session: SparkSession, sql: str, doing: str) -> DataFrame:
    try:
        return session.sql(sql)
    except Exception as error:
        raise failures.typed(error, doing) from error


def local_relation(session: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Rows of the driver as a relation whose size Spark knows, so that it broadcasts it where it is small.

    Few are said to be one partition, which Spark does not see by itself: it would exchange them before it groups them.
    Without a schema they have the types by which Spark hands rows out: left to itself, it takes in a moment without a
    zone as one with a zone.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if schema is None:
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    frame = session.createDataFrame(rows, schema=schema)
    return frame.coalesce(1) if rows.num_rows <= _IN_PLAN_ROWS else frame.localCheckpoint(eager=False)


def collect(frame: DataFrame, doing: str) -> pa.Table:
    try:
        return frame.toArrow()
    except Exception as error:
        raise failures.typed(error, doing) from error


def in_words(row: pa.Table) -> str:
    """The first row, for messages; our own columns are nobody's business."""
    values = row.slice(0, 1).to_pylist()[0]
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if not name.startswith("__trickle"))


def collect_at_most(frame: DataFrame, rows: int, doing: str) -> pa.Table | None:
    """The result when it has no more rows than that, else None; more is never brought to the driver."""
    found = collect(frame.limit(rows + 1), doing)
    return None if found.num_rows > rows else found
