"""DuckDB in Spark's place, over real Delta logs: for refreshes that die a thousand times a minute.

The protocol's own code does everything but the computing: reading logs and changes, deciding, committing. What Spark
commits is committed here by delta-rs in Spark's manner: through a handle of its own at whatever version is newest,
and a sequence that the log has already is skipped without a word. Of a full refresh only the files are written here,
and the protocol's own code commits them. `test_compute_contract.py` holds it to Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from sqlglot import exp

from engine.algebra.nodes import WEIGHT, Leaf
from engine.compile.places import view_name
from engine.compile.render import render
from engine.errors import OutOfMemory
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import apply, changes, data_files, differences, log, netting, queries, tables
from engine.lake import polled as polling
from engine.lake.apply import OPERATION, Commit, Counts
from engine.lake.commits import ChangeKind, ChangeSummary, files_between
from engine.lake.compute import Result, RowIds
from engine.lake.opinion import Opinion
from engine.lake.polled import Poll
from engine.lake.shared_changes import SharedChanges
from engine.lake.sql_functions import SqlFunction
from engine.lake.stamp import Stamp
from engine.lake.steps import Query
from engine.lake.tables import Pinned
from engine.records import Column, Evaluated, Polled
from tests.support import delta_files
from tests.support.duck_analyzer import DuckAnalyzer, Relations, for_duckdb
from tests.support.duckdb_of_tests import connect
from tests.support.fake_lake import duck_type, quoted


class DuckCompute:
    def __init__(self, relations: Relations) -> None:
        self._analyzer = DuckAnalyzer(relations)
        self.db = connect()
        self._results = 0
        self.shared = SharedChanges(1_000_000)
        #: how often a change was read from its files
        self.changes_read = 0

    def wait_ready(self) -> None:
        """It always is."""

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        yield

    def cancel(self, tag: str) -> None:
        """Its statements end before anybody could ask."""

    def ran_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, OutOfMemory)

    @contextmanager
    def frugally(self) -> Iterator[None]:
        yield

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self._analyzer.describe(sql)

    def same_semantics(self, one: str, other: str) -> bool:
        return self._analyzer.same_semantics(one, other)

    def opinion(self, sql: str) -> Opinion:
        return self._analyzer.opinion(sql)

    def aggregates(self, function: str) -> bool | None:
        return function in self._analyzer.aggregates

    def look_up(self, function: str) -> SqlFunction | None:
        return self._analyzer.look_up(function)

    def meaning(self, functions: tuple[str, ...]) -> str:
        return self._analyzer.meaning(functions)

    def evaluates(self, at: datetime) -> Evaluated:
        return Evaluated(at, "duck in memory", duckdb.__version__)

    def create_table(
        self,
        path: str,
        columns: Sequence[Column],
        properties: Mapping[str, str],
        comment: str,
        partition_by: Sequence[str] = (),
    ) -> None:
        assert not partition_by, "files of partitions have not all columns, which is how DuckDB reads them here"
        delta_files.create_table(Path(path), columns, properties)

    def compact(self, path: str) -> None:
        raise AssertionError("stream tables of simulations are compacted by the driver")

    def vacuum(self, path: str, kept_hours: int) -> None:
        """Nothing here is so old."""
        assert kept_hours >= 7 * 24

    def enable_cdf(self, path: str) -> int:
        raise AssertionError("sources of simulations record their changes")

    def poll(self, copy: str, polled: Polled) -> Poll:
        """As Spark does it, but that what does not only grow is written anew."""
        files = sorted(Path(polled.place).glob("*.parquet"))
        columns = self._analyzer.relations[Path(copy).name.casefold()]
        there = f"SELECT {_cast(columns)} FROM {_read([str(file) for file in files])}" if files else None
        rows = self.db.execute(there or f"{_nothing(columns)} LIMIT 0").to_arrow_table()
        if not log.is_table(Path(copy)):
            delta_files.create_table(Path(copy), columns, {"delta.enableDeletionVectors": "true"})
            return self._look(copy, 0, rows, polling.Poll(rows.num_rows, 0), "append")
        version = log.newest_version(copy)
        self.show_version("polled_was", copy, version, columns)
        self.show_rows("polled_there", rows)
        came = self.db.execute("FROM polled_there EXCEPT ALL FROM polled_was").to_arrow_table()
        went = self.db.execute("FROM polled_was EXCEPT ALL FROM polled_there").to_arrow_table()
        found = polling.Poll(came.num_rows, went.num_rows)
        if not found.changed:
            return found
        mode = "overwrite" if found.went else "append"
        return self._look(copy, version, rows if found.went else came, found, mode)

    def _look(self, copy: str, version: int, rows: pa.Table, found: Poll, mode: str) -> Poll:
        FAILPOINTS.reach(Failpoint.LOOKED)
        look = uuid.uuid4().hex
        handle = tables.pin(copy, version).handle
        with suppress(CommitFailedError):
            write_deltalake(
                handle,
                rows.cast(pa.schema(handle.schema().to_arrow())),
                mode=mode,
                commit_properties=CommitProperties(
                    custom_metadata={"userMetadata": polling.said(found, look)}, max_commit_retries=0
                ),
            )
        polling.refuse_overtaken(copy, version, look)
        return found

    def show_empty(self, view: str, columns: Sequence[Column]) -> None:
        chosen = ", ".join(f"CAST(NULL AS {duck_type(c.type)}) AS {quoted(c.name)}" for c in columns)
        self._stand(view, f"SELECT {chosen or 1} WHERE false")

    def show_view(self, name: str, sql: str, reads: Iterable[str] = ()) -> None:
        self._analyzer.show_view(name, sql)
        self._stand(name, for_duckdb(sql))

    def show_version(self, view: str, path: str, version: int, columns: Sequence[Column]) -> None:
        files = _files_of(path, version)
        if not files:
            self.show_empty(view, columns)
            return
        self._stand(view, f"SELECT {_cast(columns)} FROM {_read(files)}")

    def rows_of(self, path: str, version: int, columns: Sequence[Column]) -> list[tuple[object, ...]]:
        files = _files_of(path, version)
        return self.db.execute(f"SELECT {_cast(columns)} FROM {_read(files)}").fetchall() if files else []

    def files(self, handle: DeltaTable) -> duckdb.DuckDBPyRelation:
        """All that the files of a table hold, in the types that they have there."""
        return self.db.sql(f"SELECT * FROM {_read(_files(handle))}")

    def know(self, name: str, columns: tuple[Column, ...]) -> None:
        """A relation that came later."""
        self._analyzer.relations[name.casefold()] = columns

    def show_change(
        self,
        view: str,
        path: str,
        columns: Sequence[str],
        summary: ChangeSummary,
        max_driver_rows: int,
        siblings: Sequence[str] | None = None,
    ) -> int | None:
        assert summary.kind is not ChangeKind.DATALESS
        rows = self.shared.find(path, summary, columns)
        if rows is None:
            wider = columns if siblings is None else changes._with_siblings(path, summary, columns, siblings)
            rows = self._read(path, wider, summary)
            self.shared.keep(path, summary, rows) if siblings is not None else None
        rows = rows.select([*columns, WEIGHT])
        rows = netting.of_rows(rows) if netting.is_possible(rows) else rows
        self.show_rows(view, rows)
        return rows.num_rows

    def _read(self, path: str, columns: Sequence[str], summary: ChangeSummary) -> pa.Table:
        self.changes_read += 1
        if summary.by_files:
            rows = differences.here(path, columns, summary, files_between(path, summary), 1_000_000)
        else:
            rows = changes._from_delta_rs(path, columns, summary.after_version, summary.upto_version, 1_000_000)
        assert rows is not None
        return rows

    def show_before(self, view: str, now: str, change: str, columns: Sequence[Column]) -> None:
        names = ", ".join(quoted(column.name) for column in columns)
        weighted = f"SELECT {names}, 1 AS w FROM {quoted(now)} UNION ALL SELECT {names}, -__w FROM {quoted(change)}"
        summed = f"SELECT {names}, sum(w)::BIGINT AS copies FROM ({weighted}) GROUP BY ALL HAVING sum(w) > 0"
        self._stand(view, f"SELECT {names} FROM ({summed}), range(copies)")

    def show_rows(self, view: str, rows: pa.Table) -> None:
        self.db.register("arrow_rows", rows)
        # a table in its place: what stands behind a registered name may go
        self.db.execute(f"DROP VIEW IF EXISTS {quoted(view)}") if self._is_view(view) else None
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(view)} AS SELECT * FROM arrow_rows")
        self.db.unregister("arrow_rows")

    def _stand(self, view: str, sql: str) -> None:
        """A view in the place of whatever stood there under this name."""
        found = self.db.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ? AND temporary", [view]).fetchone()
        self.db.execute(f"DROP TABLE {quoted(view)}") if found else None
        self.db.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(view)} AS {sql}")

    def _is_view(self, name: str) -> bool:
        found = self.db.execute("SELECT 1 FROM duckdb_views() WHERE view_name = ? AND temporary", [name]).fetchone()
        return found is not None

    def collect(self, query: Query, doing: str, *, small: bool) -> pa.Table:
        return self.db.execute(duck_sql(query)).to_arrow_table()

    def collect_at_most(self, query: Query, rows: int, doing: str, *, small: bool) -> pa.Table | None:
        found = self.collect(query, doing, small=small)
        return None if found.num_rows > rows else found

    def lazily(self, query: Query, doing: str) -> Result:
        return DuckResult(self, self.collect(query, doing, small=False))

    @contextmanager
    def computed(self, query: Query, doing: str, new_ids: RowIds | None = None) -> Iterator[Result]:
        rows = self.collect(query, doing, small=False)
        if new_ids is not None:
            self.db.register("unnumbered", rows)
            made = _made(new_ids)
            chosen = ", ".join(
                f"CASE WHEN {quoted(OPERATION)} = 'I' THEN {made[name]} ELSE {quoted(name)} END AS {quoted(name)}"
                if name in made
                else quoted(name)
                for name in rows.column_names
            )
            rows = self.db.execute(f"SELECT {chosen} FROM unnumbered").to_arrow_table()
            self.db.unregister("unnumbered")
        yield DuckResult(self, rows)


class DuckResult:
    def __init__(self, compute: DuckCompute, rows: pa.Table) -> None:
        self._compute = compute
        self._rows = rows

    def show(self, view: str) -> None:
        self._compute.show_rows(view, self._rows)

    def counted_by(self, column: str) -> Mapping[str, int]:
        return {item["values"]: item["counts"] for item in self._rows.column(column).value_counts().to_pylist()}

    def example(self, column: str, value: str) -> str:
        import pyarrow.compute as pc

        return queries.in_words(self._rows.filter(pc.equal(self._rows[column], value)).drop_columns([column]))

    def without(self, column: str) -> Result:
        return DuckResult(self._compute, self._rows.drop_columns([column]))

    def as_stored(self, columns: Sequence[Column], ids: RowIds | None) -> Result:
        made = {} if ids is None else _made(ids)
        positions = iter(range(self._rows.num_columns))
        values = [made[c.name] if c.name in made else f"c{next(positions)}" for c in columns]
        chosen = ", ".join(
            f"CAST({value} AS {duck_type(c.type)}) AS {quoted(c.name)}"
            for value, c in zip(values, columns, strict=True)
        )
        db = self._compute.db
        db.register("as_stored", self._rows.rename_columns([f"c{n}" for n in range(self._rows.num_columns)]))
        rows = db.execute(f"SELECT {chosen} FROM as_stored").to_arrow_table()
        db.unregister("as_stored")
        return DuckResult(self._compute, rows)

    def append(self, path: str, pinned_version: int, stamp: Stamp) -> Commit:
        return _like_spark(path, pinned_version, stamp, lambda pinned: apply.append(pinned, self._rows, stamp))

    def merge(
        self,
        path: str,
        pinned_version: int,
        identity: Sequence[str],
        stamp: Stamp,
        expected: Counts,
        within: Sequence[str] = (),
    ) -> Commit:
        return _like_spark(
            path,
            pinned_version,
            stamp,
            lambda pinned: apply.merge(pinned, self._rows, identity, stamp, expected, within),
        )

    def overwrite(
        self, path: str, pinned_version: int, stamp: Stamp, *, new_schema: bool, partition_by: Sequence[str] = ()
    ) -> Commit:
        pinned = apply.pin(path, pinned_version)
        replaced = pinned.rows()
        never_null = {name for name in self._rows.column_names if not self._rows.column(name).null_count}
        if apply.takes_files(pinned, never_null) and not new_schema:
            commit = apply.overwrite(pinned, lambda folder: self._save(folder, pinned), stamp)
        else:
            commit = _like_spark(path, pinned_version, stamp, lambda newest: self._write_over(newest, stamp))
        data_files.settle_all(path, stamp)
        return replace(commit, deleted=replaced)

    def _save(self, folder: str, pinned: Pinned) -> None:
        pq.write_table(apply._shaped(pinned, self._rows), f"{folder}/part-0.parquet")

    def _write_over(self, newest: Pinned, stamp: Stamp) -> Commit:
        """Spark's own overwrite, which can change the columns too."""
        write_deltalake(
            newest.handle,
            self._rows,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(newest.handle.metadata().partition_columns) or None,
            commit_properties=apply._properties(stamp),
        )
        return Commit(newest.version + 1, self._rows.num_rows, 0, 0, 0.0)


