"""The selected stream table: its plots over time and the facts around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from statistics import median, quantiles

from engine.records import RefreshRecord, State, StreamTableStatus
from trickle_tui import format, plots, state
from trickle_tui.paint import EMPTY, Line, Span, cut, line, span, spread, wrap
from trickle_tui.snapshot import Focus, Sample
from trickle_tui.views import modes
from trickle_tui.views.tables import Moment

_LABELS = 5
#: windows a time axis may show, in seconds
_WINDOWS_S = (120, 300, 600, 1800, 3600)


def summary(table: StreamTableStatus) -> Line:
    """State, mode, schedule."""
    mode = "full" if modes.is_lifted(table) else modes.short_mode(table)
    return line(
        Span(state.glyph(table.state), state.token(table.state)),
        " ",
        Span(table.state.value, state.word_role(table.state)),
        "  ",
        mode,
        Span(f" every {format.interval(table.interval_s)}", "dim"),
        Span(f" · {table.owner}", "dim") if table.owner else EMPTY,
    )


def panel(table: StreamTableStatus, focus: Focus | None, moment: Moment, room: int, height: int) -> tuple[Line, ...]:
    """As much as fits: the facts always, then as many plots as there is room for."""
    facts = (EMPTY, *fact_lines(table, moment, room))
    top = (summary(table), *_comment(table, focus, room))
    free = height - len(top) - len(facts)
    history = focus.history if focus else ()
    samples = focus.staleness if focus else ()
    drawn: tuple[Callable[[int], tuple[Line, ...]], ...] = (
        lambda rows: duration_plot(history, moment.now, room, rows),
        lambda rows: rows_plot(history, moment.now, room, rows),
        lambda rows: staleness_plot(samples, table.interval_s, moment.now, room, rows),
    )
    # an empty row, a title, two rows of axis; a plot below four rows says nothing
    many = min(len(drawn), max(0, free // 8))
    rows = min(14, (free - 4 * many) // many) if many else 0
    plotted = tuple(each for plot in drawn[:many] for each in (EMPTY, *plot(rows)))
    return (*top, *plotted, *facts)[:height]


def _comment(table: StreamTableStatus, focus: Focus | None, room: int) -> tuple[Line, ...]:
    if table.error:
        return wrap(table.error, room, state.token(table.state))[:3]
    if modes.is_lifted(table) and table.reason:
        return wrap(f"full: {table.reason.text}", room, "text")[:3]
    if focus and focus.table and focus.table.comment:
        return (cut(span(focus.table.comment, "dim"), room),)
    return ()


def fact_lines(table: StreamTableStatus, moment: Moment, room: int) -> tuple[Line, ...]:
    """What happens next, what happened last, what it reads and who reads it."""
    facts: list[tuple[str, tuple[Line, ...]]] = [("next", (next_line(table, moment),)), ("last", (last_line(table),))]
    frontier = table.frontier or {}
    reads = tuple(
        line(name, Span(f"@{frontier[name].version}" if name in frontier else "", "faint")) for name in table.sources
    )
    facts.append(("reads", reads or (span("nothing", "dim"),)))
    facts.append(("feeds", _names(table.dependents, room - 9)))
    facts.append(("verified", (verified_line(table, moment),)))
    lines: list[Line] = []
    for label, values in facts:
        for index, value in enumerate(values):
            lines.append(cut(line(Span(f"{label if index == 0 else '':<9}", "dim"), value), room))
    return tuple(lines)


def next_line(table: StreamTableStatus, moment: Moment) -> Line:
    if table.running is not None:
        return span(f"runs: {table.running.phase}", "running")
    if table.state is State.PAUSED:
        return line("held ", Span("until resumed", "dim"))
    if table.next_due_at is None:
        return span(format.MISSING, "dim")
    until_s = (table.next_due_at - moment.now).total_seconds()
    return line("now") if until_s < 1 else line("in ", format.age(until_s))


def last_line(table: StreamTableStatus) -> Line:
    record = table.last
    if record is None:
        return span(format.MISSING, "dim")
    if modes.did_work(record):
        what = line(format.changes(record.rows_inserted, record.rows_deleted, record.rows_updated))
    else:
        what = span(modes.outcome(record), modes.outcome_role(record))
    return line(what, Span(f"  #{record.number}", "faint"))


def _names(names: Sequence[str], room: int) -> tuple[Line, ...]:
    if not names:
        return (span("nobody", "dim"),)
    shown = line(names[0], Span(f" +{len(names) - 1}", "dim") if len(names) > 1 else EMPTY)
    return (cut(shown, room),)


def verified_line(table: StreamTableStatus, moment: Moment) -> Line:
    if table.verified_at is None or table.verified_equal is None:
        return span("not yet", "dim")
    at = Span(f" at {format.moment(table.verified_at, moment.now)}", "dim")
    return line("equal", at) if table.verified_equal else line(Span("differs", "failed bold"), at)


def window_s(ages_s: Sequence[float]) -> int:
    """The shortest window that shows it all, an hour at most."""
    oldest = max(ages_s, default=0.0)
    return next((window for window in _WINDOWS_S if oldest <= window), _WINDOWS_S[-1])


def times(window: float) -> tuple[str, ...]:
    return (f"-{format.interval(window)}", f"-{format.interval(window / 2)}", "now")


def duration_plot(history: Sequence[RefreshRecord], now: datetime, room: int, rows: int) -> tuple[Line, ...]:
    """How long refreshes took."""
    points = [
        ((now - record.finished_at).total_seconds(), record.duration_ms) for record in history if modes.did_work(record)
    ]
    plot_room = room - _LABELS - 1
    window = window_s([ago for ago, _ in points])
    inside = [value for ago, value in points if ago < window]
    title = span("duration")
    if not inside:
        return _nothing(title, "no refresh with work yet", room, rows)
    axis = plots.Axis.over(inside)
    middle = median(inside)
    p95 = quantiles(inside, n=20)[-1] if len(inside) > 1 else inside[0]
    values = plots.bucketed(points, window, plot_room * 2)
    drawn = plots.braille(plots.held(values), plot_room, rows, axis.top, _unusual_over(values))
    numbers = span(f"p50 {format.took(middle)}  p95 {format.took(p95)}", "dim")
    labels = (_axis_time(axis.top), _axis_time(axis.top / 2), "0s")
    return (spread(title, numbers, room), *plots.framed(drawn, labels, times(window), _LABELS))


def _axis_time(milliseconds: float) -> str:
    return f"{milliseconds:.0f}ms" if milliseconds < 100 else f"{milliseconds / 1000:.3g}s"


def rows_plot(history: Sequence[RefreshRecord], now: datetime, room: int, rows: int) -> tuple[Line, ...]:
    """How many rows refreshes changed."""
    points = [
        ((now - record.finished_at).total_seconds(), float(modes.rows_changed(record)))
        for record in history
        if modes.is_usual_work(record)
    ]
    plot_room = room - _LABELS - 1
    window = window_s([ago for ago, _ in points])
    inside = [value for ago, value in points if ago < window]
    title = span("rows changed")
    if not inside:
        return _nothing(title, "none yet", room, rows)
    axis = plots.Axis.over(inside, least=4)
    middle = median(inside)
    values = plots.bucketed(points, window, plot_room)
    drawn = plots.bars(values, plot_room, rows, axis.top, _unusual_over(values))
    labels = (format.short_count(axis.top), format.short_count(axis.top / 2), "0")
    numbers = span(f"median {format.count(round(middle))}", "dim")
    return (spread(title, numbers, room), *plots.framed(drawn, labels, times(window), _LABELS))


def _unusual_over(values: Sequence[float | None]) -> float:
    """Each step of time shows its largest value, so it is compared with the other steps' largest."""
    return plots.UNUSUAL * median([value for value in values if value is not None])


