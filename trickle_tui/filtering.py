"""The language of the `/` line, and the orders of the list. Pure.

Plain words must all occur in the name. `state:failed`, `mode:full`, `owner:etl`, `reads:orders`, `name~ord`
look at one thing; `stale:>5m` compares; a leading `!` turns a term round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.records import State, StreamTableStatus
from trickle_tui import format, state
from trickle_tui.views import modes

_TERM = re.compile(r"(?P<no>!?)(?P<field>[A-Za-z]+)(?P<op>[:~])(?P<value>.*)", re.DOTALL)
_AMOUNT = re.compile(r"(?P<compare>[<>]?=?)(?P<number>(\d+(\.\d+)?(ms|s|m|h|d))+)")
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

Test = Callable[[StreamTableStatus], bool]


@dataclass(frozen=True)
class Problem:
    """A stretch of the text that means nothing, and why."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Filter:
    text: str
    tests: tuple[Test, ...]
    problems: tuple[Problem, ...]

    def keeps(self, table: StreamTableStatus) -> bool:
        return all(test(table) for test in self.tests)


def parse(text: str) -> Filter:
    """Terms that are wrong are reported and do not filter."""
    tests: list[Test] = []
    problems: list[Problem] = []
    for found in re.finditer(r"\S+", text):
        term = found.group()
        outcome = _term(term)
        if isinstance(outcome, str):
            problems.append(Problem(found.start(), found.end(), outcome))
        else:
            tests.append(outcome)
    return Filter(text, tuple(tests), tuple(problems))


def _term(term: str) -> Test | str:
    """A test, or what is wrong."""
    match = _TERM.fullmatch(term)
    if match is None:
        wanted = term.lstrip("!").lower()
        return _turned(lambda table: wanted in table.name.lower(), term.startswith("!"))
    field, value = match["field"].lower(), match["value"]
    if not value:
        return f"{field}{match['op']} wants a value"
    test = _field(field, match["op"], value)
    return test if isinstance(test, str) else _turned(test, bool(match["no"]))


def _field(field: str, op: str, value: str) -> Test | str:
    wanted = value.lower()
    match field:
        case "name":
            return lambda table: wanted in table.name.lower()
        case "owner":
            return lambda table: wanted in table.owner.lower()
        case "reads":
            return lambda table: any(wanted in source.lower() for source in table.sources)
        case "state":
            # as far as it is typed, so that the list follows each key
            if not any(each.value.startswith(wanted) for each in State):
                return f"no state {value!r}; there are {', '.join(each.value for each in State)}"
            return lambda table: table.state.value.startswith(wanted)
        case "mode":
            if not any(mode.startswith(wanted) for mode in ("differential", "full", "immediate", "auto")):
                return f"no mode {value!r}; there are auto, differential, full"
            return lambda table: (
                table.effective_mode.lower().startswith(wanted) or table.refresh_mode.value.lower().startswith(wanted)
            )
        case "stale" | "last":
            return _amount(field, value)
        case _:
            return f"no field {field!r}; there are name, state, mode, stale, last, owner, reads"


def _amount(field: str, value: str) -> Test | str:
    match = _AMOUNT.fullmatch(value)
    if match is None:
        return f"{field}: wants a comparison such as >5m or <2h30m"
    amount_s = sum(
        float(number) * _UNITS_S[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h|d)", match["number"])
    )
    compare = match["compare"] or ">="

    def test(table: StreamTableStatus) -> bool:
        took_s = table.last.duration_ms / 1000 if table.last else None
        seen = table.staleness_s if field == "stale" else took_s
        if seen is None:
            return False
        return {
            ">": seen > amount_s,
            ">=": seen >= amount_s,
            "<": seen < amount_s,
            "<=": seen <= amount_s,
            "=": int(seen) == int(amount_s),
        }[compare]

    return test


def _turned(test: Test, no: bool) -> Test:
    return (lambda table: not test(table)) if no else test


@dataclass(frozen=True)
class Order:
    """A way to sort the list; `descending` says what people expect first."""

    name: str
    key: Callable[[StreamTableStatus], tuple[float | str, ...]]
    descending: bool = False


def _severity(table: StreamTableStatus) -> tuple[float | str, ...]:
    ratio = table.staleness_s / table.interval_s if table.staleness_s and table.interval_s > 0 else 0.0
    over = ratio if table.state in (State.STALE, State.LATE) else 0.0
    return (state.SEVERITY[table.state], -over)


ORDERS = (
    Order("severity", _severity),
    Order("name", lambda table: (table.name.lower(),)),
    Order("staleness", lambda table: (table.staleness_s or 0.0,), descending=True),
    Order("duration", lambda table: (table.last.duration_ms if table.last else 0.0,), descending=True),
    Order("rows", lambda table: (modes.rows_changed(table.last) if table.last else 0,), descending=True),
    Order("next", lambda table: (table.next_due_at.timestamp() if table.next_due_at else float("inf"),)),
)


def arrange(
    tables: Sequence[StreamTableStatus], chosen: Filter, order: Order, reverse: bool
) -> tuple[StreamTableStatus, ...]:
    """Those that the filter keeps, in order; ties stay as the engine lists them."""
    kept = [table for table in tables if chosen.keeps(table)]
    return tuple(sorted(kept, key=order.key, reverse=order.descending != reverse))


def title(shown: int, total: int, order: Order, reverse: bool, marked: int) -> str:
    """'16 of 16 · by severity ↓'."""
    arrow = "↑" if reverse else "↓"
    marks = f"{format.count(marked)} marked · " if marked else ""
    return f"{marks}{format.count(shown)} of {format.count(total)} · by {order.name} {arrow}"
