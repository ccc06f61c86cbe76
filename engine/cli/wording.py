"""How the command line puts numbers, times and refreshes into words."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.durations import format_took
from engine.records import Outcome, RefreshRecord, State

STATE_COLOURS = {
    State.FAILED: "red",
    State.SUSPENDED: "red",
    State.TAMPERED: "red",
    State.FUSED: "yellow",
    State.DIVERGED: "yellow",
    State.STALE: "yellow",
    State.LATE: "yellow",
    State.UNPOPULATED: "yellow",
    State.RUNNING: "blue",
    State.FRESH: "green",
    State.PAUSED: "dim",
    State.FROZEN: "dim",
}

OUTCOME_COLOURS = {
    Outcome.FAILED: "red",
    Outcome.SKIPPED: "yellow",
    Outcome.FULL: "yellow",
    Outcome.REINITIALIZE: "yellow",
    Outcome.NO_DATA: "dim",
    Outcome.DIFFERENTIAL: "green",
}


def age_text(seconds: float | None) -> str:
    """In whole seconds, at most two units."""
    if seconds is None:
        return "-"
    rest = round(max(0.0, seconds))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


def clock_text(at: datetime | None) -> str:
    """The reader's own time, with the day when it is another one."""
    if at is None:
        return "-"
    local, now = at.astimezone(), datetime.now(UTC).astimezone()
    return local.strftime("%H:%M:%S" if local.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def rows_text(record: RefreshRecord) -> str:
    """`+12 ~3 −4`: inserted, updated, deleted."""
    parts = [
        f"{sign}{count:,}"
        for sign, count in (
            ("+", record.rows_inserted),
            ("~", record.rows_updated),
            ("−", record.rows_deleted),
        )
        if count
    ]
    return " ".join(parts) or "-"


def refresh_line(record: RefreshRecord) -> str:
    if record.outcome is Outcome.FAILED:
        return f"{record.st} #{record.number} failed after {format_took(record.duration_ms)}: {record.error}"
    rows = rows_text(record)
    changed = f", {rows}" if rows != "-" else ""
    what = record.outcome.value.lower().replace("_", " ")
    why = f" ({record.reason.text})" if record.outcome in (Outcome.FULL, Outcome.REINITIALIZE, Outcome.SKIPPED) else ""
    return f"{record.st} #{record.number} {what} in {format_took(record.duration_ms)}{changed}{why}"
