"""The plan of a refresh as people see it: the operators of the query with what is known of this run."""

from __future__ import annotations

from engine.records import OperatorStats
from engine.refresh.job import Applied
from engine.refresh.observe import SourceMove
from engine.results import PlanNode


def operators(
    tree: PlanNode,
    moves: tuple[SourceMove, ...],
    rows_read: dict[str, int | None],
    applied: Applied | None,
    *,
    full: bool,
) -> tuple[OperatorStats, ...]:
    """Depth-first. Numbers that were not measured stay None."""
    by_name = {move.name: move for move in moves}
    found: list[OperatorStats] = []

    def visit(node: PlanNode, depth: int) -> None:
        move = by_name.get(node.label) if not node.children else None
        found.append(_row(node, depth, move, rows_read, applied, full=full))
        for child in node.children:
            visit(child, depth + 1)

    visit(tree, 0)
    return tuple(found)


def _row(
    node: PlanNode,
    depth: int,
    move: SourceMove | None,
    rows_read: dict[str, int | None],
    applied: Applied | None,
    *,
    full: bool,
) -> OperatorStats:
    label, rule, detail, rows_out, pruned = node.label, node.rule, node.detail, None, False
    if move is not None:
        now = move.chosen.version
        if full or move.was is None:
            label, rule = f"{node.label} @{now}", "read whole"
        elif move.was.version == now:
            label, rule, rows_out, pruned = f"{node.label} @{now}", "unchanged", 0, True
        else:
            label = f"Δ {node.label} {move.was.version}→{now}"
            rule = {"append": "insert-only", "none": "no rows changed"}.get(move.change, "inserts and deletes")
            rows_out = rows_read.get(move.name, 0 if move.change == "none" else None)
            pruned = move.change == "none"
    if depth == 0 and applied is not None:
        rows_out = applied.inserted + applied.updated + applied.deleted
        detail = applied.strategy
    return OperatorStats(node.id, depth, label, detail, rule, node.why, rows_out=rows_out, pruned=pruned)
