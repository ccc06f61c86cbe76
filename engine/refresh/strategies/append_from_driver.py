"""A small change that only inserts: one file, written by the driver."""

from __future__ import annotations

from engine.compile.keep import OP
from engine.lake import apply, tables
from engine.records import Outcome
from engine.refresh.job import Applied, Differential
from engine.refresh.strategies import from_driver


class AppendFromDriver:
    name = "append from driver"

    def fits(self, work: Differential) -> bool:
        return work.appends and from_driver.is_possible(work)

    def run(self, work: Differential) -> Applied:
        job = work.job
        rows = from_driver.change_set(work)
        if rows.num_rows == 0:
            return Applied(self.name, work.sql, None)
        job.about_to_commit()
        with job.phases.phase("commit"):
            pinned = tables.pin(job.table.path, job.target.version)
            commit = apply.append(pinned, rows.drop_columns([OP]), job.stamp(Outcome.DIFFERENTIAL))
        return Applied(self.name, work.sql, commit.version, inserted=commit.inserted)
