"""Temporary views: what statements read, under the names that they read it by.

Asking Delta for a table by version costs Spark several jobs each time; the files of that version, asked of delta-rs
and read as plain Parquet, cost one. That is the same rows wherever files hold just the rows: without deletion
vectors, column mapping and partitions. Otherwise Delta is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from engine.algebra.nodes import WEIGHT
from engine.algebra.types import is_float
from engine.errors import TrickleError
from engine.lake import failures, log, netting, queries, query_failures, quoting, tables
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

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


def of_version(session: SparkSession, name: str, path: str, version: int, columns: Iterable[Column]) -> None:
    """The columns of a table as it was. What a view shows already is not made again."""
    columns = tuple(columns)
    names = tuple(column.name for column in columns)
    commit = log.signature(path, version)
    key = (path, version, commit, names)
    if commit is not None and _shown(session).get(name) == key:
        return
    try:
        files = plain_files(path, version)
        if files is None:
            frame = session.sql(
                f"SELECT {_listed(columns)} FROM {quoting.table(path)} VERSION AS OF {version}"  # noqa: S608  quoted
            )
        else:
            frame = of_files(session, path, version, files, names).selectExpr(*map(readable, columns))
        frame.createOrReplaceTempView(name)
    except Exception as error:
        raise failures.typed(error, f"reading version {version} of {path}") from error
    _shown(session)[name] = key


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
    _shown(session).pop(name, None)
    try:
        came = session.table(quoting.name(change)).selectExpr(*names, f"-{WEIGHT} AS {WEIGHT}")
        weighted = session.table(quoting.name(now)).selectExpr(*names, f"1 AS {WEIGHT}").unionAll(came)
        netting.of_frame(weighted).where(f"{WEIGHT} > 0").select(*names).createOrReplaceTempView(name)
    except Exception as error:
        raise failures.typed(error, f"reading {name}") from error


def is_readable(path: str, version: int) -> bool:
    """Are the log and the files of that version still there? Remote folders are not asked."""
    folder = log.local_path(path)
    if folder is None:
        return True
    try:
        names = _file_names(tables.pin(path, version).handle)
    except TrickleError:
        return False
    return all((folder / unquote(name)).exists() for name in names)


def of_rows(session: SparkSession, name: str, rows: pa.Table) -> None:
    """A small result as a local relation, of whose size Spark knows."""
    _shown(session).pop(name, None)
    try:
        queries.local_relation(session, rows).createOrReplaceTempView(name)
    except Exception as error:
        raise failures.typed(error, "handing rows to Spark") from error


def empty(session: SparkSession, name: str, columns: Sequence[Column]) -> None:
    """These columns and no rows: enough to analyse a statement."""
    listed = ", ".join(f"CAST(NULL AS {column.type}) AS {quoting.name(column.name)}" for column in columns)
    _define(session, name, f"SELECT {listed or 1} WHERE false")


def of_query(session: SparkSession, name: str, sql: str) -> None:
    """What a query means now: what is shown later under the names in it makes no difference."""
    _shown(session).pop(name, None)
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
    handle = tables.pin(path, version).handle
    if any(True for _ in handle.deletion_vectors()):
        return None
    names = _file_names(handle)
    # Encoded names, and files of other folders, are Delta's to find.
    return None if any(set(name) & {"%", ":"} for name in names) else [str(folder / name) for name in names]


def files_hold_rows(path: str, version: int) -> bool:
    """Is a file of this version just its rows, but for those that a deletion vector takes away?"""
    folder = log.local_path(path)
    definition = log.definition(path, version)
    mapped = definition.properties.get("delta.columnMapping.mode", "none").lower() != "none"
    if folder is None or mapped or definition.partition_columns or definition.features - _PLAIN_FEATURES:
        return False
    return not _UNSAFE_IN_PATHS & set(str(folder))


def file_names(path: str, version: int) -> list[str]:
    """Of the files that together are this version, as its log spells them."""
    return _file_names(tables.pin(path, version).handle)


def _file_names(handle: object) -> list[str]:
    import pyarrow as pa

    actions = pa.table(handle.get_add_actions())  # type: ignore[attr-defined]
    return [str(name) for name in actions.column("path").to_pylist()]


def of_files(session: SparkSession, path: str, version: int, files: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Columns as the table has them at that version, of files that hold just rows."""
    from pyspark.sql.types import StructType

    whole = StructType.fromJson(log.definition(path, version).schema)
    by_name = {field.name.casefold(): field for field in whole.fields}
    chosen = StructType([by_name[name.casefold()] for name in names])
    if not files:
        return session.createDataFrame([], chosen)
    return session.read.schema(chosen).parquet(*files)


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
        case (str(path), int(version), _, _):
            return path, version
        case _:
            return None


def _shown(session: SparkSession) -> dict[str, object]:
    """What the session's views over versions show."""
    if not hasattr(session, "_trickle_views"):
        session._trickle_views = {}  # type: ignore[attr-defined]
    found: dict[str, object] = session._trickle_views  # type: ignore[attr-defined]
    return found