def _like_spark(path: str, pinned_version: int, stamp: Stamp, commit: Callable[[Pinned], Commit]) -> Commit:
    apply._refuse_newer(path, pinned_version)
    with apply._committing(path, stamp):
        newest = tables.pin(path)
        done = Commit(-1, 0, 0, 0, 0.0) if _has_seen(newest, stamp) else commit(newest)
    version, _ = apply._found(path, pinned_version, stamp)
    return Commit(version, done.inserted, done.updated, done.deleted, 0.0)


def _has_seen(newest: Pinned, stamp: Stamp) -> bool:
    used = newest.handle.transaction_version(stamp.st_id)
    return used is not None and used >= stamp.sequence


def _nothing(columns: Sequence[Column]) -> str:
    return "SELECT " + ", ".join(f"CAST(NULL AS {duck_type(c.type)}) AS {quoted(c.name)}" for c in columns)


def _made(ids: RowIds) -> dict[str, str]:
    return {ids.sequence_column: f"{ids.sequence}::BIGINT", ids.position_column: "row_number() OVER () - 1"}


def _files_of(path: str, version: int) -> tuple[str, ...]:
    found = log.commit_file(path, version).stat()
    return _files_of_commit(path, version, found.st_ino, found.st_mtime_ns)


@lru_cache(maxsize=1000)
def _files_of_commit(path: str, version: int, inode: int, written_ns: int) -> tuple[str, ...]:
    """Opening a table is what a simulation spends its time with, and a version's files stay the same."""
    return tuple(_files(tables.pin(path, version).handle))


