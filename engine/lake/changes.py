"""What changed in a table between two versions: from its Change Data Feed, or from the files that tell them apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.algebra.nodes import WEIGHT
from engine.lake import capabilities, differences, failures, log, netting, old_days, quoting, tables, views
from engine.lake.commits import ChangeKind, ChangeSummary, files_between
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_CHANGE_TYPE = "_change_type"

#: so many files are opened to see how their days are written
_OPENED_FILES = 64


@dataclass(frozen=True)
class SourceChange:
    """A change, registered as a temporary view of the session that it was read for."""

    view: str
    #: None where nobody counted
    rows: int | None
    #: 'delta-rs', 'spark', 'files', 'files by spark' or 'none'
    reader: str
    duration_ms: float


def read(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    as_view: str,
    max_driver_rows: int,
) -> SourceChange:
    """The wanted columns of every changed row, with its weight: +1 for what came, -1 for what went."""
    started = time.perf_counter()
    try:
        reader, rows, frame = _read(session, path, columns, summary, max_driver_rows)
        frame.createOrReplaceTempView(as_view)
    except Exception as error:
        raise failures.typed(error, f"Reading the changes of {path}") from error
    return SourceChange(as_view, rows, reader, (time.perf_counter() - started) * 1000)


def local_relation(session: SparkSession, rows: pa.Table, schema: StructType) -> Any:
    """Rows of the driver as a relation whose size Spark knows, so that it broadcasts it."""
    return session.createDataFrame(rows, schema=schema)


def _read(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    max_driver_rows: int,
) -> tuple[str, int | None, Any]:
    after_version, upto_version = summary.after_version, summary.upto_version
    schema = _view_schema(path, upto_version, columns)
    if summary.kind is ChangeKind.DATALESS:
        return "none", 0, session.createDataFrame([], schema)
    if summary.by_files:
        return _from_files(session, path, columns, summary, max_driver_rows, schema)
    small = summary.rows_estimate <= max_driver_rows
    if small and _delta_rs_is_right(path, upto_version, summary, columns):
        rows = _from_delta_rs(path, columns, after_version, upto_version, max_driver_rows)
        if rows is not None:
            if summary.kind is not ChangeKind.APPEND:
                rows = _netted(session, rows, schema)
            return "delta-rs", rows.num_rows, local_relation(session, rows, schema)
    feed = _from_spark(session, path, columns, after_version, upto_version)
    if summary.kind is not ChangeKind.APPEND:
        feed = netting.of_frame(feed)
    if small:
        # read once for all the places of the query that need it, and of a known size
        rows = feed.toArrow()
        return "spark", rows.num_rows, local_relation(session, rows, schema)
    return "spark", None, feed


def _from_files(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    max_driver_rows: int,
    schema: StructType,
) -> tuple[str, int | None, Any]:
    files = files_between(path, summary)
    # compacting takes files away, too, although it changes nothing
    cancels = bool(files.went)
    found = differences.here(path, columns, summary, files, max_driver_rows)
    if found is not None:
        rows = _plain(found)
        rows = _netted(session, rows, schema) if cancels else rows
        return "files", rows.num_rows, local_relation(session, rows, schema)
    types = {column.name.casefold(): column.type for column in tables.columns(path, summary.upto_version)}
    wanted = [Column(name, types[name.casefold()]) for name in columns]
    frame = differences.by_spark(session, path, wanted, summary, files)
    frame = netting.of_frame(frame) if cancels else frame
    if summary.rows_estimate <= max_driver_rows:
        rows = frame.toArrow()
        return "files by spark", rows.num_rows, local_relation(session, rows, schema)
    return "files by spark", None, frame


def _netted(session: SparkSession, rows: pa.Table, schema: StructType) -> pa.Table:
    if netting.is_possible(rows):
        return netting.of_rows(rows)
    left: pa.Table = netting.of_frame(local_relation(session, rows, schema)).toArrow()
    return left


def _delta_rs_is_right(path: str, upto_version: int, summary: ChangeSummary, columns: Sequence[str]) -> bool:
    if not summary.delta_rs_is_right:
        return False
    definition = log.definition(path, upto_version)
    if not capabilities.of(definition, path).can_driver_read:
        return False
    wanted = {name.lower() for name in columns}
    types = [item["type"] for item in definition.schema["fields"] if item["name"].lower() in wanted]
    return not old_days.are_possible(types) or not _may_have_old_days(path, summary)


def _may_have_old_days(path: str, summary: ChangeSummary) -> bool:
    files = [file for commit in summary.commits for file in commit.files]
    return len(files) > _OPENED_FILES or old_days.in_files(path, files)


def _from_delta_rs(
    path: str, columns: Sequence[str], after_version: int, upto_version: int, max_rows: int
) -> pa.Table | None:
    """None when there turned out to be more rows than the driver should hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    handle = tables.pin(path, upto_version).handle
    stream = handle.load_cdf(
        starting_version=after_version + 1,
        ending_version=upto_version,
        columns=[*map(quoting.name, columns), _CHANGE_TYPE],
    )
    batches: list[pa.RecordBatch] = []
    total = 0
    for batch in stream:
        batches.append(pa.record_batch(batch))
        total += batches[-1].num_rows
        if total > max_rows:
            return None
    found = pa.Table.from_batches(batches, pa.schema(stream.schema))
    came = pc.is_in(
        found.column(_CHANGE_TYPE).cast(pa.string()),
        value_set=pa.array(["insert", "update_postimage"]),
    )
    weights = pc.if_else(came, pa.scalar(1, pa.int32()), pa.scalar(-1, pa.int32()))
    return _plain(found.select(list(columns)).append_column(WEIGHT, weights))


def _from_spark(session: SparkSession, path: str, columns: Sequence[str], after_version: int, upto_version: int) -> Any:
    feed = (
        session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", after_version + 1)
        .option("endingVersion", upto_version)
        .load(path)
    )
    weight = f"CASE WHEN {_CHANGE_TYPE} IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
    types = {field.name.casefold(): field.dataType.simpleString() for field in feed.schema.fields}
    chosen = [views.readable(Column(name, types[name.casefold()])) for name in columns]
    return feed.selectExpr(*chosen, f"{weight} AS {WEIGHT}")


def _plain(rows: pa.Table) -> pa.Table:
    """delta-rs hands out views of strings and bytes, which neither Arrow's grouping nor Spark takes."""
    import pyarrow as pa

    types = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [field.with_type(types.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def _view_schema(path: str, version: int, columns: Sequence[str]) -> StructType:
    """The table's own Spark types: what Arrow would make of them may differ in zone or precision."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    whole = StructType.fromJson(log.definition(path, version).schema)
    by_name = {field.name.lower(): field for field in whole.fields}
    fields = [StructField(name, by_name[name.lower()].dataType, True) for name in columns]
    return StructType([*fields, StructField(WEIGHT, IntegerType(), False)])
