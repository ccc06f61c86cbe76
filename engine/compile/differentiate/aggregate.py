"""Aggregates inside a query: recompute the groups that the change touches, before and after.

At the root of a query the result is kept by group, and better ways exist: see `engine.compile.keep`.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    AggregateKind,
    Node,
    Output,
    Project,
    SemiJoin,
    UnionAll,
    at_frontier,
    keep,
)
from engine.algebra.scalars import Scalar, col, lit
from engine.compile.differentiate.dispatch import Rule, delta, rule_of
from engine.errors import UnsupportedOperator


@delta.register
def _(node: Aggregate) -> Node:
    for made in node.aggregations:
        if is_order_sensitive(made.kind, made.argument_type):
            raise UnsupportedOperator(
                f"{made.kind} of {made.argument_type} below another operator cannot be maintained differentially yet",
                detail="summed in another order it differs in its last digits, and would not match what was stored",
                hint="cast its argument to DECIMAL, or use refresh_mode = 'FULL'",
            )
    touched = touched_keys(node)
    after = restrict(node, touched)
    before = at_frontier_of_input(node, touched)
    return UnionAll((_weighted(after, 1), _weighted(before, -1)))


def touched_keys(node: Aggregate) -> Node:
    """The distinct keys of the groups that the change touches; without keys: the change itself."""
    change = delta(node.input)
    if not node.keys:
        return Project(change, (Output("__k", col(WEIGHT), "int"),))
    named = tuple(Output(f"__k_{key.name}", key.scalar, key.type) for key in node.keys)
    return Aggregate(Project(change, named), tuple(Output(o.name, col(o.name), o.type) for o in named), ())


def restrict(node: Aggregate, touched: Node) -> Node:
    """The aggregate, of the touched groups only."""
    return _restricted(node, node.input, touched)


def at_frontier_of_input(node: Aggregate, touched: Node) -> Node:
    """The same as it was before the change."""
    return _restricted(node, at_frontier(node.input), touched)


def _restricted(node: Aggregate, source: Node, touched: Node) -> Node:
    if not node.keys:
        # One row in any case: computed again when anything changed at all.
        return SemiJoin(Aggregate(source, (), node.aggregations), touched, ())
    pairs = tuple((key.scalar, f"__k_{key.name}") for key in node.keys)
    return Aggregate(SemiJoin(source, touched, pairs), node.keys, node.aggregations)


def _weighted(tree: Node, weight: int) -> Node:
    return Project(tree, (*keep(tree.columns), Output(WEIGHT, Scalar(lit(weight).tree), "int")))


def is_order_sensitive(kind: AggregateKind, argument_type: str) -> bool:
    """Does the result depend on the order in which rows are added up?"""
    return kind in (AggregateKind.SUM, AggregateKind.AVG) and argument_type in ("float", "double", "string")


@rule_of.register
def _(node: Aggregate) -> Rule:
    if not node.aggregations:
        return Rule("touched keys", "looks again at the values that occur in the change")
    return Rule("touched groups", "recomputes the groups that occur in the change, before and after")
