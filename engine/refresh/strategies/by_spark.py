"""What the two strategies that commit by Spark share: the change set as a persisted frame, checked and complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.compile.keep import OP, POSITION, SEQUENCE
from engine.lake import failures, queries
from engine.lake.apply import Counts
from engine.refresh.job import Differential, Job, refuse_contradictions

if TYPE_CHECKING:
    from engine.lake.spark_types import DataFrame


@contextmanager
def change_set(work: Differential) -> Iterator[tuple[DataFrame, Counts, str]]:
    """Computed once and kept while it is counted, checked and committed."""
    job = work.job
    queries.tune(job.session, small=False)
    kept: list[DataFrame] = []
    first, change = work.first_sql, work.change_sql
    try:
        with job.phases.phase("run"):
            doing = f"computing the change of {job.table.name}"
            if first is not None:
                net = queries.run(job.session, first, doing).persist()
                kept.append(net)
                net.createOrReplaceTempView("__trickle_net")
            frame = _with_ids(job, queries.run(job.session, change, doing)).persist()
            kept.append(frame)
            counts = _counted(job, frame, doing)
        yield frame, counts, ";\n\n".join(filter(None, (first, change)))
    finally:
        for each in kept:
            each.unpersist()


def _with_ids(job: Job, frame: DataFrame) -> DataFrame:
    if job.plan.kept is None or not job.plan.kept.by_row:
        return frame
    ids = {
        SEQUENCE: f"IF({OP} = 'I', {job.sequence}L, {SEQUENCE})",
        POSITION: f"IF({OP} = 'I', monotonically_increasing_id(), {POSITION})",
    }
    return frame.selectExpr(*(f"{ids[name]} AS {name}" if name in ids else f"`{name}`" for name in frame.columns))


def _counted(job: Job, frame: DataFrame, doing: str) -> Counts:
    found = {row[OP]: row["count"] for row in queries.collect(frame.groupBy(OP).count(), doing).to_pylist()}
    if found.get("X"):
        try:
            example = str(frame.where(f"{OP} = 'X'").drop(OP).first())
        except Exception as error:
            raise failures.typed(error, doing) from error
        refuse_contradictions(job, found["X"], example)
    return Counts(found.get("I", 0), found.get("U", 0), found.get("D", 0))
