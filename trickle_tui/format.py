"""Numbers as people read them: units always, two units of time at most, a true minus."""

from __future__ import annotations

from datetime import datetime

#: what stands where there is no value
MISSING = "—"
MINUS = "−"

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S


def age(seconds: float | None) -> str:
    """How long ago or until: '4s', '3m12s', '46m', '2h05m', '17h', '3d04h'.

    The second unit is dropped where it would no longer change a decision.
    """
    if seconds is None:
        return MISSING
    whole = max(0, int(seconds))
    for unit_s, unit, smaller_s, smaller in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "m"),
        (_MINUTE_S, "m", 1, "s"),
    ):
        if whole >= unit_s:
            many, rest = divmod(whole, unit_s)
            return f"{many}{unit}" if many >= 10 else f"{many}{unit}{rest // smaller_s:02d}{smaller}"
    return f"{whole}s"


def interval(seconds: float) -> str:
    """A schedule: as `age`, without a second unit that is zero and without losing one that is not."""
    if 0 < seconds < 1:
        return f"{round(seconds * 1000)}ms"
    whole = round(seconds)
    for unit_s, unit, smaller_s, smaller in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "m"),
        (_MINUTE_S, "m", 1, "s"),
    ):
        # a day is what people call 24h
        if whole >= unit_s and not (unit == "d" and whole < 2 * _DAY_S):
            many, rest = divmod(whole, unit_s)
            return f"{many}{unit}" if rest < smaller_s else f"{many}{unit}{rest // smaller_s:02d}{smaller}"
    return f"{whole}s"


def took(milliseconds: float | None) -> str:
    """How long something worked: '3ms', '0.21s', '38.4s', '3m12s'."""
    if milliseconds is None:
        return MISSING
    if milliseconds < 0.95:
        return "<1ms" if milliseconds > 0 else "0ms"
    if milliseconds < 99.5:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    if seconds < 9.995:
        return f"{seconds:.2f}s"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    return age(seconds)


def count(number: int | None) -> str:
    """'412,006'."""
    return MISSING if number is None else f"{number:,}".replace("-", MINUS)


def short_count(number: float) -> str:
    """For the labels of an axis: '940', '2k', '1.5M'."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def changes(inserted: int, deleted: int, updated: int = 0) -> str:
    """'+1,204 −38'; rows that were updated are named only where there are some."""
    text = f"+{inserted:,} {MINUS}{deleted:,}"
    return f"{text} ~{updated:,}" if updated else text


def size(number_of_bytes: float | None) -> str:
    """'38 MB'."""
    if number_of_bytes is None:
        return MISSING
    value = float(number_of_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def percent(share: float | None) -> str:
    """'12 %'."""
    return MISSING if share is None else f"{share * 100:.0f} %"


def clock(at: datetime | None) -> str:
    """The time of day where the reader sits."""
    return MISSING if at is None else at.astimezone().strftime("%H:%M:%S")


def moment(at: datetime | None, now: datetime) -> str:
    """The time of day today, the date before that."""
    if at is None:
        return MISSING
    here, today = at.astimezone(), now.astimezone()
    return here.strftime("%H:%M:%S" if here.date() == today.date() else "%-d %b %H:%M")


def short_path(path: str, room: int) -> str:
    """A path cut from its middle."""
    if len(path) <= room:
        return path
    keep = max(2, room - 1)
    head = keep // 3
    return f"{path[:head]}…{path[len(path) - (keep - head) :]}"


def path_within(path: str, folder: str) -> str:
    """Without the folder that everything here lies in."""
    return path.removeprefix(folder.rstrip("/") + "/")


def plural(number: int, thing: str, things: str | None = None) -> str:
    """'1 table', '3 tables'."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
