"""What changed between two versions, told from the files that only one of them has: nobody has to record anything.

A row of a file that came counts +1, a row of one that went -1. Rows that were only carried from one file to another
cancel each other, so what is left is the change. Rows that were only appended need no cancelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from engine.algebra.nodes import WEIGHT
from engine.lake import capabilities, log, old_days, quoting, tables, views
from engine.lake.commits import ChangeSummary, DataFile, FilesBetween, files_between
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: so many names may stand in a condition; beyond that both versions are read as a whole, and the rest cancels out
_NAMED_FILES = 500


def here(
    path: str, columns: Sequence[str], summary: ChangeSummary, files: FilesBetween, max_rows: int
) -> pa.Table | None:
    """The weighted rows, read by the driver; None where that would be too many, or not right."""
    import pyarrow as pa

    if sum(file.rows for file in files.touched) > max_rows:
        return None
    folder = log.local_path(path)
    if folder is None or not _are_plain(path, summary, files) or not _driver_reads(path, columns, summary, files):
        return None
    schema = _arrow_schema(path, summary.upto_version, columns)
    weighted = schema.append(pa.field(WEIGHT, pa.int32()))
    parts = [_rows(folder, file, weighted, 1) for file in files.came]
    parts += [_rows(folder, file, weighted, -1) for file in files.went]
    there = [rows for rows in parts if rows is not None]
    if len(there) < len(parts):
        return None
    return pa.concat_tables(there) if there else weighted.empty_table()


def by_spark(
    session: SparkSession, path: str, columns: Sequence[Column], summary: ChangeSummary, files: FilesBetween
) -> DataFrame:
    """The same weighted rows, however many. They do not cancel each other yet."""
    plain = _are_plain(path, summary, files)
    few = len(files.touched) <= _NAMED_FILES

    def side(version: int, some: Sequence[DataFile], weight: int) -> DataFrame:
        if plain:
            rows = views.of_files(session, path, summary.upto_version, _places(path, some), [c.name for c in columns])
        else:
            rows = _by_delta(session, path, version, columns, some if few else None)
        return rows.selectExpr(*map(views.readable, columns), f"{weight} AS {WEIGHT}")

    return side(summary.upto_version, files.came, 1).unionAll(side(summary.after_version, files.went, -1))


def are_gone(path: str, summary: ChangeSummary) -> bool:
    """Was a file removed that the change has to be read from? Remote folders are not asked."""
    folder = log.local_path(path)
    if folder is None:
        return False
    return any(not (folder / unquote(file.path)).exists() for file in files_between(path, summary).touched)


def _are_plain(path: str, summary: ChangeSummary, files: FilesBetween) -> bool:
    """Do the files hold just the rows, at both ends?"""
    ends = (summary.after_version, summary.upto_version)
    return all(views.files_hold_rows(path, version) for version in ends) and not any(
        file.vector or set(file.path) & {"%", ":"} for file in files.touched
    )


def _driver_reads(path: str, columns: Sequence[str], summary: ChangeSummary, files: FilesBetween) -> bool:
    definition = log.definition(path, summary.upto_version)
    if summary.schema_changed or not capabilities.of(definition, path).can_driver_read:
        return False
    wanted = {name.lower() for name in columns}
    types = [item["type"] for item in definition.schema["fields"] if item["name"].lower() in wanted]
    return not old_days.are_possible(types) or not old_days.in_files(path, [file.path for file in files.touched])


def _arrow_schema(path: str, version: int, columns: Sequence[str]) -> pa.Schema:
    """The wanted columns as the table has them, whatever their files say."""
    import pyarrow as pa

    whole = pa.schema(tables.pin(path, version).handle.schema().to_arrow())
    by_name = {field.name.lower(): field for field in whole}
    return pa.schema([by_name[name.lower()].with_nullable(True) for name in columns])


def _rows(folder: Path, file: DataFile, schema: pa.Schema, weight: int) -> pa.Table | None:
    """With the weight, which is the last column of the schema. None where the file lacks a column: it is older."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place, names = folder / unquote(file.path), schema.names[:-1]
    if not set(names) <= set(pq.read_schema(place).names):
        return None
    found = pq.read_table(place, columns=names, partitioning=None)
    # a table without columns would forget how many rows it has
    weights = pa.array([weight] * found.num_rows, pa.int32())
    return pa.table([*(found.column(name) for name in names), weights], [*names, WEIGHT]).cast(schema)


def _places(path: str, files: Iterable[DataFile]) -> list[str]:
    folder = log.local_path(path)
    return [str(folder / unquote(file.path)) for file in files] if folder is not None else []


def _by_delta(
    session: SparkSession, path: str, version: int, columns: Sequence[Column], files: Sequence[DataFile] | None
) -> Any:
    """Delta knows about partitions, mapped names and deleted rows. None: of all files."""
    names = ", ".join(quoting.name(column.name) for column in columns) or "1"
    listed = ", ".join(quoting.text(unquote(file.path).rsplit("/", 1)[-1]) for file in files or ())
    where = "" if files is None else f" WHERE _metadata.file_name IN ({listed})" if files else " WHERE false"
    return session.sql(f"SELECT {names} FROM {quoting.table(path)} VERSION AS OF {version}{where}")  # noqa: S608  quoted
