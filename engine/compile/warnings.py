"""What is right but may cost more, or mean less, than its author thinks: told when a stream table is created."""

from __future__ import annotations

from engine.algebra.nodes import Aggregate, Aggregation, Node
from engine.algebra.trees import nodes_of
from engine.compile.exactness import inexact_columns, is_order_sensitive
from engine.compile.keep import Kept
from engine.compile.keep.composed import composed
from engine.compile.keep.group_sums import STORED_SUMS
from engine.compile.positions import fragment
from engine.records import Notice


def warnings_of(root: Node, kept: Kept, text: str) -> tuple[Notice, ...]:
    """Aggregates that are computed anew, for the groups that a change touches."""
    # those that the stored table itself adds up
    added_up = root.inputs if kept.rule.name == STORED_SUMS else ()
    rescanned: list[str] = []
    of_floats: list[str] = []
    for node in nodes_of(root):
        if isinstance(node, Aggregate) and node not in added_up:
            for each in node.aggregations:
                if is_order_sensitive(each.call, node.input.types, inexact_columns(node.input)):
                    of_floats.append(_written(each, text))
                elif not _adds_up(node, each):
                    rescanned.append(_written(each, text))
    notices: list[Notice] = []
    if rescanned:
        notices.append(
            Notice(
                f"{_listed(rescanned)}: re-aggregates the touched groups, reading all of their rows",
                "COUNT, and SUM and AVG of integers and decimals, change by addition",
            )
        )
    if of_floats:
        notices.append(
            Notice(
                f"{_listed(of_floats)}: adds up floating-point numbers, so it re-aggregates the touched groups, and "
                "two computations may differ in the last digits",
                "cast the argument to DECIMAL: such sums are exact, and change by addition",
            )
        )
    return tuple(notices)


def _adds_up(node: Aggregate, made: Aggregation) -> bool:
    found = composed(node, made)
    return found is not None and all(part.kind.takes_back for part in found.parts)


def _written(made: Aggregation, text: str) -> str:
    """The call in its author's words: in the tree columns have other names."""
    return fragment(made.call.tree, text) or str(made.call)


def _listed(calls: list[str]) -> str:
    return ", ".join(dict.fromkeys(calls))
