"""The two lines on top: facts, then the numbered views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from engine.records import (
    Overview,
    SchedulerPlace,
    SchedulerStatus,
    SparkPhase,
    SparkStatus,
    State,
    StreamTableStatus,
)
from trickle_tui import format, state
from trickle_tui.paint import EMPTY, Line, Part, Span, line, span, spread, width

#: the numbered views that exist; number, name
VIEWS = (("1", "Overview"),)

_NARROW = 100
#: these leave first: running ones also show as jobs of Spark, frozen ones never change
_LEAST_NEWS = frozenset({State.RUNNING, State.FROZEN})
#: from this many of its intervals on a staleness is lifted, whatever state its table is in
_TOO_OLD = 2.0


def facts(overview: Overview, now: datetime, room: int, turn: int = 0) -> Line:
    """Who refreshes, whether Spark is there, how many tables are in which state."""
    narrow = room < _NARROW
    gap = "   " if narrow else "    "
    start = line(
        Span("≋ trickle", "accent bold"),
        " " if narrow else "  ",
        Span(overview.workspace, "text bold"),
        gap,
        _scheduler(overview.scheduler, narrow),
        gap if not narrow else "  ",
        _spark(overview.spark, narrow, turn),
    )
    worst = _worst(overview, now)
    every = tuple(overview.tables)
    newsworthy = tuple(table for table in every if table.state not in _LEAST_NEWS)
    space = room - 4 - width(start) - width(worst)
    # some states go before the words do, and words before the facts
    choices = ((every, False), (newsworthy, False), (every, True))
    counts = EMPTY
    for tables, short in choices[2:] if narrow else choices:
        counts = _counts(tables, short)
        if width(counts) <= space:
            break
    else:
        counts = _counts(newsworthy, True)
    end = line(counts, worst)
    return line(" ", spread(start, end, room - 2), " ")


def _scheduler(scheduler: SchedulerStatus, narrow: bool) -> Line:
    label = Span("sched " if narrow else "scheduler ", "dim")
    match scheduler.place:
        case SchedulerPlace.HERE:
            return line(label, Span("●", "fresh"), EMPTY if narrow else line(" ", "here"))
        case SchedulerPlace.ELSEWHERE:
            held = f"held by {scheduler.holder_pid}" if scheduler.holder_pid else "held"
            return line(label, Span("○", "paused"), " ", "held" if narrow else held)
        case SchedulerPlace.PAUSED:
            return line(label, Span("○ paused", "paused"))
        case SchedulerPlace.NOBODY:
            return line(label, Span("○ off", "paused"))


def _spark(spark: SparkStatus, narrow: bool, turn: int) -> Line:
    label = Span("spark ", "dim")
    match spark.phase:
        case SparkPhase.READY:
            jobs = f" · {format.plural(spark.running_jobs, 'job')}" if spark.running_jobs else ""
            return line(label, Span("●", "fresh"), EMPTY if narrow else line(" ready", Span(jobs, "dim")))
        case SparkPhase.FAILED:
            return line(label, Span("✖ failed", "failed bold"))
        case SparkPhase.LOST:
            return line(label, Span("✖ lost", "failed bold"))
        case SparkPhase.STOPPED | SparkPhase.NOT_STARTED:
            return line(label, Span("○ ", "paused"), Span(spark.phase.value, "dim"))
        case _:
            return line(label, Span(f"{state.glyph(State.RUNNING, turn)} {spark.phase.value}", "running"))


def is_spark_on_its_way(spark: SparkStatus) -> bool:
    return spark.phase in (SparkPhase.JAVA, SparkPhase.JARS, SparkPhase.STARTING, SparkPhase.WARMING)


def _counts(tables: Sequence[StreamTableStatus], narrow: bool) -> Line:
    counted = Counter(table.state for table in tables)
    parts: list[Line] = []
    seen: dict[str, int] = {}
    for each in state.SEVERITY:
        number = counted[each]
        if not number:
            continue
        key = state.glyph(each)
        if narrow and key in seen:
            # one sign, one number: stale and late share theirs
            continue
        seen[key] = number
        if narrow:
            number = sum(many for other, many in counted.items() if state.glyph(other) == key)
        calm = each is State.FRESH
        parts.append(
            line(
                Span(key, state.token(each)),
                " ",
                Span(str(number), "dim" if calm else "text bold"),
                EMPTY if narrow else span(f" {each.value}", "dim"),
                "   " if narrow else "  ",
            )
        )
    return line(*parts)


def _worst(overview: Overview, now: datetime) -> Line:
    """The oldest of those that are too old; where none is, the one nearest to it."""
    since = max(0.0, (now - overview.at).total_seconds())
    over = [
        table.staleness_s
        for table in overview.tables
        if table.staleness_s is not None and table.state in (State.STALE, State.LATE)
    ]
    if over:
        return line(Span("worst ", "dim"), Span(format.age(max(over) + since), "stale bold"))
    within = [
        (table.staleness_s / table.interval_s, table.staleness_s)
        for table in overview.tables
        if table.staleness_s is not None and table.state not in state.HELD and table.interval_s > 0
    ]
    if not within:
        return EMPTY
    ratio, staleness_s = max(within)
    return line(
        Span("worst ", "dim"), Span(format.age(staleness_s + since), "stale bold" if ratio > _TOO_OLD else "dim")
    )


def views(active: str, end: Part, room: int, shown: Sequence[tuple[str, str]] = VIEWS) -> Line:
    """The numbered views; where it is narrow only the active one is named."""
    named = room >= _NARROW
    tabs: list[Line] = []
    for number, name in shown:
        if number == active:
            tabs.append(span(f" {number} {name} ", "bg bold on accent"))
        else:
            tabs.append(span(f" {number} {name} " if named else f" {number} ", "dim"))
    return line(" ", spread(line(*tabs), line(end), room - 2), " ")


def view_at(x: int, active: str, room: int, shown: Sequence[tuple[str, str]] = VIEWS) -> str | None:
    """Which view stands at a column: what a click means."""
    start = 1
    for number, name in shown:
        wide = number == active or room >= _NARROW
        end = start + (len(f" {number} {name} ") if wide else len(f" {number} "))
        if start <= x < end:
            return number
        start = end
    return None


def clock(now: datetime) -> Line:
    return span(format.clock(now), "dim")


def trail(*steps: str) -> Line:
    """Where one is: `Overview › customer_ltv`."""
    *before, last = steps
    return line(Span("".join(f"{step} › " for step in before), "dim"), Span(last, "text bold"))
