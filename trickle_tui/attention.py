"""What wants something from a person, most severe first, each with the action that helps. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.records import (
    Overview,
    RefreshMode,
    SchedulerPlace,
    SparkPhase,
    State,
    StreamTableStatus,
)
from trickle_tui import format, state


@dataclass(frozen=True)
class Need:
    """One line: who, what is the matter, and the way out."""

    #: empty for the workspace itself
    table: str
    glyph: str
    token: str
    text: str
    hint: str = ""
    #: the id of the action that helps, if one does
    action: str = ""
    action_label: str = ""


@dataclass(frozen=True)
class Attention:
    needs: tuple[Need, ...]
    #: worth knowing, but nothing is wrong
    hints: tuple[str, ...]


def attention(overview: Overview, now: datetime) -> Attention:
    since_s = max(0.0, (now - overview.at).total_seconds())
    wanting = sorted(
        (table for table in overview.tables if table.state in state.WANTS_ATTENTION or table.error),
        key=lambda table: state.SEVERITY[table.state],
    )
    needs = (*_of_workspace(overview), *(_of_table(table, since_s) for table in wanting))
    hints = tuple(
        f"{table.name} is refreshed fully: {table.reason.text}"
        for table in overview.tables
        if table.refresh_mode is RefreshMode.AUTO
        and table.effective_mode.lower() == "full"
        and table.reason is not None
        and table not in wanting
    )
    return Attention(needs, hints)


def _of_workspace(overview: Overview) -> Sequence[Need]:
    needs: list[Need] = []
    if overview.spark.phase is SparkPhase.FAILED:
        needs.append(Need("", "✖", "failed", _first_line(overview.spark.detail) or "Spark did not start", "", "", ""))
    if overview.spark.phase is SparkPhase.LOST:
        needs.append(Need("", "✖", "failed", overview.spark.detail, "the next refresh starts it again", "", ""))
    if overview.tables and overview.scheduler.place is SchedulerPlace.NOBODY:
        needs.append(
            Need("", "▲", "stale", "nobody refreshes: no scheduler runs", "`trickle run` or open without --read-only")
        )
    return needs


def _of_table(table: StreamTableStatus, since_s: float) -> Need:
    text, hint, action, label = _matter(table, since_s)
    return Need(table.name, state.glyph(table.state), state.token(table.state), text, hint, action, label)


def _matter(table: StreamTableStatus, since_s: float) -> tuple[str, str, str, str]:
    """What is the matter, what to know about it, which action helps and what to call it."""
    error = _first_line(table.error) or (_first_line(table.last.error) if table.last else "")
    hint = _first_line(table.error_hint)
    match table.state:
        case State.FAILED:
            return error or "its last refresh failed", hint, "refresh", "try again"
        case State.SUSPENDED:
            return error or "failed too often", hint, "pause", "resume"
        case State.TAMPERED:
            return error or "somebody else changed its rows", hint, "refresh_full", "recompute"
        case State.FUSED:
            return error or _reason(table) or "the change was too large", hint, "open", "look"
        case State.DIVERGED:
            return error or "rows are missing by choice", hint, "refresh_full", "recompute"
        case State.STALE | State.LATE:
            return error or _why_stale(table, since_s), hint, "refresh", "refresh now"
        case _:
            return error, hint, "open", "look"


def _why_stale(table: StreamTableStatus, since_s: float) -> str:
    schedule = format.interval(table.interval_s)
    if table.staleness_s is None:
        text = f"never refreshed, schedule {schedule}"
    else:
        text = f"{format.age(table.staleness_s + since_s)} old, schedule {schedule}"
    # how old it is stands in the list; why it is so is the news
    if table.last is not None and table.last.duration_ms / 1000 > table.interval_s > 0:
        text += f"; a refresh takes {format.took(table.last.duration_ms)}"
    if table.effective_mode.lower() == "full" and table.refresh_mode is not RefreshMode.FULL and table.reason:
        return f"full: {table.reason.text}"
    return text


def _reason(table: StreamTableStatus) -> str:
    return table.reason.text if table.reason is not None else ""


def _first_line(text: str | None) -> str:
    return text.strip().splitlines()[0] if text and text.strip() else ""
