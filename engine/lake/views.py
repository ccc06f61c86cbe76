"""Temporary views: what statements read, under the names that they read it by.

Asking Delta for a table by version costs Spark several jobs each time; the files of that version, asked of delta-rs
and read as plain Parquet, cost one. That is the same rows wherever files hold just the rows: without deletion
vectors, column mapping and partitions. Otherwise Delta is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from engine.algebra.nodes import WEIGHT
from engine.algebra.types import is_float
from engine.errors import TrickleError
from engine.lake import failures, files, log, netting, queries, query_failures, quoting
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: table features that leave Parquet files as they are
_PLAIN_FEATURES = frozenset(
    [
        "appendOnly",
        "invariants",
        "changeDataFeed",
        "deletionVectors",
        "timestampNtz",
        "domainMetadata",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "checkConstraints",
        "generatedColumns",
        "allowColumnDefaults",
        "inCommitTimestamp",
    ]
)
#: Spark takes these in a path for patterns or escapes
_UNSAFE_IN_PATHS = frozenset("[]{}*?%\\,")


@dataclass
class _Version:
    """A version of a table that a view shows, or will once somebody reads it."""

    path: str
    version: int
    commit: object
    columns: tuple[Column, ...]
    is_made: bool = field(default=False, compare=False)


@dataclass(eq=False)
class _Rows:
    """Rows of the driver that a view shows, or will once Spark reads it."""

    rows: pa.Table
    schema: StructType | None
    is_made: bool = False


def of_version(session: SparkSession, name: str, path: str, version: int, columns: Iterable[Column]) -> None:
    """The columns of a table as it was. Made when it is read: often the driver looks up all that a statement needs."""
    asked = _Version(path, version, log.signature(path, version), tuple(columns))
    if asked.commit is None or _shown(session).get(name) != asked:
        _promise(session, name, asked)


def of_rows(session: SparkSession, name: str, rows: pa.Table, schema: StructType | None = None) -> None:
    """A small result. Made when it is read: often the driver does by hand all that is asked of it."""
    _promise(session, name, _Rows(rows, schema))


def _promise(session: SparkSession, name: str, what: _Version | _Rows) -> None:
    known = _shown(session).get(name)
    if known is None or known.is_made:
        session.catalog.dropTempView(name)  # who reads it unprepared shall not find what was shown before
    _shown(session)[name] = what


def make_ready(session: SparkSession, names: Iterable[str]) -> None:
    """Before these are read. Others may be of a table that is gone by now: they are nobody's business."""
    for name in names:
        shown = _shown(session).get(name)
        if shown is not None and not shown.is_made:
            _make(session, name, shown)
            shown.is_made = True


def _make(session: SparkSession, name: str, asked: _Version | _Rows) -> None:
    match asked:
        case _Version():
            _make_version(session, name, asked)
        case _Rows():
            _make_rows(session, name, asked)


def _make_rows(session: SparkSession, name: str, asked: _Rows) -> None:
    try:
        queries.local_relation(session, asked.rows, asked.schema).createOrReplaceTempView(quoting.name(name))
    except Exception as error:
        raise failures.typed(error, "handing rows to Spark") from error


def _make_version(session: SparkSession, name: str, asked: _Version) -> None:
    path, version, columns = asked.path, asked.version, asked.columns
    try:
        plain = plain_files(path, version)
        if plain is None:
            frame = session.sql(
                f"SELECT {_listed(columns)} FROM {quoting.table(path)} VERSION AS OF {version}"  # noqa: S608  quoted
            )
        else:
            names = [column.name for column in columns]
            frame = of_files(session, path, version, plain, names).selectExpr(*map(readable, columns))
        frame.createOrReplaceTempView(quoting.name(name))
    except Exception as error:
        raise failures.typed(error, f"reading version {version} of {path}") from error


def of_latest(session: SparkSession, name: str, path: str, columns: Iterable[Column]) -> None:
    """The columns of a table as it is whenever the view is read."""
    _define(session, name, f"SELECT {_listed(columns)} FROM {quoting.table(path)}")  # noqa: S608  quoted


def of_past(session: SparkSession, name: str, path: str, version: int, columns: Iterable[Column]) -> None:
    """The columns of a table as Delta's own time travel shows them: for proofs, which must not share our short cuts."""
    past = f"{quoting.table(path)} VERSION AS OF {version}"
    _define(session, name, f"SELECT {_listed(columns)} FROM {past}")  # noqa: S608  quoted


