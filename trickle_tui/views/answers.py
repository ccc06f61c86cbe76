"""What the dashboard says before it does something, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from engine.records import Outcome, Overview, RefreshRecord, SourceStatus, StreamTable, StreamTableStatus
from engine.results import (
    AlterKind,
    AlterResult,
    CreateResult,
    DropResult,
    Maintenance,
    SqlResult,
    VerifyResult,
    ViewResult,
)
from trickle_tui import format
from trickle_tui.paint import EMPTY, Line, Span, columns, left, line, right, span, wrap
from trickle_tui.snapshot import Rows
from trickle_tui.views import modes

_ROOM = 60
_WIDEST_CELL = 40


def refreshed(record: RefreshRecord) -> str:
    """'customer_ltv: differential 0.80s, +12 −3'."""
    if record.outcome is Outcome.NO_DATA:
        return f"{record.st}: nothing changed upstream, {format.took(record.duration_ms)}"
    if not modes.did_work(record):
        return f"{record.st}: {modes.outcome(record)}, {record.reason.text}"
    changed = format.changes(record.rows_inserted, record.rows_deleted, record.rows_updated)
    return f"{record.st}: {modes.outcome(record)} {format.took(record.duration_ms)}, {changed}"


def maintained(done: Maintenance) -> str:
    return f"{done.name}: {format.plural(done.files_before, 'file')} became {format.count(done.files_after)}"


def verified(result: VerifyResult) -> str:
    return f"{result.name} equals its query: {format.plural(result.rows, 'row')}, {format.took(result.duration_ms)}"


def difference(result: VerifyResult) -> tuple[Line, ...]:
    """How a table differs from its query."""
    lines = [
        line(Span("✖ ", "failed"), Span(result.name, "text bold"), " differs from its query"),
        EMPTY,
        line(Span("rows        ", "dim"), format.count(result.rows)),
        line(Span("missing     ", "dim"), format.count(result.missing)),
        line(Span("unexpected  ", "dim"), format.count(result.unexpected)),
    ]
    if result.examples:
        lines += [EMPTY, span("EXAMPLES", "dim"), *(line(example) for example in result.examples)]
    lines += [EMPTY, line(Span("R", "accent bold"), Span(" computes all of it again", "dim"))]
    return tuple(lines)


def about_refresh_full(overview: Overview, names: Sequence[str]) -> tuple[Line, ...]:
    """What a full refresh will cost."""
    title = names[0] if len(names) == 1 else f"{len(names)} stream tables"
    text = (
        "All rows are computed again. Readers see the present rows until it is done; "
        "the tables below get only the difference."
    )
    tables = [table for table in overview.tables if table.name in names]
    full = [
        table.last.duration_ms
        for table in tables
        if table.last is not None and table.last.outcome in (Outcome.FULL, Outcome.REINITIALIZE)
    ]
    cost = f"The last full refresh took {format.took(max(full))}." if full else ""
    return _asked(f"recompute {title}", text, cost, names)


def about_reinitialize(names: Sequence[str]) -> tuple[Line, ...]:
    """What it is to begin anew."""
    title = names[0] if len(names) == 1 else f"{len(names)} stream tables"
    text = (
        "All rows are computed again, and nothing that is known of the stored ones counts. "
        "Readers see the present rows until it is done."
    )
    return _asked(f"begin {title} anew", text, "", names)


def about_drop(names: Sequence[str], below: Sequence[str]) -> tuple[Line, ...]:
    """What will be gone."""
    title = names[0] if len(names) == 1 else f"{len(names)} stream tables"
    text = (
        "Its definition and its rows go. Its sources stay."
        if len(names) == 1
        else "Definitions and rows go. Sources stay."
    )
    return _asked(f"drop {title}", text, _readers(below), names)


def _readers(below: Sequence[str]) -> str:
    if not below:
        return "Nothing reads it."
    go = "goes" if len(below) == 1 else "go"
    return f"{format.plural(len(below), 'stream table')} below {go} too: {', '.join(below)}."


def _asked(title: str, text: str, more: str, names: Sequence[str]) -> tuple[Line, ...]:
    lines = [span(title, "text bold"), EMPTY, *wrap(text, _ROOM)]
    if more:
        lines += [EMPTY, *wrap(more, _ROOM, "stale")]
    if len(names) > 1:
        lines += [EMPTY, *wrap(", ".join(names), _ROOM, "dim")]
    return tuple(lines)


def rows(result: Rows) -> tuple[Line, ...]:
    """A statement's rows as a table."""
    widths = [
        min(_WIDEST_CELL, max([len(name), len(type_), *(len(row[index]) for row in result.cells)]))
        for index, (name, type_) in enumerate(zip(result.names, result.types, strict=True))
    ]

    def painted(cells: Sequence[str], role: str) -> Line:
        return columns(
            [
                right(span(cell, role), room) if numeric else left(span(cell, role), room)
                for cell, room, numeric in zip(cells, widths, result.numeric, strict=True)
            ],
            gap=2,
        )

    shown = len(result.cells)
    total = format.plural(result.total, "row") if shown == result.total else f"{shown:,} of {result.total:,} rows"
    lines = [line(Span(total, "text bold"), Span(f"  {' '.join(result.statement.split())}", "dim")), EMPTY]
    lines += [line(Span(notice, "stale")) for notice in result.notices]
    lines += [painted(result.names, "text bold"), painted(result.types, "faint")]
    lines += [painted(row, "text") for row in result.cells]
    return tuple(lines)


def cell(value: object, is_number: bool) -> str:
    """One value of a result."""
    if value is None:
        return "NULL"
    if is_number and isinstance(value, int | float | Decimal):
        return f"{value:,}".replace("-", format.MINUS)
    return " ".join(str(value).split())


def of_statement(result: SqlResult) -> str:
    """One line for a statement that gives no rows."""
    match result.value:
        case RefreshRecord() as record:
            return refreshed(record)
        case Maintenance() as done:
            return maintained(done)
        case StreamTable() as table:
            return f"it is named {table.name} from now on"
        case str() as text:
            return text
        case VerifyResult() as compared:
            if compared.equal:
                return verified(compared)
            return f"{compared.name} differs: {compared.missing:,} missing, {compared.unexpected:,} unexpected"
        case CreateResult(table, created, refresh):
            if not created:
                return f"{table.name} is there already"
            return f"{table.name} created" + (f"; {refreshed(refresh)}" if refresh else "")
        case AlterResult(table, kind, text, refresh):
            verb = "needs no change" if kind is AlterKind.NOTHING else "altered"
            return f"{table.name} {verb}: {text}" + (f"; {refreshed(refresh)}" if refresh else "")
        case DropResult(dropped):
            return f"dropped {', '.join(dropped)}" if dropped else "nothing to drop"
        case StreamTableStatus() as status:
            return f"{status.name} is {status.state.value}"
        case SourceStatus() as source:
            return f"source {source.source.name} is known"
        case ViewResult(view, replaced):
            return f"the view {view.name} is {'replaced' if replaced else 'created'}"
        case _:
            return f"{result.kind}: done"
