"""A large change that only inserts: written by Spark, without looking anything up."""

from __future__ import annotations

from engine.compile.keep import OP
from engine.lake import apply
from engine.records import Outcome
from engine.refresh.job import Applied, Differential
from engine.refresh.strategies import by_spark


class AppendBySpark:
    name = "append by spark"

    def fits(self, work: Differential) -> bool:
        return work.statements.appends

    def run(self, work: Differential) -> Applied:
        job = work.job
        with by_spark.change_set(work) as (frame, counts, sql):
            if counts.inserted == 0:
                return Applied(self.name, sql, None)
            with job.phases.phase("commit"):
                commit = apply.append_frame(
                    job.session, job.table.path, job.target.version, frame.drop(OP), job.stamp(Outcome.DIFFERENTIAL)
                )
        return Applied(self.name, sql, commit.version, inserted=counts.inserted)
