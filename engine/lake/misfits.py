"""Rows of a change set that do not fit the stored ones: looked for after a writer refused, to name one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.lake import queries, quoting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.lake.tables import Pinned

OPERATION = "__trickle_op"


def of_rows(pinned: Pinned, change_set: pa.Table, identity: Sequence[str]) -> str | None:
    """One of them, in words."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    listed = ", ".join(map(quoting.name, identity))
    reader = QueryBuilder().register("t", pinned.handle).execute(f"SELECT {listed} FROM t")  # noqa: S608  quoted
    known = pa.table(reader.read_all()).cast(change_set.select(list(identity)).schema)
    stored = set(_identities(known, identity))
    asked = _identities(change_set, identity)
    times = Counter(asked)
    for row, (operation, key) in enumerate(zip(change_set[OPERATION].to_pylist(), asked, strict=True)):
        if (operation == "I") == (key in stored) or times[key] > 1:
            return queries.in_words(change_set.slice(row, 1))
    return None


def of_frame(session: SparkSession, path: str, version: int, frame: DataFrame, identity: Sequence[str]) -> str | None:
    """One of them, in words."""
    from pyspark.sql import functions

    keys = [quoting.name(name) for name in identity]
    stored = session.sql(f"SELECT {', '.join(keys)} FROM {quoting.table(path)} VERSION AS OF {version}")  # noqa: S608  quoted
    here, there = frame.alias("s"), stored.alias("t")
    fits = " AND ".join(f"s.{key} <=> t.{key}" for key in keys)
    is_new = f"s.{quoting.name(OPERATION)} = 'I'"
    same = functions.expr(fits)
    wrong = (
        here.where(is_new).join(there, same, "left_semi"),
        here.where(f"NOT {is_new}").join(there, same, "left_anti"),
        here.join(frame.groupBy(*keys).count().where("count > 1").drop("count").alias("t"), same, "left_semi"),
    )
    for found in (queries.collect(rows.limit(1), "looking for a row that does not fit") for rows in wrong):
        if found.num_rows:
            return queries.in_words(found)
    return None


def _identities(rows: pa.Table, identity: Sequence[str]) -> list[tuple[object, ...]]:
    columns = [map(_hashable, rows[name].to_pylist()) for name in identity]
    return list(zip(*columns, strict=True))


def _hashable(value: object) -> object:
    match value:
        case list():
            return tuple(map(_hashable, value))
        case dict():
            return tuple((key, _hashable(item)) for key, item in value.items())
    return value
