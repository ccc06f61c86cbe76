"""The list of stream tables: which columns fit, and how a row is painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from engine.records import State, StreamTableStatus
from trickle_tui import format, plots, state
from trickle_tui.paint import EMPTY, Line, Span, columns, left, line, measured, right, span
from trickle_tui.views import modes

_BAR = 5
_TREND = 20
_LEAST_TREND = 8
_LEAST_NOTE = 28
#: who leaves first when it is narrow; state, name and staleness never do
_LEAVING = ("note", "trend", "reason", "rows", "mode", "next", "last", "bar")


@dataclass(frozen=True)
class Layout:
    """Columns from left to right and how wide they are."""

    widths: dict[str, int]

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.widths)


@dataclass(frozen=True)
class Moment:
    """When the list is painted: the picture's time, the clock's time, and the turn of running signs."""

    at: datetime
    now: datetime
    turn: int = 0

    @property
    def since_s(self) -> float:
        return max(0.0, (self.now - self.at).total_seconds())


def layout(tables: Sequence[StreamTableStatus], room: int) -> Layout:
    """Give each column what its content needs; drop columns until the names fit."""
    state_word = max([7, *(len(table.state.value) for table in tables)])
    name = max([12, *(len(table.name) for table in tables)])
    reason = max([0, *(len(modes.short_reason(table)) for table in tables)])
    every = max([3, *(len(format.interval(table.interval_s)) for table in tables)])
    held = max([0, *(10 for table in tables if table.state in state.HELD)])
    wanted = {
        "state": 2 + state_word,
        "name": name,
        "mode": 4,
        "reason": reason,
        "bar": _BAR,
        "stale": max(5 + 1 + every, held, len("/ EVERY")),
        "last": 6,
        "trend": _TREND,
        "rows": max([7, *(len(_rows(table)) for table in tables)]),
        "next": 6,
        "note": _LEAST_NOTE,
    }
    if not reason:
        del wanted["reason"]
    for column in _LEAVING:
        over = _total(wanted) - room
        if over <= 0:
            break
        if column == "trend" and _TREND - over >= _LEAST_TREND:
            # a shorter trend is better than none
            wanted["trend"] = _TREND - over
            break
        wanted.pop(column, None)
    spare = room - _total(wanted)
    if spare < 0:
        # only now are names cut, and no further than to a readable stub
        wanted["name"] = max(8, name + spare)
    elif "note" in wanted:
        wanted["note"] += spare
    else:
        wanted["name"] += min(spare, 8) if "trend" in wanted else spare
    return Layout(wanted)


def _total(widths: dict[str, int]) -> int:
    """One cell before all columns for the cursor, one between two of them."""
    return 1 + sum(widths.values()) + len(widths) - 1


_HEADS = {
    "state": "STATE",
    "name": "NAME",
    "mode": "MODE",
    "reason": "",
    "bar": "STALE",
    "stale": "/ EVERY",
    "last": "LAST",
    "trend": "TREND, LAST 20",
    "rows": "ROWS Δ",
    "next": "NEXT",
    "note": " WHY",
}
_RIGHT = frozenset({"last", "rows", "next"})


def head(shape: Layout) -> Line:
    cells: list[Line] = []
    for column, room in shape.widths.items():
        title = _HEADS[column]
        if column == "trend" and room < _TREND:
            title = f"TREND, LAST {room}" if room >= len("TREND, LAST 14") else "TREND"
        if column == "stale" and "bar" not in shape.widths:
            title = "STALE"
        cells.append(right(span(title, "dim"), room) if column in _RIGHT else left(span(title, "dim"), room))
    return line(" ", columns(cells))


def row(shape: Layout, table: StreamTableStatus, moment: Moment, selected: bool, marked: bool) -> Line:
    cells = [_cell(column, room, table, moment, selected) for column, room in shape.widths.items()]
    lead = "█" if selected and marked else "▌" if selected else "•" if marked else " "
    return line(Span(lead, "accent bold" if marked else "accent"), columns(cells))


def _cell(column: str, room: int, table: StreamTableStatus, moment: Moment, selected: bool) -> Line:
    match column:
        case "state":
            return left(
                line(
                    Span(state.glyph(table.state, moment.turn), state.token(table.state)),
                    " ",
                    Span(table.state.value, state.word_role(table.state)),
                ),
                room,
            )
        case "name":
            return left(span(table.name, name_role(table, selected)), room)
        case "mode":
            return left(span(modes.short_mode(table), "text" if modes.is_lifted(table) else "dim"), room)
        case "reason":
            return left(span(modes.short_reason(table), "stale"), room)
        case "bar":
            return _bar(table, moment, room)
        case "stale":
            return left(_staleness(table, moment), room)
        case "last":
            return right(_last(table), room)
        case "trend":
            return plots.sparkline(table.recent_ms, room)
        case "rows":
            text = _rows(table)
            return right(span(text, "dim" if text == format.MISSING else "faint" if text == "0" else "text"), room)
        case "next":
            return right(_next(table, moment), room)
        case _:
            return left(line(" ", _note(table)), room)


def name_role(table: StreamTableStatus, selected: bool) -> str:
    """Names that need attention, that run or are selected stand out; what is held back by choice recedes."""
    if selected or table.state in state.WANTS_ATTENTION or table.state is State.RUNNING:
        return "text bold"
    return "dim" if table.state in (State.PAUSED, State.FROZEN) else "text"


def staleness_s(table: StreamTableStatus, moment: Moment) -> float | None:
    """As old as it is now, not as it was when the picture was taken."""
    return None if table.staleness_s is None else table.staleness_s + moment.since_s


def _bar(table: StreamTableStatus, moment: Moment, room: int) -> Line:
    if table.running is not None:
        steps = table.running.steps
        return plots.meter(table.running.step / steps, room, "running") if steps else left("", room)
    stale_s = staleness_s(table, moment)
    if stale_s is None or table.interval_s <= 0 or table.state in state.HELD or table.state is State.FROZEN:
        return left("", room)
    over = table.state in (State.STALE, State.LATE)
    return plots.meter(1.0 if over else stale_s / table.interval_s, room, "stale" if over else "data")


def _staleness(table: StreamTableStatus, moment: Moment) -> Line:
    stale_s = staleness_s(table, moment)
    running = table.running
    if running is not None:
        progress = f" {running.step}/{running.steps}" if running.steps else ""
        return span(f"{running.phase}{progress}", "running")
    if table.state in state.HELD:
        text = "held" if stale_s is None else f"held {format.age(stale_s)}"
        return span(text, state.token(table.state))
    if stale_s is None or table.state is State.FROZEN:
        return line(right(span(format.MISSING, "dim"), 5))
    over = table.state in (State.STALE, State.LATE)
    text = format.age(stale_s) if stale_s >= 10 or table.interval_s > 5 else f"{stale_s:.1f}s"
    number = span(text, "stale") if over else measured(text)
    return line(right(number, 5), Span(f"/{format.interval(table.interval_s)}", "faint"))


def _last(table: StreamTableStatus) -> Line:
    if table.last is None:
        return span(format.MISSING, "dim")
    work = [milliseconds for milliseconds in table.recent_ms if milliseconds > 0]
    shown = work[-1] if work else table.last.duration_ms
    unusual = len(work) > 2 and plots.is_unusual(shown, median(work))
    return measured(format.took(shown), "stale" if unusual else "text", "stale" if unusual else "dim")


def _rows(table: StreamTableStatus) -> str:
    held = table.state in state.HELD and table.state is not State.PAUSED
    if table.last is None or held or not modes.did_work(table.last):
        return format.MISSING if table.last is None or held else "0"
    return format.count(modes.rows_changed(table.last))


def _next(table: StreamTableStatus, moment: Moment) -> Line:
    if table.running is not None or table.next_due_at is None or table.state in state.HELD:
        return span(format.MISSING, "dim")
    until_s = (table.next_due_at - moment.now).total_seconds()
    if until_s < 1:
        return span("now", "stale" if table.state in (State.STALE, State.LATE) else "dim")
    return span(format.age(until_s), "dim")


def _note(table: StreamTableStatus) -> Line:
    if table.error:
        return span(table.error.splitlines()[0], "failed" if table.state in state.HELD else "text")
    if modes.is_lifted(table) and table.reason:
        return span(table.reason.text, "dim")
    return EMPTY
