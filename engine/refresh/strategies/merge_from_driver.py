"""A small change: Spark computes it, the driver commits it through the handle pinned before it was computed."""

from __future__ import annotations

from engine.errors import InternalError
from engine.lake import apply, old_days, tables
from engine.records import Outcome
from engine.refresh.job import Applied, Differential
from engine.refresh.strategies import from_driver


class MergeFromDriver:
    name = "merge from driver"

    def fits(self, work: Differential) -> bool:
        return from_driver.is_possible(work) and not _has_nested_identity(work) and not _has_old_days(work)

    def run(self, work: Differential) -> Applied:
        job = work.job
        if job.plan.kept is None:
            raise InternalError("a query that can only be recomputed has no change set")
        rows = from_driver.change_set(work)
        if rows.num_rows == 0:
            return Applied(self.name, work.sql, None)
        job.about_to_commit()
        with job.phases.phase("commit"):
            pinned = tables.pin(job.table.path, job.target.version)
            commit = apply.merge(
                pinned,
                rows,
                job.plan.kept.identity,
                job.stamp(Outcome.DIFFERENTIAL),
                from_driver.counts(rows),
                job.within,
            )
        return Applied(self.name, work.sql, commit.version, commit.inserted, commit.updated, commit.deleted)


def _has_nested_identity(work: Differential) -> bool:
    """delta-rs compares arrays and structs, but cannot put their bounds into the predicate that skips files."""
    kept = work.job.plan.kept
    types = {column.name: column.type for column in work.job.plan.columns}
    return kept is not None and any(types[name].startswith(("array<", "struct<", "map<")) for name in kept.identity)


def _has_old_days(work: Differential) -> bool:
    """Somebody else's OPTIMIZE writes them: delta-rs would write other days, also of rows that nothing happened to."""
    return old_days.in_table(work.job.table.path, work.job.target.version)
