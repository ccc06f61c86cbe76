"""Commits to a stream table. Each carries its stamp, and none is made on top of a version that we did not see.

A change set has the table's columns and `__trickle_op`: 'I' insert this row, 'U' replace the row of this
identity, 'D' delete it. A row that does not fit (deleted or replaced but not there, inserted but there) makes
the merge fail before it commits: both writers are given expressions that refuse to be evaluated on such rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.algebra.types import is_float
from engine.errors import CommitConflict, InternalError, NegativeMultiplicity, Tampered, TrickleError
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import capabilities, data_files, failures, hold, log, misfits, partitions, quoting
from engine.lake.stamp import Stamp, find_refresh, foreign_change
from engine.lake.tables import Pinned, pin

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, WriterProperties
    from pyspark.sql import DataFrame, SparkSession

OPERATION = misfits.OPERATION

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class Counts:
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Commit:
    version: int
    inserted: int
    updated: int
    deleted: int
    duration_ms: float


def append(pinned: Pinned, rows: pa.Table, stamp: Stamp) -> Commit:
    """New rows only, from the driver."""
    from deltalake import write_deltalake

    started = time.perf_counter()
    _refuse_used_sequence(pinned, stamp)
    partitions.refuse_unfit(pinned.path, rows)
    with _committing(pinned.path, stamp):
        write_deltalake(
            pinned.handle,
            _shaped(pinned, rows),
            mode="append",
            commit_properties=_properties(stamp),
            writer_properties=without_float_bounds(pinned),
        )
    return _committed(started, pinned.version + 1, Counts(inserted=rows.num_rows))


def merge(
    pinned: Pinned,
    change_set: pa.Table,
    identity: Sequence[str],
    stamp: Stamp,
    expected: Counts,
    within: Sequence[str] = (),
) -> Commit:
    """A small change set, from the driver.

    `within` are columns whose values of the change set are those of the stored rows, too: the table's partitions.
    """
    started = time.perf_counter()
    partitions.refuse_unfit(pinned.path, change_set)
    _refuse_used_sequence(pinned, stamp)
    names = [column.name for column in pinned.columns]
    with _naming_a_row(lambda: misfits.of_rows(pinned, change_set, identity)), _committing(pinned.path, stamp):
        merger = pinned.handle.merge(
            _shaped(pinned, change_set, with_operation=True),
            predicate=" AND ".join(f"({_same(column, change_set)})" for column in dict.fromkeys((*within, *identity))),
            source_alias="s",
            target_alias="t",
            # the source is at hand: its least and greatest keys tell which files need not be read
            streamed_exec=False,
            commit_properties=_properties(stamp),
            writer_properties=without_float_bounds(pinned),
        )
        operation = f"s.{quoting.name(OPERATION)}"
        if expected.deleted:
            merger = merger.when_matched_delete(predicate=f"{operation} = 'D'")
        metrics = (
            merger.when_matched_update(updates=_assignments(names, "U"))
            .when_not_matched_insert(updates=_assignments(names, "I"))
            .execute()
        )
    found = Counts(
        int(metrics["num_target_rows_inserted"]),
        int(metrics["num_target_rows_updated"]),
        int(metrics["num_target_rows_deleted"]),
    )
    _compare(pinned.path, found, expected)
    return _committed(started, pinned.version + 1, found)


def empty(pinned: Pinned, stamp: Stamp) -> Commit:
    """No change at all: the stamp alone, which moves the frontier."""
    started = time.perf_counter()
    _refuse_used_sequence(pinned, stamp)
    handle = pinned.handle
    with _committing(pinned.path, stamp):
        handle.create_write_transaction(
            [],
            "append",
            handle.schema(),
            partition_by=list(handle.metadata().partition_columns),
            commit_properties=_properties(stamp),
        )
    return _committed(started, pinned.version + 1, Counts())


def merge_frame(
    session: SparkSession,
    path: str,
    pinned_version: int,
    frame: DataFrame,
    identity: Sequence[str],
    stamp: Stamp,
    expected: Counts | None = None,
    within: Sequence[str] = (),
) -> Commit:
    """A large change set, by Spark; without `expected` the counts are those that Spark reports."""
    started = time.perf_counter()
    names = [name for name in frame.columns if name != OPERATION]
    view = f"__trickle_merge_{stamp.refresh_id.replace('-', '_')}"
    frame = partitions.refusing_unfit(path, frame)
    same = [f"t.{quoting.name(name)} <=> s.{quoting.name(name)}" for name in dict.fromkeys((*within, *identity))]
    condition = " AND ".join(filter(None, [partitions.touched(frame, within), *same]))
    updates, inserts = _assignments(names, "U"), _assignments(names, "I")
    clauses = (
        f"MERGE INTO {quoting.table(path)} t USING {quoting.name(view)} s ON {condition}",
        f"WHEN MATCHED AND s.{quoting.name(OPERATION)} = 'D' THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET " + ", ".join(f"t.{name} = {value}" for name, value in updates.items()),
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(inserts)})",
        f"VALUES ({', '.join(inserts.values())})",
    )
    _refuse_newer(path, pinned_version)
    naming = _naming_a_row(lambda: misfits.of_frame(session, path, pinned_version, frame, identity))
    with naming, _committing(path, stamp), _stamped(session, stamp):
        frame.createOrReplaceTempView(view)
        try:
            session.sql(" ".join(clauses))
        finally:
            session.catalog.dropTempView(view)
    version, metrics = _found(path, pinned_version, stamp)
    found = Counts(
        int(metrics.get("numTargetRowsInserted", 0)),
        int(metrics.get("numTargetRowsUpdated", 0)),
        int(metrics.get("numTargetRowsDeleted", 0)),
    )
    if expected is not None:
        _compare(path, found, expected)
    return _committed(started, version, found)


def append_frame(session: SparkSession, path: str, pinned_version: int, frame: DataFrame, stamp: Stamp) -> Commit:
    """Many new rows, by Spark."""
    return _write_frame(session, path, pinned_version, frame, stamp, "append")


def overwrite_frame(
    session: SparkSession,
    path: str,
    pinned_version: int,
    frame: DataFrame,
    stamp: Stamp,
    *,
    new_schema: bool = False,
    partition_by: Sequence[str] = (),
) -> Commit:
    """All rows anew. Properties stay, the Change Data Feed with them, and so does the schema unless told.

    Spark writes the files, and the driver commits them where it may. Spark's own overwrite asks in several jobs what
    the table consists of, which the pinned handle knows, and commits on top of whatever is newest.
    """
    pinned = pin(path, pinned_version)
    replaced = pinned.rows()
    never_null = {field.name for field in frame.schema.fields if not field.nullable}
    if takes_files(pinned, never_null) and not new_schema:
        commit = overwrite(pinned, data_files.by_spark(frame, pinned.properties), stamp)
    else:
        commit = _write_frame(
            session, path, pinned_version, frame, stamp, "overwrite", new_schema=new_schema, partition_by=partition_by
        )
    data_files.settle_all(path, stamp)
    return replace(commit, deleted=replaced)


def overwrite(pinned: Pinned, save: Callable[[str], None], stamp: Stamp) -> Commit:
    """All rows anew, from files that `save` writes into a folder that it is given."""
    started = time.perf_counter()
    _refuse_used_sequence(pinned, stamp)
    _refuse_newer(pinned.path, pinned.version)
    try:
        written = data_files.write(pinned.path, stamp, save, pinned.properties)
    except TrickleError:
        # who was overtaken is told so: its files may have been removed while it wrote them
        _refuse_newer(pinned.path, pinned.version)
        raise
    try:
        with _committing(pinned.path, stamp):
            pinned.handle.create_write_transaction(
                written.files, "overwrite", pinned.handle.schema(), commit_properties=_properties(stamp)
            )
    except TrickleError:
        data_files.settle(pinned.path, stamp)
        raise
    return _committed(started, pinned.version + 1, Counts(inserted=written.rows))


def takes_files(pinned: Pinned, never_null: Collection[str]) -> bool:
    """May the driver commit files that were written apart from the table? What Delta checks of rows is not checked."""
    definition = log.definition(pinned.path, pinned.version)
    if log.local_path(pinned.path) is None or definition.partition_columns:
        return False
    return capabilities.of(definition, pinned.path).can_driver_merge and all(
        column.nullable or column.name in never_null for column in pinned.columns
    )


def _write_frame(
    session: SparkSession,
    path: str,
    pinned_version: int,
    frame: DataFrame,
    stamp: Stamp,
    mode: str,
    *,
    new_schema: bool = False,
    partition_by: Sequence[str] = (),
) -> Commit:
    started = time.perf_counter()
    _refuse_newer(path, pinned_version)
    texts = {name for name in partition_by if dict(frame.dtypes)[name] == "string"}
    frame = partitions.refusing_unfit(path, frame, sorted(texts))
    with _committing(path, stamp), _stamped(session, stamp):
        writer = frame.write.format("delta").mode(mode)
        if new_schema:
            writer = writer.option("overwriteSchema", "true").partitionBy(*partition_by)
        writer.save(path)
    version, metrics = _found(path, pinned_version, stamp)
    return _committed(started, version, Counts(inserted=int(metrics.get("numOutputRows", 0))))


def _properties(stamp: Stamp) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": stamp.to_json()},
        app_transactions=[Transaction(stamp.st_id, stamp.sequence)],
        # a retry would commit on top of what somebody else just wrote
        max_commit_retries=0,
    )


def without_float_bounds(pinned: Pinned) -> WriterProperties:
    """delta-rs leaves NaN out of a file's bounds, by which other readers would leave out rows."""
    from deltalake import ColumnProperties, WriterProperties

    floats = [column.name for column in pinned.columns if is_float(column.type)]
    return WriterProperties(column_properties={name: ColumnProperties(statistics_enabled="NONE") for name in floats})


