"""What a Parquet file says of itself at its end, as a Delta log tells it: rows, NULLs, least and greatest values.

Readers leave out files by these bounds, so none is better than a narrow one. Floating-point numbers have none: NaN is
in no bound of Parquet's. Booleans, binaries and what repeats have none in Delta either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: a bound needs no more of a text to leave out files
MAX_TEXT = 32
#: no text that begins like another one stands behind it with this at its end
LAST_CHARACTER = "\U0010ffff"

#: a column in the words of its parents: ("address", "city")
Path = tuple[str, ...]
#: values of JSON, spelled: a decimal must not become a float on the way
Tree = dict[str, "str | Tree"]


@dataclass(frozen=True)
class Bounds:
    """Of one column, over all of a file; without values where one part of the file does not tell them."""

    nulls: int
    least: Any = None
    greatest: Any = None


def statistics(footer: pq.FileMetaData, indexed: Callable[[int, Path], bool]) -> str:
    """A file's statistics for the log. `indexed` says of the n-th column, by its path, whether they are wanted."""
    nulls: Tree = {}
    least: Tree = {}
    greatest: Tree = {}
    for path, bounds in _columns(footer, indexed):
        _put(nulls, path, str(bounds.nulls))
        lower, upper = _lower(bounds.least), _upper(bounds.greatest)
        if lower is not None and upper is not None:
            _put(least, path, lower)
            _put(greatest, path, upper)
    return _spelled({"numRecords": str(footer.num_rows), "minValues": least, "maxValues": greatest, "nullCount": nulls})


def _columns(footer: pq.FileMetaData, indexed: Callable[[int, Path], bool]) -> Iterator[tuple[Path, Bounds]]:
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        path = tuple(column.path.split("."))
        # a name with a point in it looks like a path: it is left out, and so is what repeats
        if column.max_repetition_level == 0 and path[-1] == column.name and indexed(index, path):
            parts = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
            bounds = _together([part.statistics for part in parts])
            if bounds is not None:
                yield path, bounds


def _together(parts: list[pq.Statistics | None]) -> Bounds | None:
    """Of a column in all parts of a file."""
    known = [part for part in parts if part is not None and part.has_null_count]
    if len(known) < len(parts):
        return None
    nulls = sum(part.null_count for part in known)
    filled = [part for part in known if part.num_values]
    if not filled or not all(part.has_min_max for part in filled):
        return Bounds(nulls)
    try:
        return Bounds(nulls, min(part.min for part in filled), max(part.max for part in filled))
    except (OverflowError, ValueError):  # a date that Python does not know
        return Bounds(nulls)


def _lower(value: Any) -> str | None:
    match value:
        case str():
            return json.dumps(value[:MAX_TEXT])
        case datetime():
            return json.dumps(_millis(value))
        case _:
            return _exact(value)


def _upper(value: Any) -> str | None:
    match value:
        case str() if len(value) > MAX_TEXT:
            if value[MAX_TEXT] == LAST_CHARACTER:
                return None
            return json.dumps(value[:MAX_TEXT] + LAST_CHARACTER)
        case datetime():
            try:
                return json.dumps(_millis(value + timedelta(microseconds=-value.microsecond % 1000)))
            except OverflowError:
                return None
        case _:
            return _lower(value) if isinstance(value, str) else _exact(value)


def _exact(value: Any) -> str | None:
    match value:
        case bool() | None:
            return None
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case date():
            return json.dumps(value.isoformat())
        case _:
            return None


def _millis(moment: datetime) -> str:
    """As Delta tells a moment: to the millisecond, in UTC where it has a zone at all."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _put(tree: Tree, path: Path, value: str) -> None:
    *parents, name = path
    for parent in parents:
        found = tree.setdefault(parent, {})
        if isinstance(found, str):
            return
        tree = found
    tree.setdefault(name, value)


def _spelled(tree: Mapping[str, str | Tree]) -> str:
    members = (
        f"{json.dumps(name)}:{value if isinstance(value, str) else _spelled(value)}" for name, value in tree.items()
    )
    return "{" + ",".join(members) + "}"
