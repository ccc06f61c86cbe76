"""What the two strategies that commit from the driver share: the change set as Arrow, checked and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile.keep import NET, OP, POSITION, SEQUENCE
from engine.compile.places import view_name
from engine.lake import queries, views
from engine.lake.apply import Counts
from engine.lake.capabilities import capabilities
from engine.refresh.job import Differential, Job, TooLarge, refuse_contradictions

if TYPE_CHECKING:
    import pyarrow as pa


def is_possible(work: Differential) -> bool:
    return work.is_small and capabilities(work.job.table.path).can_driver_merge


def change_set(work: Differential) -> tuple[pa.Table, str]:
    """Runs the statements; their result, and what was run.

    Small by estimate is not small by proof: what turns out large is left to Spark.
    """
    job = work.job
    queries.tune(job.session, small=work.rows_in <= queries.SMALL_ROWS)
    first, change = work.first_sql, work.change_sql
    text = ";\n\n".join(filter(None, (first, change)))
    with job.phases.phase("run"):
        if first is not None:
            net = _collected(work, first)
            if net.num_rows == 0:
                return net, text
            views.of_rows(job.session, view_name(NET), net)
        return _complete(job, _collected(work, change)), text


def _collected(work: Differential, sql: str) -> pa.Table:
    job = work.job
    doing = f"computing the change of {job.table.name}"
    frame = queries.run(job.session, sql, doing)
    if not work.may_grow:
        return queries.collect(frame, doing)
    found = queries.collect_at_most(frame, job.settings.refresh.max_driver_delta_rows, doing)
    if found is None or found.nbytes > job.settings.refresh.max_driver_delta_mb * 1024 * 1024:
        raise TooLarge
    return found


def _complete(job: Job, rows: pa.Table) -> pa.Table:
    """Contradictions refused, and new rows with their ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wrong = rows.filter(pc.equal(rows[OP], "X"))
    if wrong.num_rows:
        refuse_contradictions(job, wrong.num_rows, _printed(wrong.slice(0, 1)))
    if job.plan.kept is None or not job.plan.kept.by_row:
        return rows
    is_new = pc.equal(rows[OP], "I")
    sequence = pc.if_else(is_new, pa.scalar(job.sequence, pa.int64()), rows[SEQUENCE])
    position = pc.if_else(is_new, pa.array(range(rows.num_rows), pa.int64()), rows[POSITION])
    rows = rows.set_column(rows.column_names.index(SEQUENCE), SEQUENCE, sequence)
    return rows.set_column(rows.column_names.index(POSITION), POSITION, position)


def counts(rows: pa.Table) -> Counts:
    import pyarrow.compute as pc

    found = {item["values"]: item["counts"] for item in pc.value_counts(rows[OP]).to_pylist()}
    return Counts(found.get("I", 0), found.get("U", 0), found.get("D", 0))


def _printed(row: pa.Table) -> str:
    values = row.to_pylist()[0]
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if not name.startswith("__trickle"))
