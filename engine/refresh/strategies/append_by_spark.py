"""A large change that only inserts: written by Spark, without looking anything up."""

from __future__ import annotations

from engine.compile.keep import OP
from engine.records import Outcome
from engine.refresh.job import Applied, Differential
from engine.refresh.strategies import by_spark


class AppendBySpark:
    name = "append by spark"

    def fits(self, work: Differential) -> bool:
        return work.appends

    def run(self, work: Differential) -> Applied:
        job = work.job
        with by_spark.change_set(work) as (result, counts):
            if counts.inserted == 0:
                return Applied(self.name, work.sql, None)
            job.about_to_commit()
            with job.phases.phase("commit"):
                stamp = job.stamp(Outcome.DIFFERENTIAL)
                commit = result.without(OP).append(job.table.path, job.target.version, stamp)
        return Applied(self.name, work.sql, commit.version, inserted=counts.inserted)