def _files(handle: DeltaTable) -> list[str]:
    """The table's own place is spelled as in an address, what stands in its log is told as it is."""
    place = handle.table_uri.removeprefix("file://").rstrip("/")
    files = (file.removeprefix("file://") for file in handle.file_uris())
    return [unquote(place) + file.removeprefix(place) for file in files]


def _read(files: Sequence[str]) -> str:
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    return f"read_parquet([{listed}])"


def _cast(columns: Sequence[Column]) -> str:
    chosen = (f"CAST({quoted(c.name)} AS {duck_type(c.type)}) AS {quoted(c.name)}" for c in columns)
    return ", ".join(chosen) or "1"


def duck_sql(query: Query) -> str:
    """Remembered by the tree itself: prepared statements are run many times."""
    known = _duck_sql.get(id(query))
    if known is None or known[0] is not query:
        if len(_duck_sql) > 2_000:
            _duck_sql.clear()
        known = _duck_sql[id(query)] = (query, _rendered(query))
    return known[1]


_duck_sql: dict[int, tuple[Query, str]] = {}


def _rendered(query: Query) -> str:
    if query.tree is None:
        return for_duckdb(query.sql)
    chosen = ", ".join(f"CAST({quoted(c.name)} AS {duck_type(c.type)}) AS {quoted(c.name)}" for c in query.tree.columns)
    return f"SELECT {chosen} FROM ({render(query.tree, _place, 'duckdb')})"


def _place(leaf: Leaf) -> exp.Expr:
    return exp.Table(this=exp.to_identifier(view_name(leaf), quoted=True))
