"""Everything that one refresh carries from phase to phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from engine.compile.keep import POSITION, SEQUENCE
from engine.compile.plan import MaintenancePlan
from engine.errors import NegativeMultiplicity
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake.compute import Compute, RowIds
from engine.lake.stamp import Stamp
from engine.records import Column, Evaluated, Frontier, Outcome, StreamTable
from engine.refresh.observe import SourceMove, Target
from engine.refresh.phases import Phases
from engine.refresh.plans import Prepared
from engine.refresh.priced import Priced

if TYPE_CHECKING:
    from engine.config import Settings


@dataclass(frozen=True)
class Job:
    refresh_id: str
    table: StreamTable
    plan: MaintenancePlan
    target: Target
    #: sources by name: where they are
    paths: Mapping[str, str]
    #: their readable columns
    columns: Mapping[str, tuple[Column, ...]]
    chosen: Frontier
    priced: Priced
    base_frontier: Frontier
    lease_epoch: int
    compute: Compute
    settings: Settings
    phases: Phases
    #: of a query whose answer changes by itself: for when and by whom it is computed
    evaluated: Evaluated | None
    #: raises when this process may not commit any more
    fence: Callable[[], None]

    def about_to_commit(self) -> None:
        """The last moment to think better of it."""
        FAILPOINTS.reach(Failpoint.COMPUTED)
        self.fence()

    def stamp(self, outcome: Outcome) -> Stamp:
        return Stamp(
            st_id=self.table.id,
            refresh_id=self.refresh_id,
            sequence=self.target.sequence + 1,
            outcome=outcome,
            frontier=self.chosen,
            base_frontier=self.base_frontier,
            fingerprint=self.plan.fingerprint,
            lease_epoch=self.lease_epoch,
            on_version=self.target.version,
            evaluated=self.evaluated,
        )

    @property
    def moment(self) -> datetime | None:
        """What the clock shows to its query."""
        return self.evaluated.at if self.evaluated is not None else None

    @property
    def sequence(self) -> int:
        return self.target.sequence + 1

    @property
    def within(self) -> tuple[str, ...]:
        """The partition columns whose values in a change set are those of the stored rows, also of rows that go.

        Rows with an id of their own come and go, and say all of their values. Of a group that changes or goes only
        its keys are known; what else it had may be anything.
        """
        kept = self.plan.kept
        if kept is None:
            return ()
        return tuple(name for name in self.table.partition_by if kept.by_row or name in kept.identity)

    @property
    def row_ids(self) -> RowIds | None:
        """Where rows have no key of their own."""
        if self.plan.kept is None or not self.plan.kept.by_row:
            return None
        return RowIds(SEQUENCE, POSITION, self.sequence)


@dataclass(frozen=True)
class Differential:
    """A differential refresh, ready to run: all that its statements read stands in views of the session."""

    job: Job
    prepared: Prepared
    changes: tuple[SourceMove, ...]
    rows_in: int

    @property
    def appends(self) -> bool:
        return self.prepared.statements.appends

    @property
    def sql(self) -> str:
        """All that is run, for people."""
        queries = (self.prepared.shortcut, self.prepared.first, self.prepared.change)
        return ";\n\n".join(query.text for query in queries if query is not None)

    @property
    def is_small(self) -> bool:
        return self.rows_in <= self.job.settings.refresh.max_driver_delta_rows


@dataclass(frozen=True)
class Applied:
    """What a strategy did."""

    strategy: str
    #: what Spark ran
    sql: str
    #: of the stream table's own table; None when nothing had to be written
    version: int | None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class TooLarge(Exception):
    """The result is larger than what may be brought to the driver: the next strategy has its turn."""


def refuse_contradictions(job: Job, count: int, example: str) -> None:
    """The runtime guard: a change that contradicts what is stored is never committed."""
    if count:
        raise NegativeMultiplicity(
            f"the change of {job.table.name} would delete rows that are not there",
            detail=f"{count:,} such rows, for example {example}",
            hint=f"`trickle verify {job.table.name}` compares it, `trickle refresh {job.table.name} --full` mends it",
        )
