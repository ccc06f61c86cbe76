"""The options of our own statements: one table of what `WITH (…)` may say, and how it is read."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from engine.durations import parse_duration
from engine.errors import InvalidArgument, Position, QueryParseError
from engine.records import CdcMode, RefreshMode, SqlDialect


class StreamTableOptions(TypedDict, total=False):
    """What was said; what was not is not there. Named as the arguments of `create_stream_table`."""

    schedule: str
    refresh_mode: str
    append_only: bool
    differential_max_change_ratio: float | Literal["default"]
    initialize: bool
    comment: str
    enable_cdf: bool
    dialect: str
    partition_by: tuple[str, ...]


class SourceOptions(TypedDict, total=False):
    """Named as the arguments of `add_source`."""

    format: str
    cdc_mode: str
    key: tuple[str, ...]
    enable_cdf: bool
    options: dict[str, str]


class QueryOptions(TypedDict, total=False):
    """Of what is asked about a query: named as the arguments of `validate_query` and its kin."""

    dialect: str


class PreviewOptions(QueryOptions, total=False):
    """Named as the arguments of `preview_stream_table`."""

    refresh_mode: str
    limit: int


@dataclass(frozen=True)
class Option:
    name: str
    #: 'schedule', 'choice', 'boolean', 'text', 'names', 'columns' (which may be none), 'pairs', 'count' or 'share'
    kind: str
    meaning: str
    choices: tuple[str, ...] = ()


_REFRESH_MODE = Option("refresh_mode", "choice", "How it is refreshed.", tuple(RefreshMode))

_DIALECT = Option("dialect", "choice", "Whose SQL the query is written in.", tuple(SqlDialect))

STREAM_TABLE_OPTIONS: tuple[Option, ...] = (
    Option("schedule", "schedule", "How stale the rows may get: '30s', '1h30m', or 'calculated'."),
    _REFRESH_MODE,
    Option("append_only", "boolean", "Its sources only ever get new rows."),
    Option(
        "differential_max_change_ratio",
        "share",
        "In AUTO, a change of more than this share of a source's rows is refreshed fully.",
    ),
    Option("initialize", "boolean", "Fill it at once (the default)."),
    Option("comment", "text", "What it is for."),
    Option("enable_cdf", "boolean", "May the Change Data Feed be switched on in its sources?"),
    _DIALECT,
    Option("partition_by", "columns", "The columns by whose values its files lie in folders of their own."),
)

#: of ALTER … SET (…): how it is filled for the first time is no question any more
ALTER_OPTIONS: tuple[Option, ...] = tuple(option for option in STREAM_TABLE_OPTIONS if option.name != "initialize")

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option("format", "text", "What lies at the path: 'delta', 'parquet', 'csv', 'json', 'jdbc', 'table' …"),
    Option("options", "pairs", "For Spark's reader of that format: ('header=false', 'sep=;')."),
    Option("cdc_mode", "choice", "How its changes are found.", tuple(CdcMode)),
    Option("key", "names", "The columns that tell one row from another: 'id' or ('id', 'line')."),
    Option("enable_cdf", "boolean", "May the Change Data Feed be switched on in it?"),
)

QUERY_OPTIONS: tuple[Option, ...] = (_DIALECT,)

PREVIEW_OPTIONS: tuple[Option, ...] = (
    *QUERY_OPTIONS,
    _REFRESH_MODE,
    Option("limit", "count", "How many rows are shown."),
)

#: a value as the parser met it: text, number, boolean, None for NULL, or a list of texts
Value = str | float | bool | tuple[str, ...] | None


def read_options(
    given: tuple[tuple[str, Value, Position], ...], known: tuple[Option, ...], where: str
) -> dict[str, Any]:
    """The options by name, each with a value of its kind."""
    by_name = {option.name: option for option in known}
    read: dict[str, Any] = {}
    for name, value, position in given:
        option = by_name.get(name.lower())
        if option is None:
            near = difflib.get_close_matches(name.lower(), by_name, n=1)
            raise InvalidArgument(
                f"{where} has no option {name}",
                position=position,
                hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(by_name)}",
            )
        if option.name in read:
            raise QueryParseError(
                f"the option {option.name} is given twice", position=position, hint="leave one of them out"
            )
        read[option.name] = _value(option, value, position)
    return read


def _value(option: Option, value: Value, position: Position) -> Any:
    match option.kind, value:
        case "boolean", bool():
            return value
        case "boolean", str() if value.lower() in ("true", "false"):
            return value.lower() == "true"
        case "choice", str():
            chosen = {choice.lower(): choice for choice in option.choices}.get(value.lower())
            if chosen is not None:
                return str(chosen)
        case "schedule", str():
            return _schedule(value, position)
        case "text", str():
            return value
        case "count", float() if value.is_integer() and value >= 0:
            return int(value)
        case "share", float() if 0 <= value <= 1:
            return value
        case "share", None | "default":
            return "default"
        case "names" | "columns", str() if value:
            return tuple(part.strip() for part in value.split(","))
        case "names" | "columns", tuple() if value:
            return value
        case "columns", None | "" | ():
            return ()
        case "pairs", str() | tuple() if value:
            pairs = [each.partition("=") for each in ((value,) if isinstance(value, str) else value)]
            if all(key.strip() and equals for key, equals, _ in pairs):
                return {key.strip(): text for key, _, text in pairs}
    shown = "NULL" if value is None else repr(value)
    wanted = {
        "boolean": "true or false",
        "choice": "one of " + ", ".join(option.choices),
        "schedule": "a duration such as '30s', or 'calculated'",
        "text": "text in quotes",
        "count": "a whole number",
        "share": "a number from 0 to 1, such as 0.2, or NULL for that of the settings",
        "names": "'id' or ('id', 'line')",
        "columns": "'day' or ('day', 'region'), or NULL for none",
        "pairs": "'key=value' or ('key=value', 'other=value')",
    }[option.kind]
    raise InvalidArgument(
        f"{option.name} cannot be {shown}", position=position, detail=option.meaning, hint=f"give {wanted}"
    )


def _schedule(text: str, position: Position) -> str:
    if text.strip().lower() == "calculated":
        return "calculated"
    return duration_of(text, position, "schedule", "write '30s', '1h30m' or 'calculated'")


def duration_of(text: str, position: Position, what: str, hint: str = "write '30s' or '1h30m'") -> str:
    try:
        parse_duration(text)
    except InvalidArgument as error:
        raise InvalidArgument(f"{what}: {error.message}", position=position, detail=error.detail, hint=hint) from error
    return text.strip()
