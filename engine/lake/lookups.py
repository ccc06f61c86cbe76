"""Rows of a source that have certain keys, looked up by the driver in the files of a version.

To find a few thousand of six million rows Spark needs a job of 0.6 to 1 s on two cores, most of it for rows that nobody
wants; the same files, read by Arrow with the keys as a filter, take 0.15 to 0.2 s. So where files hold just rows, and
are at hand, looking is not left to Spark. What is computed of the rows is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.lake import by_hand, failures, log, old_days, queries, views
from engine.lake.by_hand import ByHand

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: more keys than that, or rows, are no look-up any more
KEYS_MAX = 100_000
ROWS_MAX = 250_000
#: of so many versions it is remembered which files they are
_REMEMBERED = 256

#: types whose values are in files as Spark would read them
_PLAIN_TYPES = frozenset(
    (
        *("boolean", "byte", "short", "integer", "long", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    )
)


@dataclass(frozen=True)
class Lookup:
    #: that shows the source
    view: str
    #: columns of the source, and what they are called in the result
    columns: tuple[tuple[str, str], ...]
    #: of the source: those that have to be among the keys, in the order of the columns of `keys`
    by: tuple[str, ...]
    #: a query; NULL is a key like any other
    keys: str
    #: the same keys, where they are only chosen among rows that the driver may have
    by_hand: ByHand | None = None
    #: the views of versions that the query of the keys reads, perhaps among others
    reads: frozenset[str] = frozenset()


#: told of the files and columns that are read, each time: for who counts what a refresh reads
listeners: list[Callable[[Sequence[str], Sequence[str]], None]] = []


def is_possible(path: str, version: int, columns: Sequence[str], most_mb: int) -> bool:
    """Are the files at hand, and as they have to be? The answer may change with every version."""
    try:
        found = _files(path, version, log.signature(path, version), tuple(columns))
    except Exception as error:
        raise failures.typed(error, f"looking at the files of {path}") from error
    return found is not None and found.size <= most_mb * 1024 * 1024


def rows(session: SparkSession, lookup: Lookup, doing: str) -> pa.Table | None:
    """The rows with any of the keys. None where Spark has to look."""
    shown = views.shown_version(session, lookup.view)
    if shown is None:
        return None
    path, version = shown
    try:
        found = _files(path, version, log.signature(path, version), tuple(own for own, _ in lookup.columns))
        if found is None:
            return None
        keys = _at_hand(session, lookup)
        if keys is None:
            views.make_ready(session, lookup.reads)
            keys = queries.collect_at_most(queries.run(session, lookup.keys, doing), KEYS_MAX, doing)
        return None if keys is None else _read(found, lookup, keys)
    except Exception as error:
        raise failures.typed(error, doing) from error


def _at_hand(session: SparkSession, lookup: Lookup) -> pa.Table | None:
    """The keys, where all that they are chosen among came from the driver."""
    found = None if lookup.by_hand is None else by_hand.rows(lookup.by_hand, partial(views.rows_behind, session))
    if found is None:
        return None
    # more than once is no harm, but costs time
    keys = found.group_by(found.column_names).aggregate([])
    return keys if keys.num_rows <= KEYS_MAX else None


@dataclass(frozen=True)
class _Files:
    names: tuple[str, ...]
    schema: pa.Schema
    size: int


@functools.lru_cache(_REMEMBERED)
def _files(path: str, version: int, commit: object, columns: tuple[str, ...]) -> _Files | None:
    """`commit`: another one behind the same number is another version."""
    import os

    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    names = views.plain_files(path, version) if commit is not None else None
    if not names:
        return None
    fields = {field["name"].casefold(): field for field in log.definition(path, version).schema["fields"]}
    chosen = [fields[name.casefold()] for name in columns]
    types = [field["type"] for field in chosen]
    if any(field["metadata"].keys() - {"comment"} for field in chosen) or not all(map(_is_plain, types)):
        return None
    if any(_spells_otherwise(name, field["name"]) for name in names for field in chosen):
        return None
    if old_days.are_possible(types) and old_days.in_files(path, names):
        return None
    schema = to_arrow_schema(StructType.fromJson({"type": "struct", "fields": chosen}), timezone="UTC")
    return _Files(tuple(names), schema, sum(os.path.getsize(name) for name in names))


def _spells_otherwise(file: str, column: str) -> bool:
    """Spark finds a column in a file whatever the case of its letters, Arrow does not."""
    there = _columns_of(file)
    return column not in there and column.casefold() in map(str.casefold, there)


@functools.lru_cache(20_000)
def _columns_of(file: str) -> frozenset[str]:
    """Files never change."""
    import pyarrow.parquet as pq

    return frozenset(pq.read_schema(file).names)


def _is_plain(type_: object) -> bool:
    return isinstance(type_, str) and (type_ in _PLAIN_TYPES or type_.startswith("decimal("))


def _read(files: _Files, lookup: Lookup, keys: pa.Table) -> pa.Table | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    names = files.schema.names
    own = {asked.casefold(): name for (asked, _), name in zip(lookup.columns, names, strict=True)}
    by = [own[name.casefold()] for name in lookup.by]
    columns = [keys.column(at).cast(files.schema.field(name).type) for at, name in enumerate(by)]
    if any(pa.types.is_floating(column.type) for column in columns):
        return None  # 0.0 and -0.0 are one key
    if len(by) > 1 and any(column.null_count for column in columns):
        return None  # Arrow joins no NULLs
    wanted = [pc.field(name).isin(column.combine_chunks()) for name, column in zip(by, columns, strict=True)]
    for tell in listeners:
        tell(files.names, names)
    dataset = ds.dataset(list(files.names), format="parquet", schema=files.schema)
    found, counted = [], 0
    for batch in dataset.to_batches(columns=names, filter=functools.reduce(lambda one, other: one & other, wanted)):
        found.append(batch)
        counted += batch.num_rows
        if counted > ROWS_MAX:
            return None
    table = pa.Table.from_batches(found, files.schema)
    if len(by) > 1:
        table = table.join(pa.table(columns, names=by), by, join_type="left semi").select(names)
    return table.rename_columns([name for _, name in lookup.columns])
