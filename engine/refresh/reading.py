"""Before a differential refresh runs: the plan bound to what changed, and all that it reads in views of the session."""

from __future__ import annotations

from collections.abc import Mapping

from engine.algebra.nodes import Leaf, Role
from engine.compile.places import view_name
from engine.errors import InternalError
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import files, lookups
from engine.records import Column
from engine.refresh.job import Differential, Job
from engine.refresh.observe import SourceMove
from engine.refresh.plans import Plans, Sizes
from engine.refresh.siblings import wanted_by_siblings


def prepare(
    job: Job, plans: Plans, moves: tuple[SourceMove, ...], rebuilt: frozenset[str]
) -> tuple[Differential, dict[str, int | None]]:
    """Binds the plan to what changed, and makes the changes readable in the session."""
    with job.phases.phase("plan"):
        changes = {move.name: move.change for move in moves}
        prepared = plans.prepared(job.table, changes)
        if large := _large(job, prepared.statements.whole_relations):
            prepared = plans.prepared(job.table, changes, Sizes(large, _looked_up(job, large)))
    by_name = {move.name: move for move in moves}
    rows_read: dict[str, int | None] = {}
    with job.phases.phase("read change"):
        for leaf, columns in _changes_first(prepared.reads):
            match leaf.role:
                case Role.DELTA:
                    siblings = wanted_by_siblings(plans, job.table, by_name[leaf.name])
                    rows_read[leaf.name] = _read_change(job, by_name[leaf.name], siblings)
                case Role.OLD if leaf.name in rebuilt:
                    move, now = by_name[leaf.name], f"{view_name(leaf)}_now"
                    job.compute.show_version(now, move.path, move.chosen.version, columns)
                    change = view_name(Leaf(Role.DELTA, leaf.name))
                    job.compute.show_before(view_name(leaf), now, change, columns)
                case Role.NEW | Role.OLD:
                    move = by_name[leaf.name]
                    at = move.chosen if leaf.role is Role.NEW or move.was is None else move.was
                    job.compute.show_version(view_name(leaf), move.path, at.version, columns)
                case Role.STORED:
                    job.compute.show_version(view_name(leaf), job.table.path, job.target.version, columns)
                case Role.NET:
                    pass  # made between the two statements
    FAILPOINTS.reach(Failpoint.CHANGES_READ)
    counted = ((rows_read.get(move.name), move.rows_estimate) for move in moves)
    rows_in = sum(estimate if rows is None else rows for rows, estimate in counted)
    return Differential(job, prepared, moves, rows_in), rows_read


def _large(job: Job, names: frozenset[str]) -> frozenset[str]:
    most = job.settings.refresh.large_source_mb * 1024 * 1024
    sizes = {name: files.size_bytes(job.paths[name], job.chosen[name].version) for name in names}
    return frozenset(name for name, size in sizes.items() if size is not None and size > most)


def _looked_up(job: Job, large: frozenset[str]) -> frozenset[str]:
    def is_possible(name: str) -> bool:
        used = [column.name for column in job.plan.used_columns[name]]
        return lookups.is_possible(job.paths[name], job.chosen[name].version, used, job.settings.refresh.lookup_mb)

    return frozenset(filter(is_possible, large))


def _read_change(job: Job, move: SourceMove, siblings: tuple[str, ...] | None) -> int | None:
    if move.was is None or move.summary is None:
        raise InternalError(f"{move.name} has no change to read")
    # All that the query uses, also where a statement asks for keys alone: rows cancel each other by all of it.
    names = [column.name for column in job.plan.used_columns[move.name]]
    view = view_name(Leaf(Role.DELTA, move.name))
    most = job.settings.refresh.max_driver_delta_rows
    return job.compute.show_change(view, move.path, names, move.summary, most, siblings)


def _changes_first(reads: Mapping[Leaf, tuple[Column, ...]]) -> list[tuple[Leaf, tuple[Column, ...]]]:
    return sorted(reads.items(), key=lambda item: item[0].role is not Role.DELTA)