def _refuse_used_sequence(pinned: Pinned, stamp: Stamp) -> None:
    """delta-rs does not look at older sequences itself."""
    used = pinned.handle.transaction_version(stamp.st_id)
    if used is not None and used >= stamp.sequence:
        raise _taken(stamp)


def _taken(stamp: Stamp) -> CommitConflict:
    return CommitConflict(
        "Another refresh of this stream table was faster.",
        detail=f"Sequence {stamp.sequence} is already in its log.",
    )


def _refuse_newer(path: str, pinned_version: int) -> None:
    """Spark commits on top of whatever is newest: look before, and look again after (`_found`)."""
    if log.lines(path, pinned_version + 1) is not None:
        raise CommitConflict(
            f"The commit to {path} met another commit.",
            detail=f"Version {pinned_version + 1} is already there.",
        )


def _found(path: str, pinned_version: int, stamp: Stamp) -> tuple[int, dict[str, Any]]:
    """Where the log has our commit. Spark skips a sequence that it has seen without a word."""
    version = find_refresh(path, stamp.refresh_id, pinned_version)
    if version is None:
        raise _taken(stamp)
    foreign = foreign_change(path, pinned_version, version, ours=version)
    if foreign is not None:
        raise Tampered(
            "Somebody else wrote the stream table while it was refreshed.",
            detail=f"It was {foreign}.",
            hint="Reinitialize it: its rows are no longer its query's.",
        )
    info = log.commit_info(path, version)
    return version, info.metrics if info is not None else {}