def staleness_plot(samples: Sequence[Sample], limit_s: float, now: datetime, room: int, rows: int) -> tuple[Line, ...]:
    """How old it was while this dashboard watched, against what its schedule allows."""
    points = [((now - sample.at).total_seconds(), sample.staleness_s) for sample in samples]
    plot_room = room - _LABELS - 1
    window = min(600, window_s([ago for ago, _ in points]))
    inside = [value for ago, value in points if ago < window]
    title = span("staleness")
    if not inside:
        return _nothing(title, "not seen yet", room, rows)
    # the threshold stands two thirds up, on the edge of a cell
    top = limit_s * 1.5 if max(inside) <= limit_s * 1.5 else plots.Axis.over(inside).top
    drawn = plots.braille(plots.bucketed(points, window, plot_room * 2), plot_room, rows, top or 1.0)
    if 0 < limit_s < top:
        drawn = plots.threshold(drawn, limit_s, top)
    over = max(inside) > limit_s
    numbers = line(
        Span(f"worst {format.age(max(inside))}", "stale" if over else "dim"),
        Span(f" of {format.interval(limit_s)}", "dim"),
    )
    labels = (format.interval(top), "0s")
    return (spread(title, numbers, room), *plots.framed(drawn, labels, times(window), _LABELS))


def _nothing(title: Line, why: str, room: int, rows: int) -> tuple[Line, ...]:
    """An empty plot keeps its place, so that nothing jumps when the first value comes."""
    return (spread(title, span(why, "faint"), room), *([EMPTY] * (rows + 2)))
