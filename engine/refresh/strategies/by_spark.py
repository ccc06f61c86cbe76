"""What the two strategies that commit by Spark share: the change set, computed once, checked and complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from engine.compile.keep import NET, OP
from engine.compile.places import view_name
from engine.lake.apply import Counts
from engine.lake.compute import Result
from engine.refresh.job import Differential, Job, refuse_contradictions


@contextmanager
def change_set(work: Differential) -> Iterator[tuple[Result, Counts]]:
    """Kept while it is counted, checked and committed."""
    job = work.job
    with ExitStack() as kept:
        with job.phases.phase("run"):
            doing = f"computing the change of {job.table.name}"
            if work.prepared.first is not None:
                kept.enter_context(job.compute.computed(work.prepared.first, doing)).show(view_name(NET))
            result = kept.enter_context(job.compute.computed(work.prepared.change, doing, job.row_ids))
            counts = _counted(job, result)
        yield result, counts


def _counted(job: Job, result: Result) -> Counts:
    found = result.counted_by(OP)
    if found.get("X"):
        refuse_contradictions(job, found["X"], result.example(OP, "X"))
    return Counts(found.get("I", 0), found.get("U", 0), found.get("D", 0))
