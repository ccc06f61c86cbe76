"""What a refresh asks of the engine that computes: relations under names, statements run, results committed.

`Compute` is all that the refresh protocol knows of Spark. Tests put another engine behind it, over the same Delta
logs, and let it die a thousand times a minute; a contract test holds both to the same behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from engine.errors import OutOfMemory, SparkUnavailable
from engine.lake import (
    apply,
    changes,
    failures,
    meaning,
    opinion,
    queries,
    quoting,
    sql_functions,
    steps,
    tables,
    upkeep,
    views,
)
from engine.lake import polled as polling
from engine.lake.apply import OPERATION, Commit, Counts
from engine.lake.commits import ChangeSummary
from engine.lake.opinion import Opinion
from engine.lake.polled import Poll
from engine.lake.shared_changes import SharedChanges
from engine.lake.sql_functions import SqlFunction
from engine.lake.stamp import Stamp
from engine.lake.steps import Query
from engine.records import Column, Evaluated, Polled

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.lake.session import SparkHost


@dataclass(frozen=True)
class RowIds:
    """What tells rows without a key apart: the refresh that stored one, and which of its rows it was."""

    sequence_column: str
    position_column: str
    sequence: int


class Result(Protocol):
    """What a statement gave."""

    def show(self, view: str) -> None:
        """Makes it readable for statements that come."""

    def counted_by(self, column: str) -> Mapping[str, int]: ...

    def example(self, column: str, value: str) -> str:
        """One row with that value, without the column, in words."""

    def without(self, column: str) -> Result: ...

    def as_stored(self, columns: Sequence[Column], ids: RowIds | None) -> Result:
        """Its columns by position, under these names and with these types; `ids` are among them and made here."""

    def append(self, path: str, pinned_version: int, stamp: Stamp) -> Commit: ...

    def merge(
        self,
        path: str,
        pinned_version: int,
        identity: Sequence[str],
        stamp: Stamp,
        expected: Counts,
        within: Sequence[str] = (),
    ) -> Commit:
        """`within` are columns by whose values stored rows are found only where the change set has these values."""

    def overwrite(
        self, path: str, pinned_version: int, stamp: Stamp, *, new_schema: bool, partition_by: Sequence[str] = ()
    ) -> Commit:
        """All rows anew. Only with a `new_schema` columns and partitions become others."""


class Compute(Protocol):
    """Each thread has relations of its own: what one shows, no other sees."""

    def wait_ready(self) -> None:
        """Starts it where nobody has."""

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """What runs inside can be cancelled by this tag."""

    def cancel(self, tag: str) -> None: ...

    def ran_out_of_memory(self, error: BaseException) -> bool:
        """Was that why?"""

    def frugally(self) -> AbstractContextManager[None]:
        """What runs inside takes as little memory as can be, however long that takes."""

    def describe(self, sql: str) -> tuple[Column, ...]: ...

    def same_semantics(self, one: str, other: str) -> bool: ...

    def opinion(self, sql: str) -> Opinion: ...

    def look_up(self, function: str) -> SqlFunction | None: ...

    def aggregates(self, function: str) -> bool | None:
        """Does it give one value for a group of rows? None where that cannot be found out."""

    def meaning(self, functions: tuple[str, ...]) -> str: ...

    def evaluates(self, at: datetime) -> Evaluated:
        """By whom and by what a query would be computed that asks for that."""

    def create_table(
        self,
        path: str,
        columns: Sequence[Column],
        properties: Mapping[str, str],
        comment: str,
        partition_by: Sequence[str] = (),
    ) -> None: ...

    def enable_cdf(self, path: str) -> int: ...

    def poll(self, copy: str, polled: Polled) -> Poll:
        """Brings the copy of what is no Delta table to what is there now."""

    def compact(self, path: str) -> None:
        """Small files become few; no row changes."""

    def vacuum(self, path: str, kept_hours: int) -> None:
        """Files go that no version of so many hours consists of."""

    def show_empty(self, view: str, columns: Sequence[Column]) -> None: ...

    def show_view(self, name: str, sql: str, reads: Iterable[str] = ()) -> None:
        """What the query gives, over the relations that are shown now; `reads` are those that are versions."""

    def show_version(self, view: str, path: str, version: int, columns: Sequence[Column]) -> None: ...

    def show_change(
        self,
        view: str,
        path: str,
        columns: Sequence[str],
        summary: ChangeSummary,
        max_driver_rows: int,
        siblings: Sequence[str] | None = None,
    ) -> int | None:
        """The weighted rows of a change; how many, where somebody counted.

        `siblings`: columns that others will ask for of the same change; None when nobody will.
        """

    def show_before(self, view: str, now: str, change: str, columns: Sequence[Column]) -> None:
        """A relation as it was before a change, from two views: as it is, and what changed."""

    def show_rows(self, view: str, rows: pa.Table) -> None: ...

    def collect(self, query: Query, doing: str, *, small: bool) -> pa.Table: ...

    def collect_at_most(self, query: Query, rows: int, doing: str, *, small: bool) -> pa.Table | None:
        """None when there are more: more is never brought to the driver."""

    def lazily(self, query: Query, doing: str) -> Result:
        """Computed when it is asked for, each time anew."""

    def computed(self, query: Query, doing: str, new_ids: RowIds | None = None) -> AbstractContextManager[Result]:
        """Computed once and kept until the block is left. `new_ids` go to rows whose operation is to insert."""


class SparkCompute:
    def __init__(self, host: SparkHost, shared: SharedChanges | None = None) -> None:
        self._host = host
        self._shared = shared

    def wait_ready(self) -> None:
        self._host.start()
        self._host.wait_ready()

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        return self._host.tagged(tag)

    def cancel(self, tag: str) -> None:
        self._host.cancel(tag)

    def ran_out_of_memory(self, error: BaseException) -> bool:
        if isinstance(error, SparkUnavailable) or failures.is_lost_connection(error):
            return self._host.died_of_memory()
        return isinstance(error, OutOfMemory)

    @contextmanager
    def frugally(self) -> Iterator[None]:
        self.wait_ready()
        with queries.frugally(self._session):
            yield

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self._host.analyze(sql).columns

    def same_semantics(self, one: str, other: str) -> bool:
        return self._host.same_semantics(one, other)

    def opinion(self, sql: str) -> Opinion:
        return opinion.of(self._session, sql)

    def aggregates(self, function: str) -> bool | None:
        return sql_functions.aggregates(self._session, function)

    def look_up(self, function: str) -> SqlFunction | None:
        return sql_functions.look_up(self._session, function)

    def meaning(self, functions: tuple[str, ...]) -> str:
        return meaning.of(self._session, functions)

    def evaluates(self, at: datetime) -> Evaluated:
        return meaning.evaluates(self._session, at)

    def create_table(
        self,
        path: str,
        columns: Sequence[Column],
        properties: Mapping[str, str],
        comment: str,
        partition_by: Sequence[str] = (),
    ) -> None:
        tables.create(self._session, path, columns, properties, comment, partition_by)

    def enable_cdf(self, path: str) -> int:
        return tables.enable_cdf(self._session, path)

    def poll(self, copy: str, polled: Polled) -> Poll:
        return polling.poll(self._session, copy, polled)

    def compact(self, path: str) -> None:
        upkeep.compact(self._session, path)

    def vacuum(self, path: str, kept_hours: int) -> None:
        upkeep.vacuum(self._session, path, kept_hours)

    def show_empty(self, view: str, columns: Sequence[Column]) -> None:
        views.empty(self._session, view, columns)

    def show_view(self, name: str, sql: str, reads: Iterable[str] = ()) -> None:
        views.of_query(self._session, name, sql, reads)

    def show_version(self, view: str, path: str, version: int, columns: Sequence[Column]) -> None:
        views.of_version(self._session, view, path, version, columns)

    def show_change(
        self,
        view: str,
        path: str,
        columns: Sequence[str],
        summary: ChangeSummary,
        max_driver_rows: int,
        siblings: Sequence[str] | None = None,
    ) -> int | None:
        return changes.read(self._session, path, columns, summary, view, max_driver_rows, self._shared, siblings).rows

    def show_before(self, view: str, now: str, change: str, columns: Sequence[Column]) -> None:
        views.of_before(self._session, view, now, change, columns)

    def show_rows(self, view: str, rows: pa.Table) -> None:
        views.of_rows(self._session, view, rows)
        views.make_ready(self._session, (view,))

    def collect(self, query: Query, doing: str, *, small: bool) -> pa.Table:
        return queries.collect(self._run(query, doing, small), doing)

    def collect_at_most(self, query: Query, rows: int, doing: str, *, small: bool) -> pa.Table | None:
        return queries.collect_at_most(self._run(query, doing, small), rows, doing)

    def lazily(self, query: Query, doing: str) -> Result:
        return SparkResult(self._session, self._run(query, doing, small=False), doing)

    @contextmanager
    def computed(self, query: Query, doing: str, new_ids: RowIds | None = None) -> Iterator[Result]:
        frame = self._run(query, doing, small=False)
        if new_ids is not None:
            frame = _numbered(frame, new_ids)
        # kept with its ids: they would be others when they are made again
        frame = frame.persist()
        try:
            yield SparkResult(self._session, frame, doing)
        finally:
            frame.unpersist()

    @property
    def _session(self) -> SparkSession:
        return self._host.session()

    def _run(self, query: Query, doing: str, small: bool) -> DataFrame:
        with steps.left_of(self._session, query, doing, small=small) as (left, all_few):
            views.make_ready(self._session, left.reads)
            queries.tune(self._session, small=all_few and not left.reads_much)
            return queries.run(self._session, left.sql, doing)


class SparkResult:
    def __init__(self, session: SparkSession, frame: DataFrame, doing: str) -> None:
        self._session = session
        self._frame = frame
        self._doing = doing

    def show(self, view: str) -> None:
        self._frame.createOrReplaceTempView(view)

    def counted_by(self, column: str) -> Mapping[str, int]:
        counted = queries.collect(self._frame.groupBy(column).count(), self._doing)
        return {row[column]: row["count"] for row in counted.to_pylist()}

    def example(self, column: str, value: str) -> str:
        chosen = self._frame.where(self._frame[column] == value).drop(column)
        return queries.in_words(queries.collect(chosen.limit(1), self._doing))

    def without(self, column: str) -> Result:
        return self._with(self._frame.drop(column))

    def as_stored(self, columns: Sequence[Column], ids: RowIds | None) -> Result:
        made = {} if ids is None else _expressions(ids)
        positions = iter([f"c{index}" for index in range(len(self._frame.columns))])
        values = [made[column.name] if column.name in made else next(positions) for column in columns]
        chosen = [
            f"CAST({value} AS {column.type}) AS {quoting.name(column.name)}"
            for value, column in zip(values, columns, strict=True)
        ]
        by_position = self._frame.toDF(*(f"c{index}" for index in range(len(self._frame.columns))))
        return self._with(by_position.selectExpr(*chosen))

    def append(self, path: str, pinned_version: int, stamp: Stamp) -> Commit:
        return apply.append_frame(self._session, path, pinned_version, self._frame, stamp)

    def merge(
        self,
        path: str,
        pinned_version: int,
        identity: Sequence[str],
        stamp: Stamp,
        expected: Counts,
        within: Sequence[str] = (),
    ) -> Commit:
        return apply.merge_frame(self._session, path, pinned_version, self._frame, identity, stamp, expected, within)

    def overwrite(
        self, path: str, pinned_version: int, stamp: Stamp, *, new_schema: bool, partition_by: Sequence[str] = ()
    ) -> Commit:
        return apply.overwrite_frame(
            self._session, path, pinned_version, self._frame, stamp, new_schema=new_schema, partition_by=partition_by
        )

    def _with(self, frame: DataFrame) -> Result:
        return SparkResult(self._session, frame, self._doing)


def _expressions(ids: RowIds) -> dict[str, str]:
    """Unique and cheap; not dense, which nobody needs."""
    return {ids.sequence_column: f"{ids.sequence}L", ids.position_column: "monotonically_increasing_id()"}


def _numbered(frame: DataFrame, ids: RowIds) -> DataFrame:
    is_new = f"{quoting.name(OPERATION)} = 'I'"
    made = {name: f"IF({is_new}, {value}, {quoting.name(name)})" for name, value in _expressions(ids).items()}
    names = frame.columns
    return frame.selectExpr(*(f"{made.get(name, quoting.name(name))} AS {quoting.name(name)}" for name in names))
