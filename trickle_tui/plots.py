"""Small plots drawn with characters: sparkline, meter, braille line, bars. Pure: numbers in, lines out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from trickle_tui.paint import EMPTY, Line, Span, line, right, span, width

_EIGHTHS = " ▁▂▃▄▅▆▇█"
#: a sparkline keeps what is usual low: its top is at least this many times the median
_SPARK_HEADROOM = 2.8
#: beyond this many times the median a point is out of the ordinary
UNUSUAL = 1.8
#: the dot of each (row, column) of a braille cell
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def sparkline(values: Sequence[float], room: int = 20) -> Line:
    """The last `room` values, newest at the right; what is unusual is lifted."""
    shown = list(values)[-room:]
    if not shown:
        return span(" " * room)
    middle = median(shown)
    top = max(max(shown), _SPARK_HEADROOM * middle) or 1.0
    parts = [Span(" " * (room - len(shown)))]
    for value in shown:
        level = max(1, round(value / top * 8)) if value >= 0 else 1
        parts.append(Span(_EIGHTHS[min(8, level)], "stale" if is_unusual(value, middle) else "spark"))
    return _joined(parts)


def is_unusual(value: float, middle: float) -> bool:
    return middle > 0 and value > UNUSUAL * middle


def meter(share: float, room: int, role: str = "data") -> Line:
    """`━━╸──`: a part of a known whole. Thick and thin, so that it reads without colour."""
    halves = round(min(1.0, max(0.0, share)) * room * 2)
    if share > 0 and halves == 0:
        halves = 1
    full, half = divmod(halves, 2)
    thick = "━" * full + "╸" * half
    return line(Span(thick, role), Span("─" * (room - len(thick)), "line2"))


@dataclass(frozen=True)
class Axis:
    """From zero to a round number, with the labels at its middle and top."""

    top: float

    @staticmethod
    def over(values: Sequence[float], least: float = 0.0) -> Axis:
        largest = max([*values, least, 0.0])
        if largest <= 0:
            return Axis(1.0)
        step = 10.0 ** _magnitude(largest)
        for factor in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10):
            if largest <= factor * step * 1.0001:
                return Axis(factor * step)
        return Axis(10 * step)


def _magnitude(number: float) -> int:
    power = 0
    while number >= 10:
        number, power = number / 10, power + 1
    while number < 1:
        number, power = number * 10, power - 1
    return power


def braille(
    values: Sequence[float | None], room: int, height: int, top: float, unusual_over: float | None = None
) -> tuple[Line, ...]:
    """A line over time, two values a cell, the last at the right edge. `None` leaves a gap."""
    shown = _at_the_right(values, room * 2)
    dots = height * 4
    cells = [[0] * room for _ in range(height)]
    hot = [False] * room
    before: int | None = None
    for x, value in enumerate(shown):
        if value is None:
            before = None
            continue
        y = min(dots - 1, max(0, round(value / top * (dots - 1)))) if top > 0 else 0
        # a jump is drawn as a rise, so that the eye can follow it
        low, high = (y, y) if before is None else (min(y, before + 1), max(y, before - 1))
        for dot in range(low, high + 1):
            row, sub = divmod(dots - 1 - dot, 4)
            cells[row][x // 2] |= _DOTS[sub][x % 2]
        if unusual_over is not None and value > unusual_over:
            hot[x // 2] = True
        before = y
    return tuple(
        _joined(
            [
                Span(chr(0x2800 + bits) if bits else " ", "stale" if hot[index] else "data")
                for index, bits in enumerate(row)
            ]
        )
        for row in cells
    )


def bars(
    values: Sequence[float | None], room: int, height: int, top: float, unusual_over: float | None = None
) -> tuple[Line, ...]:
    """Counts, one a cell, in eighths of a cell."""
    shown = _at_the_right(values, room)
    rows: list[list[Span]] = [[] for _ in range(height)]
    for value in shown:
        eighths = 0
        if value is not None and top > 0:
            eighths = min(height * 8, max(1 if value > 0 else 0, round(value / top * height * 8)))
        role = "stale" if value is not None and unusual_over is not None and value > unusual_over else "spark"
        for row in range(height):
            inside = min(8, max(0, eighths - (height - 1 - row) * 8))
            rows[row].append(Span(_EIGHTHS[inside], role))
    return tuple(_joined(row) for row in rows)


def _at_the_right(values: Sequence[float | None], room: int) -> list[float | None]:
    """The last `room` values; where there are fewer, a gap before them."""
    shown = list(values)[-room:]
    return [*[None] * (room - len(shown)), *shown]


def threshold(rows: Sequence[Line], value: float, top: float, role: str = "line2") -> tuple[Line, ...]:
    """A dashed line behind a plot, where nothing else is drawn."""
    height = len(rows)
    at = height - 1 - min(height - 1, max(0, int(value / top * height))) if top > 0 else 0
    return tuple(_behind(row, role) if index == at else row for index, row in enumerate(rows))


def _behind(row: Line, role: str) -> Line:
    return _joined([Span("╌", role) if sign == " " else Span(sign, own) for text, own in row for sign in text])


def framed(rows: Sequence[Line], labels: Sequence[str], times: Sequence[str], label_room: int) -> tuple[Line, ...]:
    """Axes around a plot: labels from top to bottom at the left, times below."""
    height = len(rows)
    places = {round(index * height / max(1, len(labels) - 1)): label for index, label in enumerate(labels)}
    drawn = [
        line(right(Span(places.get(index, ""), "dim"), label_room), Span("┤" if index in places else "│", "line2"), row)
        for index, row in enumerate(rows)
    ]
    room = width(rows[0]) if rows else 0
    drawn.append(line(right(Span(places.get(height, ""), "dim"), label_room), Span("└" + "─" * room, "line2")))
    drawn.append(line(" " * (label_room + 1), _spaced(times, room)))
    return tuple(drawn)


def _spaced(words: Sequence[str], room: int) -> Line:
    """The first at the left edge, the last at the right one, the others evenly between."""
    if not words:
        return EMPTY
    cells = [" "] * room
    for index, word in enumerate(words):
        free = room - len(word)
        start = max(0, min(free, round(index * room / max(1, len(words) - 1) - len(word) / 2)))
        cells[start : start + len(word)] = word
    return span("".join(cells[:room]), "dim")


def _joined(spans: Sequence[Span]) -> Line:
    """Neighbours of one role as one span."""
    merged: list[Span] = []
    for text, role in spans:
        if merged and merged[-1].role == role:
            merged[-1] = Span(merged[-1].text + text, role)
        elif text:
            merged.append(Span(text, role))
    return tuple(merged)


def bucketed(points: Sequence[tuple[float, float]], window_s: float, buckets: int) -> list[float | None]:
    """Points of (seconds ago, value) in equal steps of time, the largest of each step; newest last."""
    steps: list[float | None] = [None] * buckets
    for ago_s, value in points:
        if 0 <= ago_s < window_s:
            index = buckets - 1 - int(ago_s / window_s * buckets)
            known = steps[index]
            steps[index] = value if known is None else max(known, value)
    return steps


def held(values: Sequence[float | None]) -> list[float | None]:
    """Gaps after the first value take the value before them."""
    filled: list[float | None] = []
    last: float | None = None
    for value in values:
        last = value if value is not None else last
        filled.append(last)
    return filled
