"""One refresh as its costs see it: what was known before, and what is to be learned from how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.refresh.costs import Costs, Sample, after_differential, after_full, with_net_share
from engine.refresh.work import Pending, differential_work, full_work, once_read

if TYPE_CHECKING:
    from engine.refresh.job import Applied

#: how long it took and how long it was thought to take, and what is known by that
Lesson = Callable[[float, float | None], Costs]


@dataclass(frozen=True)
class Priced:
    costs: Costs
    changes: tuple[Pending, ...]
    #: runs in a JVM so young that it takes longer than others will
    cold: bool

    def once_read(self, rows_read: Mapping[str, int | None]) -> Priced:
        """Which share of overwritten tables really changed is worth knowing also where it ends in a full refresh."""
        known = once_read(self.changes, rows_read)
        counted = [each for each in known if each.move.overwritten and rows_read.get(each.move.name) is not None]
        read = sum(each.read for each in counted)
        if not read:
            return self
        share = sum(each.changed for each in counted) / read
        return replace(self, changes=known, costs=with_net_share(self.costs, share))

    def of_differential(self, applied: Applied) -> Lesson:
        work = differential_work(self.costs, self.changes)
        stored = max(0, self.costs.stored_rows + applied.inserted - applied.deleted)
        return lambda ms, estimated_ms: after_differential(
            self.costs, Sample(work, ms, self.cold), estimated_ms, stored_rows=stored
        )

    def of_full(self, applied: Applied, *, by_price: bool) -> Lesson:
        stored = applied.inserted
        work = full_work(replace(self.costs, stored_rows=stored), self.changes)
        return lambda ms, estimated_ms: after_full(
            self.costs, Sample(work, ms, self.cold), estimated_ms, stored_rows=stored, for_its_price=by_price
        )
