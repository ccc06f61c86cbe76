"""How a stream table is, from what is written down of it: pure, without Spark or disk."""

from __future__ import annotations

from datetime import datetime, timedelta

from engine.catalog.records import Progress
from engine.errors import Tampered
from engine.records import (
    Outcome,
    Reason,
    RefreshMode,
    RefreshRecord,
    RunningRefresh,
    State,
    StreamTable,
    StreamTableStatus,
)

#: a refresh may take its time: stale is what is older than this many intervals …
PATIENCE = 2.0
#: … and this many seconds
GRACE_S = 2.0
RECENT = 20


def status_of(
    table: StreamTable,
    progress: Progress,
    records: tuple[RefreshRecord, ...],
    running: RunningRefresh | None,
    dependents: tuple[str, ...],
    now: datetime,
) -> StreamTableStatus:
    """`records` oldest first."""
    worked = tuple(each for each in records if each.outcome not in (Outcome.NO_DATA, Outcome.SKIPPED))
    staleness_s = None
    if progress.data_as_of_at is not None:
        staleness_s = max(0.0, (now - progress.data_as_of_at).total_seconds())
    return StreamTableStatus(
        name=table.name,
        state=_state(table, progress, running, staleness_s),
        refresh_mode=table.refresh_mode,
        effective_mode=_effective_mode(table, worked),
        reason=_reason(table, worked),
        schedule=table.schedule,
        interval_s=table.interval_s,
        staleness_s=staleness_s,
        next_due_at=_next_due(table, progress),
        last=worked[-1] if worked else (records[-1] if records else None),
        recent_ms=tuple(each.duration_ms for each in worked if each.outcome is not Outcome.FAILED)[-RECENT:],
        running=running,
        error=progress.error,
        error_hint=progress.error_hint,
        sources=table.sources,
        dependents=dependents,
        frontier=progress.frontier,
        owner=table.owner,
        verified_at=progress.verified_at,
        verified_equal=progress.verified_equal,
    )


def is_stale(staleness_s: float, interval_s: float) -> bool:
    return staleness_s > max(PATIENCE * interval_s, interval_s + GRACE_S)


def _state(table: StreamTable, progress: Progress, running: RunningRefresh | None, staleness_s: float | None) -> State:
    if progress.error_code == Tampered.__name__:
        return State.RUNNING if running else State.TAMPERED
    if running is not None:
        return State.RUNNING
    if progress.paused:
        return State.PAUSED
    if progress.suspended_at is not None:
        return State.SUSPENDED
    if progress.consecutive_errors:
        # what could not be followed and was not undone is in its source and not in its rows
        return State.LATE if table.refresh_mode is RefreshMode.IMMEDIATE else State.FAILED
    if not progress.populated or staleness_s is None:
        return State.UNPOPULATED
    return State.STALE if is_stale(staleness_s, table.interval_s) else State.FRESH


def _effective_mode(table: StreamTable, worked: tuple[RefreshRecord, ...]) -> str:
    """What its refreshes do at present. The first one is full in any case and says nothing."""
    if table.refresh_mode is RefreshMode.FULL or table.full_reason is not None:
        return "full"
    last = next((each for each in reversed(worked) if each.outcome is not Outcome.FAILED), None)
    if last is not None and last.outcome is not Outcome.DIFFERENTIAL and last.frontier_from is not None:
        return "full"
    return "immediate" if table.refresh_mode is RefreshMode.IMMEDIATE else "differential"


def _reason(table: StreamTable, worked: tuple[RefreshRecord, ...]) -> Reason | None:
    """Why it is refreshed fully; None when it is not."""
    if table.full_reason is not None:
        return table.full_reason
    return worked[-1].reason if worked and _effective_mode(table, worked) == "full" else None


def _next_due(table: StreamTable, progress: Progress) -> datetime | None:
    if progress.paused or progress.suspended_at is not None:
        return None
    if progress.next_due_at is not None:
        return progress.next_due_at
    if progress.data_as_of_at is None:
        return None
    return progress.data_as_of_at + timedelta(seconds=table.interval_s)
