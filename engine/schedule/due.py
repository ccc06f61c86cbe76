"""When a stream table is due, and in which order those that are due go: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.catalog.records import Progress
from engine.records import RefreshMode, StreamTable

#: a failing stream table is tried again after its interval, doubled with each failure up to this
MAX_BACK_OFF_S = 300.0


def is_held(progress: Progress | None) -> bool:
    """Is it left alone, until somebody says go on?"""
    return progress is not None and (progress.paused or progress.suspended_at is not None)


def follows_at_once(table: StreamTable, progress: Progress) -> bool:
    """Is it due as soon as a source moves? After a failure it waits its turn like everybody."""
    return table.refresh_mode is RefreshMode.IMMEDIATE and not progress.consecutive_errors


def wait_s(table: StreamTable, progress: Progress, chance: float = 0.5) -> float:
    """Seconds from the beginning of one refresh to that of the next.

    After failures a quarter more or less, by chance: what failed at once shall not come back at once.
    """
    if not progress.consecutive_errors:
        return table.interval_s
    doublings = min(progress.consecutive_errors, 10)
    backed_off_s = min(max(table.interval_s, 1.0) * (1 << doublings), max(MAX_BACK_OFF_S, table.interval_s))
    return backed_off_s * (0.75 + chance / 2)


@dataclass(frozen=True)
class Candidate:
    table: StreamTable
    due: bool
    #: queued or running
    busy: bool


def ready(candidates: Iterable[Candidate]) -> tuple[StreamTable, ...]:
    """Those that are due and whose upstream stream tables are neither due nor busy: these go first.

    Of those that could go at once, the IMMEDIATE ones are first in the queue.
    """
    by_name: Mapping[str, Candidate] = {each.table.name.casefold(): each for each in candidates}

    def is_settled(name: str) -> bool:
        upstream = by_name.get(name.casefold())
        return upstream is None or not (upstream.due or upstream.busy)

    chosen = (
        each.table
        for each in by_name.values()
        if each.due and not each.busy and all(map(is_settled, each.table.sources))
    )
    return tuple(sorted(chosen, key=lambda table: table.refresh_mode is not RefreshMode.IMMEDIATE))
