"""Painted text as plain values: spans with a role, lines of spans.

A role names what a span *is* ("dim", "stale bold", "text on hot"); a theme says how that looks. So views
are pure functions that tests can read, and only widgets know about styles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Span(NamedTuple):
    text: str
    role: str = "text"


Line = tuple[Span, ...]
Part = str | Span | Line

EMPTY: Line = ()


def line(*parts: Part) -> Line:
    """Put spans, lines and plain text (in the role `text`) after one another."""
    spans: list[Span] = []
    for part in parts:
        match part:
            case Span():
                spans.append(part)
            case str():
                spans.append(Span(part))
            case _:
                spans.extend(part)
    return tuple(span for span in spans if span.text)


def span(text: str, role: str = "text") -> Line:
    """A line of one span."""
    return (Span(text, role),) if text else EMPTY


def plain(painted: Line) -> str:
    return "".join(span.text for span in painted)


def width(painted: Line) -> int:
    """In terminal cells."""
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in painted)


def cut(painted: Line, room: int) -> Line:
    """At most `room` cells; a `…` says that something is missing."""
    if width(painted) <= room:
        return painted
    if room <= 0:
        return EMPTY
    kept: list[Span] = []
    left = room - 1
    role = "dim"
    for text, role in painted:
        cells = cell_len(text)
        if cells > left:
            kept.append(Span(set_cell_size(text, left), role))
            break
        kept.append(Span(text, role))
        left -= cells
    return line(*kept, Span("…", role))


def left(painted: Part, room: int) -> Line:
    """Exactly `room` cells, text at the left."""
    fitted = cut(line(painted), room)
    return line(fitted, " " * (room - width(fitted)))


def right(painted: Part, room: int) -> Line:
    """Exactly `room` cells, text at the right."""
    fitted = cut(line(painted), room)
    return line(" " * (room - width(fitted)), fitted)


def spread(start: Part, end: Part, room: int) -> Line:
    """One part at each edge; where both do not fit, the start gives way."""
    last = cut(line(end), room)
    first = cut(line(start), max(0, room - width(last) - 1))
    return line(first, " " * max(0, room - width(first) - width(last)), last)


def columns(parts: Iterable[Line], gap: int = 1) -> Line:
    """Cells of a table side by side."""
    between = Span(" " * gap)
    spans: list[Span] = []
    for index, part in enumerate(parts):
        if index:
            spans.append(between)
        spans.extend(part)
    return tuple(spans)


def repaint(painted: Line, role: str) -> Line:
    """The same text in another role."""
    return tuple(Span(text, role) for text, _ in painted)


def wrap(text: str, room: int, role: str = "text", indent: int = 0) -> tuple[Line, ...]:
    """Plain words in as many lines as they need; words longer than a line are cut into pieces."""
    lines: list[Line] = []
    current = ""
    for word in text.split():
        while cell_len(word) > max(1, room - (indent if lines else 0)):
            space = max(1, room - (indent if lines or current else 0))
            if current:
                lines.append(span(current, role))
                current = ""
                continue
            lines.append(span(" " * (indent if lines else 0) + word[:space], role))
            word = word[space:]
        start = " " * indent if lines and not current else ""
        joined = f"{current} {word}" if current else f"{start}{word}"
        if cell_len(joined) > room and current:
            lines.append(span(current, role))
            current = " " * indent + word
        else:
            current = joined
    if current:
        lines.append(span(current, role))
    return tuple(lines)


def measured(text: str, role: str = "text", unit_role: str = "dim") -> Line:
    """'0.21s' with its unit set back; a value of two units ('3m12s') is one word and stays whole."""
    end = len(text)
    while end and (text[end - 1].isalpha() or text[end - 1] in "% "):
        end -= 1
    number, unit = text[:end], text[end:]
    if not number or any(letter.isalpha() for letter in number):
        return span(text, role)
    return line(Span(number, role), Span(unit, unit_role))
