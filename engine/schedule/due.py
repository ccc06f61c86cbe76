"""When a stream table is due, and in which order those that are due go: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.catalog.records import Progress
from engine.records import StreamTable

#: a failing stream table is tried again after its interval, doubled with each failure up to this
MAX_BACK_OFF_S = 300.0


def wait_s(table: StreamTable, progress: Progress) -> float:
    """Seconds from the beginning of one refresh to that of the next."""
    if not progress.consecutive_errors:
        return table.interval_s
    doublings = min(progress.consecutive_errors, 10)
    return min(max(table.interval_s, 1.0) * (1 << doublings), max(MAX_BACK_OFF_S, table.interval_s))


@dataclass(frozen=True)
class Candidate:
    table: StreamTable
    due: bool
    #: queued or running
    busy: bool


def ready(candidates: Iterable[Candidate]) -> tuple[StreamTable, ...]:
    """Those that are due and whose upstream stream tables are neither due nor busy: these go first."""
    by_name: Mapping[str, Candidate] = {each.table.name.casefold(): each for each in candidates}

    def is_settled(name: str) -> bool:
        upstream = by_name.get(name.casefold())
        return upstream is None or not (upstream.due or upstream.busy)

    return tuple(
        each.table
        for each in by_name.values()
        if each.due and not each.busy and all(map(is_settled, each.table.sources))
    )