@contextmanager
def _stamped(session: SparkSession, stamp: Stamp) -> Iterator[None]:
    values = {_USER_METADATA: stamp.to_json(), _TXN_APP: stamp.st_id, _TXN_VERSION: str(stamp.sequence)}
    with _set(session, values):
        yield


@contextmanager
def saying(session: SparkSession, text: str, once: tuple[str, int] | None = None) -> Iterator[None]:
    """The commit of this session carries the text, and may be one of a row of commits, each of which happens once.

    A number that the table has seen is skipped without a word.
    """
    numbered = {} if once is None else {_TXN_APP: once[0], _TXN_VERSION: str(once[1])}
    with _set(session, {_USER_METADATA: text, **numbered}):
        yield


@contextmanager
def _set(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    for key, value in values.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            session.conf.unset(key)


@contextmanager
def _committing(path: str, stamp: Stamp) -> Iterator[None]:
    try:
        with hold.for_commit(path, stamp.st_id), FAILPOINTS.around(Failpoint.COMMIT):
            yield
    except Exception as error:
        raise failures.typed(error, f"The commit to {path}", path) from error


@contextmanager
def _naming_a_row(find: Callable[[], str | None]) -> Iterator[None]:
    """A refusal tells of which row, which neither writer does."""
    try:
        yield
    except NegativeMultiplicity as error:
        try:
            found = find()
        except Exception as trouble:
            found = f"none: looking for one failed with {trouble}"
        if found is None:
            raise
        detail = f"{error.detail or 'There are such rows.'} For example {found}"
        raise NegativeMultiplicity(error.message, detail=detail, hint=error.hint) from error


def _same(column: str, change_set: pa.Table) -> str:
    """Null-safe, but plain where no NULL is looked for: plain equality lets files be skipped."""
    name = quoting.name(column)
    operator = "IS NOT DISTINCT FROM" if change_set.column(column).null_count else "="
    return f"t.{name} {operator} s.{name}"


def _assignments(names: Sequence[str], operation: str) -> dict[str, str]:
    """Every column from the change set; the first one refuses rows of another operation.

    A clause's own condition cannot refuse: both writers also evaluate it on rows of other clauses.
    """
    mark = f"s.{quoting.name(OPERATION)}"
    result = {quoting.name(name): f"s.{quoting.name(name)}" for name in names}
    first = quoting.name(names[0])
    result[first] = (
        f"CASE WHEN {mark} = '{operation}' THEN s.{first} "
        f"WHEN CAST(concat('{failures.REFUSED}_', {mark}) AS BOOLEAN) THEN s.{first} END"
    )
    return result


def _shaped(pinned: Pinned, rows: pa.Table, with_operation: bool = False) -> pa.Table:
    """The table's own columns in its own types and order: Spark's Arrow spells some differently."""
    import pyarrow as pa

    schema = pa.schema(pinned.handle.schema().to_arrow())
    if with_operation:
        schema = schema.append(pa.field(OPERATION, pa.string()))
    missing = set(schema.names) ^ set(rows.column_names)
    if missing:
        raise InternalError(f"A change set does not fit {pinned.path}.", detail=f"Columns: {sorted(missing)}")
    loose = pa.schema([field.with_nullable(True) for field in schema]) if with_operation else schema
    return rows.select(schema.names).cast(loose)


def _compare(path: str, found: Counts, expected: Counts) -> None:
    """Both writers refuse rows that do not fit before they commit; should one ever not, it is told and mended."""
    if found != expected:
        raise NegativeMultiplicity(
            f"The commit to {path} did not do what was planned.", detail=f"Planned {expected}, done {found}."
        )


def _committed(started: float, version: int, counts: Counts) -> Commit:
    took = (time.perf_counter() - started) * 1000
    return Commit(version, counts.inserted, counts.updated, counts.deleted, took)
