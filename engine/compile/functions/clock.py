"""A query that reads the clock, with the moment written in: what a refresh runs, and what `verify` runs again.

Then the answer follows from the sources and that moment, and can be computed a second time. What cannot be written in
(a function of somebody's own that reads the clock, 'today' in the place of a date) keeps Spark's own clock; whoever
compiles the query asks Spark whether any such thing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from engine.compile.functions.names import LITERAL_FUNCTIONS, name_of
from engine.compile.tokens import tokenize


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S.%f}"


def _timestamp(at: datetime) -> str:
    return f"TIMESTAMP_LTZ '{_moment(at)} UTC'"


def _local(at: datetime) -> str:
    return f"TIMESTAMP_NTZ '{_moment(at)}'"


def _date(at: datetime) -> str:
    return f"DATE '{at:%Y-%m-%d}'"


def _seconds(at: datetime) -> str:
    return f"{int(at.timestamp())}L"


def _zone(_: datetime) -> str:
    """Everybody's: see FIXED_CONF."""
    return "'UTC'"


#: what Spark makes of a call, by its name, in the time zone of all sessions
_WRITTEN: Mapping[str, Callable[[datetime], str]] = {
    "curdate": _date,
    "current_date": _date,
    "current_timestamp": _timestamp,
    "current_timezone": _zone,
    "localtimestamp": _local,
    "now": _timestamp,
    "unix_timestamp": _seconds,
}


@dataclass(frozen=True)
class ClockCall:
    """Offsets in the text, `end` excluded."""

    start: int
    end: int
    name: str


def is_clock(name: str) -> bool:
    """Does it read the clock, and without parentheses, too?"""
    return name.lower() in _WRITTEN and name.lower() in LITERAL_FUNCTIONS


def names_given(tree: exp.Expr) -> Iterator[str]:
    """What a text calls columns of its own. `current_date AS current_date` is no other than that."""
    for node in tree.find_all(exp.Alias, exp.TableAlias):
        if isinstance(node, exp.TableAlias):
            yield from (column.name for column in node.columns)
        elif not (isinstance(node.this, exp.Column) and node.this.name.casefold() == node.alias.casefold()):
            yield node.alias


def clock_calls(tree: exp.Expr, text: str, columns: Collection[str] = ()) -> tuple[ClockCall, ...]:
    """The calls without arguments that a moment can be written in place of, in the order of the text.

    `columns`: names of which some may be columns there. What is called so without parentheses is left as it is.
    """
    starts = dict[int, str]()
    for node in tree.walk():
        if "start" in node.meta and (name := name_of(node)) in _WRITTEN:
            starts[node.meta["start"]] = name
        elif _is_bare(node) and is_clock(node.name) and node.name.casefold() not in columns:
            starts[node.this.meta["start"]] = node.name.lower()
    tokens = tokenize(text) if starts else ()
    found: list[ClockCall] = []
    for index, token in enumerate(tokens):
        name = starts.get(token.start, "")
        if not name or not token.is_word(name.upper()):
            continue
        if [each.value for each in tokens[index + 1 : index + 3]] == ["(", ")"]:
            found.append(ClockCall(token.start, tokens[index + 2].end, name))
        elif index + 1 == len(tokens) or not tokens[index + 1].is_symbol("("):
            found.append(ClockCall(token.start, token.end, name))
    return tuple(found)


def _is_bare(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table and not node.this.quoted and "start" in node.this.meta


def at_moment(text: str, calls: Sequence[ClockCall], at: datetime) -> str:
    """The text as if it had been written at that moment."""
    at = at.astimezone(UTC)
    for call in reversed(calls):
        text = f"{text[: call.start]}{_WRITTEN[call.name](at)}{text[call.end :]}"
    return text
