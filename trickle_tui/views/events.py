"""What happened, newest first, and what needs attention: the two panels below the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.event_records import Event, EventKind, Severity
from trickle_tui import format, state
from trickle_tui.attention import Attention
from trickle_tui.paint import EMPTY, Line, Span, cut, left, line, span, spread, width

#: events of people and faults are lifted, the daily refresh is not
_USUAL = frozenset({EventKind.REFRESH_COMPLETED, EventKind.REFRESH_SKIPPED, EventKind.REFRESH_STARTED})


def newest_first(events: Sequence[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: event.number, reverse=True))


def event_lines(events: Sequence[Event], room: int, height: int) -> tuple[Line, ...]:
    shown = newest_first(events)[:height]
    subject = min(24, max([0, *(len(event.subject) for event in shown)]))
    return tuple(_event(event, room, subject) for event in shown)


def _event(event: Event, room: int, subject: int) -> Line:
    glyph, token = _sign(event)
    calm = event.severity is Severity.OK and event.kind in _USUAL
    text = " ".join(event.text.split())
    start = line(
        Span(format.clock(event.at), "faint"),
        " ",
        Span(glyph, token),
        " ",
        left(span(event.subject or "workspace", "dim" if calm or not event.subject else "text"), subject or 9),
        " ",
    )
    return cut(line(start, Span(text, "dim" if calm else "text")), room)


def _sign(event: Event) -> tuple[str, str]:
    if event.kind is EventKind.REFRESH_STARTED:
        return "◐", "running"
    return state.severity_glyph(event.severity)


def last_event(events: Sequence[Event], room: int) -> Line:
    """One line for small screens."""
    key = line(Span("E", "accent bold"), Span(" all events", "dim"))
    if not events:
        return spread(span("no events yet", "dim"), key, room)
    event = newest_first(events)[0]
    return spread(cut(_event(event, room, len(event.subject)), room - width(key) - 1), key, room)


def attention_lines(attention: Attention, room: int, height: int, key_of: Callable[[str], str]) -> tuple[Line, ...]:
    """Needs first, then how many hints there are; where room ends it says how many are left out."""
    needs = attention.needs
    if not needs and not attention.hints:
        return (span("nothing; all within their schedules", "dim"),)
    lines: list[Line] = []
    name = max([0, *(len(need.table or "workspace") for need in needs)])
    label = max([0, *(len(need.action_label) + 2 for need in needs)])
    space = height if len(needs) <= height else height - 1
    for need in needs[:space]:
        key = key_of(need.action) if need.action else ""
        remedy = line(Span(key, "accent bold"), Span(f" {need.action_label}", "dim")) if key else EMPTY
        start = line(
            Span(need.glyph, need.token),
            " ",
            left(span(need.table or "workspace", "text bold"), name),
            "  ",
            need.text,
        )
        if need.hint and width(start) + len(need.hint) + 2 + label + 1 <= room:
            start = line(start, Span(f"  {need.hint}", "dim"))
        lines.append(spread(start, left(remedy, label), room))
    if len(needs) > space:
        lines.append(span(f"and {len(needs) - space} more; the list has them on top", "dim"))
    if attention.hints and len(lines) + 1 <= height:
        if lines and len(lines) + 2 <= height:
            lines.append(EMPTY)
        lines.append(cut(_hints(attention.hints), room))
    return tuple(lines)


def _hints(hints: Sequence[str]) -> Line:
    more = f" (and {len(hints) - 1} more)" if len(hints) > 1 else ""
    return line(Span(f"hint: {hints[0]}", "dim"), Span(more, "faint"))
