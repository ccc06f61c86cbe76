"""A full refresh: the whole result, computed from the chosen versions, replaces what is stored in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.nodes import Leaf, Role
from engine.compile.keep import POSITION, SEQUENCE
from engine.compile.places import in_views, view_name
from engine.compile.render import render
from engine.lake import apply, queries, tables, views
from engine.records import Column, Outcome
from engine.refresh.job import Applied, Job

if TYPE_CHECKING:
    from engine.lake.spark_types import DataFrame

STRATEGY = "overwrite"


def statement(job: Job) -> str:
    """What is run. A query that the compiler could not take apart runs as its owner wrote it."""
    kept = job.plan.kept
    return job.plan.query if kept is None else render(kept.full, in_views, pretty=True)


def run(job: Job, outcome: Outcome) -> Applied:
    queries.tune(job.session, small=False)
    with job.phases.phase("plan"):
        sql = statement(job)
    with job.phases.phase("read change"):
        for name, path in job.paths.items():
            view = name if job.plan.kept is None else view_name(Leaf(Role.NEW, name))
            columns = job.columns[name] if job.plan.kept is None else job.plan.used_columns[name]
            views.of_version(job.session, view, path, job.chosen[name].version, columns)
    doing = f"computing {job.table.name}"
    with job.phases.phase("run"):
        frame = _as_stored(job, queries.run(job.session, sql, doing))
        commit = apply.overwrite_frame(
            job.session,
            job.table.path,
            job.target.version,
            frame,
            job.stamp(outcome),
            new_schema=_shape(tables.columns(job.table.path)) != _shape(job.plan.columns),
        )
    return Applied(STRATEGY, sql, commit.version, inserted=commit.inserted, deleted=commit.deleted)


def _shape(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _as_stored(job: Job, frame: DataFrame) -> DataFrame:
    """The result's columns under the names, in the order and with the types of the stored table."""
    kept = job.plan.kept
    ids = {SEQUENCE: f"{job.sequence}L", POSITION: "monotonically_increasing_id()"}
    by_position = frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))
    names = iter(by_position.columns)
    chosen = []
    for column in job.plan.columns:
        value = ids[column.name] if kept is not None and kept.by_row and column.name in ids else f"`{next(names)}`"
        chosen.append(f"CAST({value} AS {column.type}) AS `{column.name.replace('`', '``')}`")
    return by_position.selectExpr(*chosen)
