"""The refreshes of one stream table as a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.records import RefreshRecord
from trickle_tui import format
from trickle_tui.paint import EMPTY, Line, Span, columns, cut, left, line, right, span
from trickle_tui.views import modes

_COLUMNS = (
    ("ID", 7, False), ("AT", 12, False), ("OUTCOME", 12, False), ("BY", 9, False), ("ROWS IN", 11, True),
    ("INSERTED", 11, True), ("UPDATED", 9, True), ("DELETED", 10, True), ("TOOK", 7, True), ("EST", 7, True),
)  # fmt: skip
#: who leaves first when it is narrow
_LEAVING = ("EST", "UPDATED", "BY", "ROWS IN")


def shown_columns(room: int) -> tuple[tuple[str, int, bool], ...]:
    kept = list(_COLUMNS)
    for leaving in _LEAVING:
        if 1 + sum(size + 1 for _, size, _ in kept) + 20 <= room:
            break
        kept = [column for column in kept if column[0] != leaving]
    return tuple(kept)


def head(room: int) -> Line:
    cells = [
        right(span(title, "dim"), size) if is_number else left(span(title, "dim"), size)
        for title, size, is_number in shown_columns(room)
    ]
    return line(" ", columns(cells), "  ", Span("WHY", "dim"))


def row(record: RefreshRecord, now: datetime, room: int, selected: bool) -> Line:
    worked = modes.did_work(record)
    values: dict[str, Line] = {
        "ID": span(f"#{record.number}", "faint"),
        "AT": span(format.moment(record.finished_at, now), "faint"),
        "OUTCOME": span(modes.outcome(record), modes.outcome_role(record)),
        "BY": span(modes.initiator(record), "dim"),
        "ROWS IN": _number(record.rows_in, "", worked),
        "INSERTED": _number(record.rows_inserted, "+", worked),
        "UPDATED": _number(record.rows_updated, "~", worked),
        "DELETED": _number(record.rows_deleted, format.MINUS, worked),
        "TOOK": span(format.took(record.duration_ms), "text" if worked else "dim"),
        "EST": span(format.took(record.estimated_ms), "faint"),
    }
    cells = [
        right(values[title], size) if is_number else left(values[title], size)
        for title, size, is_number in shown_columns(room)
    ]
    lead = Span("▌" if selected else " ", "accent")
    return cut(line(lead, columns(cells), "  ", _why(record)), room)


def _number(value: int, sign: str, worked: bool) -> Line:
    if not worked:
        return EMPTY
    return span(f"{sign}{value:,}", "text") if value else span(f"{sign}0" if sign else "0", "faint")


def _why(record: RefreshRecord) -> Line:
    if record.error:
        return span(record.error.splitlines()[0], "text")
    usual = record.reason.code.value in ("differential", "no_data", "requested_full")
    return EMPTY if usual else span(record.reason.text, "text")


def title(history: Sequence[RefreshRecord]) -> str:
    return format.plural(len(history), "refresh", "refreshes")
