"""The first tab of a stream table: what it is, how it is, what it reads and who reads it."""

from __future__ import annotations

from engine.records import Column, StreamTable, StreamTableStatus
from engine.results import Explanation
from trickle_tui import format, state
from trickle_tui.paint import EMPTY, Line, Span, columns, cut, left, line, right, span, wrap
from trickle_tui.snapshot import Focus, Snapshot
from trickle_tui.views import modes, side
from trickle_tui.views.tables import Moment, staleness_s

_LABEL = 11


def _fact(label: str, *values: Line) -> tuple[Line, ...]:
    return tuple(
        line(Span(f"{label if index == 0 else '':<{_LABEL}}", "dim"), value) for index, value in enumerate(values)
    )


def is_lines(
    table: StreamTableStatus, focus: Focus | None, snapshot: Snapshot, moment: Moment, room: int
) -> tuple[Line, ...]:
    """What it is and how it is."""
    definition = focus.table if focus else None
    lines: list[Line] = [*_state(table, moment, room), EMPTY, *_mode(table, room - _LABEL)]
    if definition is not None:
        lines += _definition(definition, snapshot.overview.path, moment, room - _LABEL)
    lines += [EMPTY, span("READS", "dim")]
    lines += _reads(table, snapshot)
    lines += [EMPTY, span("READ BY", "dim")]
    lines += _readers(table, snapshot)
    return tuple(cut(each, room) for each in lines)


def _state(table: StreamTableStatus, moment: Moment, room: int) -> list[Line]:
    stale_s = staleness_s(table, moment)
    lines = [
        line(
            Span(f"{state.glyph(table.state)} {table.state.value}", f"{state.token(table.state)} bold"),
            "  ",
            Span(state.MEANING[table.state], "dim"),
        )
    ]
    if table.error:
        lines += [EMPTY, *wrap(table.error, room, "text")]
        if table.error_hint:
            lines += [line(Span("hint ", "dim"), each) for each in wrap(table.error_hint, room - 5, "text")]
    lines.append(EMPTY)
    over = stale_s is not None and stale_s > table.interval_s
    lines += _fact(
        "staleness",
        line(
            Span(format.age(stale_s), "stale" if over else "text"),
            Span(f" of {format.interval(table.interval_s)}", "dim"),
        ),
    )
    lines += _fact("next", side.next_line(table, moment))
    lines += _fact("last", side.last_line(table))
    lines += _fact("verified", side.verified_line(table, moment))
    return lines


def _mode(table: StreamTableStatus, room: int) -> list[Line]:
    asked = Span(f"  asked for {table.refresh_mode.value}", "dim")
    lines = list(_fact("mode", line(table.effective_mode.lower(), asked)))
    if table.reason is not None and modes.is_lifted(table):
        where = f" ({table.reason.position})" if table.reason.position else ""
        lines += _fact("why full", *wrap(f"{table.reason.text}{where}", room, "stale"))
    lines += _fact("schedule", line(table.schedule))
    return lines


def _definition(table: StreamTable, workspace: str, moment: Moment, room: int) -> list[Line]:
    lines = list(_fact("owner", line(table.owner or format.MISSING)))
    lines += _fact("created", span(format.moment(table.created_at, moment.now)))
    lines += _fact("path", span(format.short_path(format.path_within(table.path, workspace), room)))
    if table.append_only:
        lines += _fact("kept", line("append only"))
    if table.partition_by:
        lines += _fact("partitions", *wrap(", ".join(table.partition_by), room))
    if table.comment:
        lines += _fact("comment", *wrap(table.comment, room))
    return lines


def _reads(table: StreamTableStatus, snapshot: Snapshot) -> list[Line]:
    """Each source with the version that the rows stand for."""
    if not table.sources:
        return [span("nothing", "dim")]
    name = max(len(source) for source in table.sources)
    lines: list[Line] = []
    for source in table.sources:
        upstream = snapshot.table(source)
        sign = (
            Span("□ ", "dim")
            if upstream is None
            else Span(f"{state.glyph(upstream.state)} ", state.token(upstream.state))
        )
        version = (table.frontier or {}).get(source)
        at = span(f"@{version.version}", "faint") if version else span(format.MISSING, "dim")
        word = span(upstream.state.value if upstream else "source", "dim")
        lines.append(line(sign, columns([left(span(source), name), right(at, 8), word], gap=2)))
    return lines


def _readers(table: StreamTableStatus, snapshot: Snapshot) -> list[Line]:
    if not table.dependents:
        return [span("nobody", "dim")]
    lines: list[Line] = []
    for name in table.dependents:
        reader = snapshot.table(name)
        sign = Span("  ") if reader is None else Span(f"{state.glyph(reader.state)} ", state.token(reader.state))
        lines.append(line(sign, name))
    return lines


def column_lines(columns_of: tuple[Column, ...], explanation: Explanation | None, room: int) -> tuple[Line, ...]:
    """The columns of the result, then those that maintenance keeps beside them."""
    lines = [_column(each, room, "text") for each in columns_of]
    hidden = explanation.hidden_columns if explanation else ()
    if hidden:
        lines += [EMPTY, span("KEPT BESIDE THEM", "dim"), *(_column(each, room, "dim") for each in hidden)]
    return tuple(lines)


def _column(column: Column, room: int, role: str) -> Line:
    kind = f"{column.type}{'' if column.nullable else ' not null'}"
    name = min(len(column.name), max(8, room - len(kind) - 2))
    return cut(line(left(span(column.name, role), max(name, 18)), "  ", Span(kind, "dim")), room)


def plots_panel(
    table: StreamTableStatus, focus: Focus | None, moment: Moment, room: int, height: int
) -> tuple[Line, ...]:
    """The same three plots as at the side of the overview, larger."""
    history = focus.history if focus else ()
    samples = focus.staleness if focus else ()
    rows = max(3, min(12, (height - 2) // 3 - 3))
    drawn = (
        side.duration_plot(history, moment.now, room, rows),
        side.rows_plot(history, moment.now, room, rows),
        side.staleness_plot(samples, table.interval_s, moment.now, room, rows),
    )
    lines: list[Line] = []
    for plot in drawn:
        if len(lines) + len(plot) + (1 if lines else 0) > height:
            break
        lines += [*([EMPTY] if lines else []), *plot]
    return tuple(lines)
