"""What the two strategies that commit from the driver share: the change set as Arrow, checked and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.nodes import WEIGHT
from engine.compile.keep import NET, OP
from engine.compile.places import view_name
from engine.lake import queries
from engine.lake.apply import Counts
from engine.lake.capabilities import capabilities
from engine.lake.steps import Query
from engine.refresh.job import Differential, Job, TooLarge, refuse_contradictions

if TYPE_CHECKING:
    import pyarrow as pa


def is_possible(work: Differential) -> bool:
    return work.is_small and capabilities(work.job.table.path).can_driver_merge


def change_set(work: Differential) -> pa.Table:
    """Runs the statements.

    Small by estimate is not small by proof: what turns out large is left to Spark.
    """
    job = work.job
    with job.phases.phase("run"):
        if work.prepared.first is not None:
            net = _net_change(work, work.prepared.first)
            if net.num_rows == 0:
                return net
            job.compute.show_rows(view_name(NET), net)
        return _complete(job, _collected(work, work.prepared.change))


def _net_change(work: Differential, first: Query) -> pa.Table:
    """By the shortcut, where there is one and it can tell."""
    if work.prepared.shortcut is not None:
        net = _collected(work, work.prepared.shortcut)
        if net[WEIGHT].null_count == 0:
            return net
    return _collected(work, first)


def _collected(work: Differential, query: Query) -> pa.Table:
    job = work.job
    doing = f"computing the change of {job.table.name}"
    small = work.rows_in <= queries.SMALL_ROWS
    if not work.prepared.may_grow:
        return job.compute.collect(query, doing, small=small)
    found = job.compute.collect_at_most(query, job.settings.refresh.max_driver_delta_rows, doing, small=small)
    if found is None or found.nbytes > job.settings.refresh.max_driver_delta_mb * 1024 * 1024:
        raise TooLarge
    return found


def _complete(job: Job, rows: pa.Table) -> pa.Table:
    """Contradictions refused, and new rows with their ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wrong = rows.filter(pc.equal(rows[OP], "X"))
    if wrong.num_rows:
        refuse_contradictions(job, wrong.num_rows, queries.in_words(wrong))
    ids = job.row_ids
    if ids is None:
        return rows
    is_new = pc.equal(rows[OP], "I")
    made = {
        ids.sequence_column: pa.scalar(ids.sequence, pa.int64()),
        ids.position_column: pa.array(range(rows.num_rows), pa.int64()),
    }
    for name, value in made.items():
        rows = rows.set_column(rows.column_names.index(name), name, pc.if_else(is_new, value, rows[name]))
    return rows


def counts(rows: pa.Table) -> Counts:
    import pyarrow.compute as pc

    found = {item["values"]: item["counts"] for item in pc.value_counts(rows[OP]).to_pylist()}
    return Counts(found.get("I", 0), found.get("U", 0), found.get("D", 0))
