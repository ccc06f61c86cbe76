"""Durations as people write them: '30s', '1h30m', '500ms', '2d'."""

from __future__ import annotations

import math

from engine.errors import InvalidArgument

_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001))
_SECONDS = dict(_UNITS)
_ORDER = [unit for unit, _ in _UNITS]
_DIGITS = "0123456789"


def parse_duration(text: str) -> float:
    """The seconds in `text`; units from large to small, each at most once, the last may have a fraction."""
    rest = text.strip().lower()
    if not rest:
        raise _bad(text)
    seconds = 0.0
    smallest = -1
    while rest:
        number, rest = _split(rest, _DIGITS + ".")
        unit, rest = _split(rest.lstrip(), "abcdefghijklmnopqrstuvwxyz")
        rest = rest.lstrip()
        if unit not in _SECONDS or _ORDER.index(unit) <= smallest:
            raise _bad(text)
        whole, dot, fraction = number.partition(".")
        if not whole or (dot and (not fraction or "." in fraction or rest)):
            raise _bad(text)
        seconds += float(number) * _SECONDS[unit]
        smallest = _ORDER.index(unit)
    return round(seconds, 6)


def format_duration(seconds: float) -> str:
    """'500ms', '12.3s', '3m12s', '1h30m': exact to the second, below a minute to a tenth of one."""
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{seconds} is no duration")
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if round(seconds * 1000) < 1000 else "1s"
    if round(seconds, 1) < 60:
        return f"{round(seconds, 1):g}s"
    rest = round(seconds)
    parts = []
    for unit, size in _UNITS[:4]:
        count, rest = divmod(rest, int(size))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_took(duration_ms: float) -> str:
    """How long something worked, with as many digits as one compares: '3.1ms', '0.21s', '38.4s', '3m12s'."""
    if duration_ms < 10:
        return f"{duration_ms:.1f}ms"
    return f"{duration_ms / 1000:.2f}s" if duration_ms < 10_000 else format_duration(duration_ms / 1000)


def _split(text: str, characters: str) -> tuple[str, str]:
    length = next((at for at, each in enumerate(text) if each not in characters), len(text))
    return text[:length], text[length:]


def _bad(text: str) -> InvalidArgument:
    return InvalidArgument(
        f"{text!r} is not a duration",
        detail="a number and a unit (d, h, m, s, ms), largest unit first",
        hint="write '30s', '1h30m' or '500ms'",
    )
