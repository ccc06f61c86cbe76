"""A large change: Spark computes it and merges it."""

from __future__ import annotations

from engine.errors import InternalError
from engine.lake.apply import Counts
from engine.records import Outcome
from engine.refresh.job import Applied, Differential
from engine.refresh.strategies import by_spark


class MergeBySpark:
    name = "merge by spark"

    def fits(self, work: Differential) -> bool:
        return True

    def run(self, work: Differential) -> Applied:
        job = work.job
        if job.plan.kept is None:
            raise InternalError("a query that can only be recomputed has no change set")
        with by_spark.change_set(work) as (result, counts):
            if counts == Counts():
                return Applied(self.name, work.sql, None)
            job.about_to_commit()
            with job.phases.phase("commit"):
                stamp = job.stamp(Outcome.DIFFERENTIAL)
                commit = result.merge(
                    job.table.path, job.target.version, job.plan.kept.identity, stamp, counts, job.within
                )
        return Applied(self.name, work.sql, commit.version, commit.inserted, commit.updated, commit.deleted)
