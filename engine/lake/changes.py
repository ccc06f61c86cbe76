"""What changed in a table between two versions: from its Change Data Feed, or from the files that tell them apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.algebra.nodes import WEIGHT
from engine.lake import (
    capabilities,
    differences,
    failures,
    log,
    netting,
    old_days,
    opened,
    queries,
    quoting,
    tables,
    views,
)
from engine.lake.commits import ChangeKind, ChangeSummary, files_between
from engine.lake.shared_changes import SharedChanges
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
    #: 'delta-rs', 'spark', 'files', 'files by spark', 'shared' or 'none'
    reader: str
    duration_ms: float


@dataclass(frozen=True)
class _Found:
    """One of the two: rows of the driver, or what Spark would read."""

    reader: str
    rows: pa.Table | None = None
    frame: Any = None


def read(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    as_view: str,
    max_driver_rows: int,
    shared: SharedChanges | None = None,
    siblings: Sequence[str] | None = None,
) -> SourceChange:
    """The wanted columns of every changed row, with its weight: +1 for what came, -1 for what went.

    `siblings`: columns that others will ask for of the same change; None when nobody will.
    """
    started = time.perf_counter()
    try:
        found = _shared(session, path, columns, summary, max_driver_rows, shared, siblings)
        if found.rows is None:
            views.of_frame(session, as_view, found.frame)
        else:
            views.of_rows(session, as_view, found.rows, _view_schema(path, summary.upto_version, columns))
    except Exception as error:
        raise failures.typed(error, f"Reading the changes of {path}") from error
    counted = None if found.rows is None else found.rows.num_rows
    return SourceChange(as_view, counted, found.reader, (time.perf_counter() - started) * 1000)


def _shared(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    max_driver_rows: int,
    shared: SharedChanges | None,
    siblings: Sequence[str] | None,
) -> _Found:
    """Read once for all who have to read it, where it is small."""
    if shared is None:
        return _read(session, path, columns, summary, max_driver_rows)
    schema = _view_schema(path, summary.upto_version, columns)
    held = shared.find(path, summary, columns)
    if held is not None:
        return _Found("shared", _narrowed(session, held, columns, schema))
    if siblings is None or summary.rows_estimate > max_driver_rows:
        return _read(session, path, columns, summary, max_driver_rows)
    with shared.turn(path):
        held = shared.find(path, summary, columns)
        if held is not None:
            return _Found("shared", _narrowed(session, held, columns, schema))
        wider = _with_siblings(path, summary, columns, siblings)
        found = _read(session, path, wider, summary, max_driver_rows)
        if found.rows is not None:
            shared.keep(path, summary, found.rows)
            return _Found(found.reader, _narrowed(session, found.rows, columns, schema))
    # more rows than it seemed
    return found if len(wider) == len(columns) else _read(session, path, columns, summary, max_driver_rows)


def _with_siblings(path: str, summary: ChangeSummary, columns: Sequence[str], siblings: Sequence[str]) -> Sequence[str]:
    """Not with nested values, by which the driver does not cancel rows."""
    types = {column.name: column.type for column in tables.columns(path, summary.upto_version)}
    wider = list(dict.fromkeys([*columns, *(name for name in siblings if name in types)]))
    return columns if any(_is_nested(types.get(name, "")) for name in wider) else wider


def _is_nested(type_: str) -> bool:
    return type_.startswith(("array", "map", "struct", "variant"))


def _narrowed(session: SparkSession, rows: pa.Table, columns: Sequence[str], schema: StructType) -> pa.Table:
    """Without the columns that others asked for, rows may cancel each other that differed in these alone."""
    import pyarrow.compute as pc

    if rows.column_names == [*columns, WEIGHT]:
        return rows
    chosen = rows.select([*columns, WEIGHT])
    least = pc.min(chosen.column(WEIGHT)).as_py()
    return chosen if least is None or least > 0 else _netted(session, chosen, schema)


def _read(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    max_driver_rows: int,
) -> _Found:
    after_version, upto_version = summary.after_version, summary.upto_version
    schema = _view_schema(path, upto_version, columns)
    if summary.kind is ChangeKind.DATALESS:
        return _Found("none", frame=session.createDataFrame([], schema))
    if summary.by_files:
        return _from_files(session, path, columns, summary, max_driver_rows, schema)
    small = summary.rows_estimate <= max_driver_rows
    if small and _delta_rs_is_right(path, upto_version, summary, columns):
        rows = _from_delta_rs(path, columns, after_version, upto_version, max_driver_rows)
        if rows is not None:
            if summary.kind is not ChangeKind.APPEND:
                rows = _netted(session, rows, schema)
            return _Found("delta-rs", rows)
    feed = _from_spark(session, path, columns, after_version, upto_version)
    if summary.kind is not ChangeKind.APPEND:
        feed = netting.of_frame(feed)
    rows = _brought(feed, path, summary, max_driver_rows)
    return _Found("spark", rows) if rows is not None else _Found("spark", frame=feed)


def _from_files(
    session: SparkSession,
    path: str,
    columns: Sequence[str],
    summary: ChangeSummary,
    max_driver_rows: int,
    schema: StructType,
) -> _Found:
    files = files_between(path, summary)
    # compacting takes files away, too, although it changes nothing
    cancels = bool(files.went)
    found = differences.here(path, columns, summary, files, max_driver_rows)
    if found is not None:
        rows = _plain(found)
        return _Found("files", _netted(session, rows, schema) if cancels else rows)
    types = {column.name.casefold(): column.type for column in tables.columns(path, summary.upto_version)}
    wanted = [Column(name, types[name.casefold()]) for name in columns]
    frame = differences.by_spark(session, path, wanted, summary, files)
    frame = netting.of_frame(frame) if cancels else frame
    brought = _brought(frame, path, summary, max_driver_rows)
    return _Found("files by spark", brought) if brought is not None else _Found("files by spark", frame=frame)


def _brought(frame: Any, path: str, summary: ChangeSummary, max_driver_rows: int) -> pa.Table | None:
    """To the driver: read once for all the places of the query that need it, and of a known size."""
    if summary.rows_estimate <= max_driver_rows:
        return frame.toArrow()
    if summary.kind is ChangeKind.OVERWRITE:
        # most of an overwrite is often what was there before, and has cancelled
        return queries.collect_at_most(frame, max_driver_rows, f"reading the changes of {path}")
    return None


def _netted(session: SparkSession, rows: pa.Table, schema: StructType) -> pa.Table:
    if netting.is_possible(rows):
        return netting.of_rows(rows)
    left: pa.Table = netting.of_frame(queries.local_relation(session, rows, schema)).toArrow()
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

    batches: list[pa.RecordBatch] = []
    total = 0
    with opened.at(path, upto_version) as handle:
        stream = handle.load_cdf(
            starting_version=after_version + 1,
            ending_version=upto_version,
            columns=[*map(quoting.name, columns), _CHANGE_TYPE],
        )
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
