"""What there would be to do for the changes that are pending: rows, told from the logs and from the plan's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.algebra.nodes import Aggregate, Exists, InnerJoin, Node, OuterJoin, Recursion, SemiJoin, Window
from engine.algebra.trees import nodes_of
from engine.compile.bind import Change, bind
from engine.compile.plan import MaintenancePlan
from engine.lake.commits import files_between
from engine.refresh.costs import Costs, Shape, Work, net_share
from engine.refresh.observe import SourceMove
from engine.refresh.sizes import Sizes

_SHUFFLES = (Aggregate, Exists, OuterJoin, Recursion, SemiJoin, Window)


@dataclass(frozen=True)
class Pending:
    """The change of one source."""

    move: SourceMove
    #: rows of it as its writers left them; at least so many rows are read
    read: int
    #: that are left when what came and what went again has cancelled; a guess where the table was overwritten …
    changed: int
    #: … but not less than this
    at_least: int
    #: of the source as it is now; None where nobody can count them
    source_rows: int | None

    @property
    def is_guess(self) -> bool:
        return self.at_least < self.changed

    @property
    def certain_share(self) -> float | None:
        """Of the source's rows, before or after, whichever are more: what changed in any case."""
        if self.source_rows is None:
            return None
        balance = self.move.summary.balance if self.move.summary is not None else 0
        most = max(self.source_rows, self.source_rows - (balance or 0))
        return min(1.0, self.at_least / most) if most else None


def pending(costs: Costs, moves: tuple[SourceMove, ...], sizes: Sizes) -> tuple[Pending, ...]:
    return tuple(_pending(costs, move, sizes) for move in moves)


def _pending(costs: Costs, move: SourceMove, sizes: Sizes) -> Pending:
    rows = sizes.rows(move)
    summary = move.summary
    if summary is None or move.change is Change.NONE:
        return Pending(move, 0, 0, 0, rows)
    said = summary.rows_estimate
    read = sum(file.rows for file in files_between(move.path, summary).touched) if summary.by_files else said
    if not move.overwritten:
        return Pending(move, read, min(said, read), min(said, read), rows)
    at_least = min(read, abs(summary.balance or 0))
    return Pending(move, read, max(at_least, round(read * net_share(costs))), at_least, rows)


def once_read(changes: tuple[Pending, ...], rows_read: Mapping[str, int | None]) -> tuple[Pending, ...]:
    """What overwritten sources really changed, where that was counted; where nobody did, it stays a guess."""

    def known(each: Pending) -> Pending:
        counted = rows_read.get(each.move.name)
        if counted is None or not each.move.overwritten:
            return each
        rows = min(each.read, counted)
        return replace(each, changed=rows, at_least=rows)

    return tuple(map(known, changes))


def differential_work(costs: Costs, changes: tuple[Pending, ...]) -> Work:
    shape = costs.shape
    moved = [each for each in changes if each.move.change is not Change.NONE]
    names = {each.move.name for each in moved}
    rows = {each.move.name: each.source_rows or 0 for each in changes}
    through = {name: set(shape.looks_through.get(name, rows.keys() - {name})) for name in names}
    net = sum(each.changed for each in moved)
    # groups that are touched are no more than there are, however many rows change
    written = min(net, costs.stored_rows) if shape.by_group else net
    anew = sum(rows.get(name, 0) for name in names if name in through[name])
    return Work(
        operators=sum(shape.statement_operators.get(name, shape.operators) for name in names),
        read=sum(each.read for each in moved),
        changed=net,
        scanned=sum(rows.get(name, 0) for name in set().union(*through.values())),
        recomputed=round(anew * min(1.0, net / costs.stored_rows)) if shape.by_group and costs.stored_rows else 0,
        written=written,
    )


def full_work(costs: Costs, changes: tuple[Pending, ...]) -> Work:
    scanned = sum(each.source_rows or 0 for each in changes)
    return Work(operators=costs.shape.operators, scanned=scanned, written=costs.stored_rows)


def shape_of(plan: MaintenancePlan) -> Shape:
    """Costs some milliseconds, once for each definition."""
    used = {name: tuple(column.name for column in columns) for name, columns in plan.used_columns.items()}
    kept = plan.kept
    if kept is None:
        return Shape(plan.fingerprint, _operators(plan.root), used_columns=used)
    bound = {name: bind(kept, {name: Change.MIXED}).usual for name in plan.sources}
    return Shape(
        plan.fingerprint,
        operators=_operators(plan.root),
        statement_operators={name: _operators(*statements.trees) for name, statements in bound.items()},
        by_group=not kept.by_row,
        looks_through={name: tuple(sorted(statements.whole_relations)) for name, statements in bound.items()},
        used_columns=used,
    )


def _operators(*roots: Node | None) -> int:
    found = [node for root in roots if root is not None for node in nodes_of(root)]
    joins = sum(len(node.members) - 1 for node in found if isinstance(node, InnerJoin))
    return joins + sum(isinstance(node, _SHUFFLES) for node in found)