def of_before(session: SparkSession, name: str, now: str, change: str, columns: Iterable[Column]) -> None:
    """A table as it was before a change, for when nobody can read that any more: the rows of now without those that
    came, and with those that went. `now` and `change` are views.
    """
    names = [quoting.name(column.name) for column in columns]
    make_ready(session, (now, change))
    try:
        came = session.table(quoting.name(change)).selectExpr(*names, f"-{WEIGHT} AS {WEIGHT}")
        weighted = session.table(quoting.name(now)).selectExpr(*names, f"1 AS {WEIGHT}").unionAll(came)
        of_frame(session, name, netting.of_frame(weighted).where(f"{WEIGHT} > 0").select(*names))
    except Exception as error:
        raise failures.typed(error, f"reading {name}") from error


def is_readable(path: str, version: int) -> bool:
    """Are the log and the files of that version still there? Remote folders are not asked."""
    folder = log.local_path(path)
    if folder is None:
        return True
    try:
        found = files.of(path, version)
    except TrickleError:
        return False
    return all((folder / unquote(name)).exists() for name in found.sizes)


def of_frame(session: SparkSession, name: str, frame: DataFrame) -> None:
    _shown(session).pop(name, None)
    frame.createOrReplaceTempView(quoting.name(name))


def empty(session: SparkSession, name: str, columns: Sequence[Column]) -> None:
    """These columns and no rows: enough to analyse a statement."""
    listed = ", ".join(f"CAST(NULL AS {column.type}) AS {quoting.name(column.name)}" for column in columns)
    _define(session, name, f"SELECT {listed or 1} WHERE false")


def of_query(session: SparkSession, name: str, sql: str, reads: Iterable[str] = ()) -> None:
    """What a query means now: what is shown later under its names makes no difference. `reads` may be versions."""
    _shown(session).pop(name, None)
    make_ready(session, reads)
    try:
        session.sql(sql).createOrReplaceTempView(quoting.name(name))
    except Exception as error:
        raise query_failures.of_query(error, sql) from error


def forget(session: SparkSession, name: str) -> None:
    """Nobody finds under this name what it meant once."""
    _shown(session).pop(name, None)
    session.catalog.dropTempView(name)


def plain_files(path: str, version: int) -> list[str] | None:
    """The Parquet files that together are this version; None where files alone do not tell."""
    folder = log.local_path(path)
    if folder is None or not files_hold_rows(path, version):
        return None
    found = files.of(path, version)
    # Encoded names, and files of other folders, are Delta's to find.
    return None if found.has_deletions or found.are_encoded else [str(folder / name) for name in found.sizes]


def files_hold_rows(path: str, version: int) -> bool:
    """Is a file of this version just its rows, but for those that a deletion vector takes away?"""
    folder = log.local_path(path)
    definition = log.definition(path, version)
    mapped = definition.properties.get("delta.columnMapping.mode", "none").lower() != "none"
    if folder is None or mapped or definition.partition_columns or definition.features - _PLAIN_FEATURES:
        return False
    return not _UNSAFE_IN_PATHS & set(str(folder))


def of_files(session: SparkSession, path: str, version: int, paths: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Columns as the table has them at that version, of files that hold just rows."""
    from pyspark.sql.types import StructType

    whole = StructType.fromJson(log.definition(path, version).schema)
    by_name = {field.name.casefold(): field for field in whole.fields}
    chosen = StructType([by_name[name.casefold()] for name in names])
    if not paths:
        return session.createDataFrame([], chosen)
    return session.read.schema(chosen).parquet(*paths)


def _define(session: SparkSession, name: str, query: str) -> None:
    _shown(session).pop(name, None)
    try:
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quoting.name(name)} AS {query}")
    except Exception as error:
        raise failures.typed(error, f"reading {name}") from error


def readable(column: Column) -> str:
    """A column as it is; of floating-point ones so that no filter reaches the bounds that files keep of them.

    delta-rs leaves NaN out of the bounds that it writes, and Spark leaves out files whose bounds do not fit: rows with
    NaN would be missing, of `x = 'NaN'` and of `x > 5` alike. `nanvl(x, x)` is x, which Spark does not know.
    """
    name = quoting.name(column.name)
    return f"nanvl({name}, {name}) AS {name}" if is_float(column.type) else name


def _listed(columns: Iterable[Column]) -> str:
    return ", ".join(map(readable, columns)) or "1"


def shown_version(session: SparkSession, name: str) -> tuple[str, int] | None:
    """The table and the version that a view shows; None of a view that shows something else."""
    match _shown(session).get(name):
        case _Version(path=path, version=version):
            return path, version
        case _:
            return None


def rows_behind(session: SparkSession, name: str) -> pa.Table | None:
    """What a view shows, where the driver has it."""
    match _shown(session).get(name):
        case _Rows(rows=rows):
            return rows
        case _:
            return None


def _shown(session: SparkSession) -> dict[str, _Version | _Rows]:
    """What the session's views over versions and rows show."""
    if not hasattr(session, "_trickle_views"):
        session._trickle_views = {}  # type: ignore[attr-defined]
    found: dict[str, _Version | _Rows] = session._trickle_views  # type: ignore[attr-defined]
    return found
