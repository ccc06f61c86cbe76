"""A full refresh: the whole result, computed from the chosen versions, replaces what is stored in one commit."""

from __future__ import annotations

from engine.algebra.nodes import Leaf, Role
from engine.compile.places import view_name
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import tables
from engine.lake.steps import Query
from engine.records import Column, Outcome
from engine.refresh.job import Applied, Job
from engine.refresh.plans import rendered

STRATEGY = "overwrite"


def statement(job: Job) -> Query:
    """What is run. A query that the compiler could not take apart runs as its owner wrote it, but for the clock."""
    kept = job.plan.kept
    if kept is not None:
        return rendered(kept.full)
    return Query(job.plan.query_at(job.moment), reads=frozenset(job.columns))


def run(job: Job, outcome: Outcome) -> Applied:
    with job.phases.phase("plan"):
        query = statement(job)
    with job.phases.phase("read change"):
        for name, columns in (job.columns if job.plan.kept is None else job.plan.used_columns).items():
            view = name if job.plan.kept is None else view_name(Leaf(Role.NEW, name))
            job.compute.show_version(view, job.paths[name], job.chosen[name].version, columns)
        if job.plan.kept is None:
            for name, text in job.plan.views_at(job.moment):
                job.compute.show_view(name, text, job.columns)
    FAILPOINTS.reach(Failpoint.CHANGES_READ)
    with job.phases.phase("run"):
        result = job.compute.lazily(query, f"computing {job.table.name}").as_stored(job.plan.columns, job.row_ids)
        job.about_to_commit()
        same_columns = _shape(tables.columns(job.table.path)) == _shape(job.plan.columns)
        commit = result.overwrite(
            job.table.path,
            job.target.version,
            job.stamp(outcome),
            new_schema=not same_columns or job.target.partition_by != job.table.partition_by,
            partition_by=job.table.partition_by,
        )
    return Applied(STRATEGY, query.text, commit.version, inserted=commit.inserted, deleted=commit.deleted)


def _shape(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
