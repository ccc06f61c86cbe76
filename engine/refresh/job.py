"""Everything that one refresh carries from phase to phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile.bind import Statements
from engine.compile.places import in_views
from engine.compile.plan import MaintenancePlan
from engine.compile.render import render
from engine.errors import NegativeMultiplicity
from engine.lake.stamp import Stamp
from engine.records import Column, Frontier, Outcome, StreamTable
from engine.refresh.observe import SourceMove, Target
from engine.refresh.phases import Phases

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.spark_types import SparkSession


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
    base_frontier: Frontier
    lease_epoch: int
    session: SparkSession
    settings: Settings
    phases: Phases

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
        )

    @property
    def sequence(self) -> int:
        return self.target.sequence + 1


@dataclass(frozen=True)
class Differential:
    """A differential refresh, ready to run: all that its statements read stands in views of the session."""

    job: Job
    statements: Statements
    changes: tuple[SourceMove, ...]
    rows_in: int
    #: may the result be larger than the change?
    may_grow: bool

    @property
    def first_sql(self) -> str | None:
        return None if self.statements.first is None else render(self.statements.first, in_views, pretty=True)

    @property
    def change_sql(self) -> str:
        return render(self.statements.change, in_views, pretty=True)

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
