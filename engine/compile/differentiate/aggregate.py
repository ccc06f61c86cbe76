"""Aggregates inside a query: recompute the groups that the change touches, before and after.

At the root of a query the result is kept by group, and better ways exist: see `engine.compile.keep`.
"""

from __future__ import annotations

from engine.algebra.nodes import Aggregate, Node, SemiJoin, UnionAll
from engine.algebra.trees import at_frontier, weighted
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.compile.differentiate.touched import Pairs, touched_values


@change_of.register
def _(node: Aggregate) -> Node:
    touched, pairs = touched_groups(node)
    after = of_groups(node, node.input, touched, pairs)
    before = of_groups(node, at_frontier(node.input), touched, pairs)
    return UnionAll((weighted(after, 1), weighted(before, -1)))


def touched_groups(node: Aggregate) -> tuple[Node, Pairs]:
    """The distinct keys of the groups that the change touches."""
    keys = {key.name: key.scalar for key in node.keys}
    return touched_values(delta(node.input), keys, {key.name: key.type for key in node.keys})


def of_groups(node: Aggregate, source: Node, touched: Node, pairs: Pairs) -> Node:
    """The aggregate over `source`, of the touched groups only."""
    if not pairs:
        # One row in any case: computed again when anything changed at all.
        return SemiJoin(Aggregate(source, (), node.aggregations), touched, ())
    return Aggregate(SemiJoin(source, touched, pairs), node.keys, node.aggregations)


@rule_of.register
def _(node: Aggregate) -> Rule:
    if not node.aggregations:
        return Rule("touched keys", "looks again at the values that occur in the change")
    return Rule("touched groups", "recomputes the groups that occur in the change, before and after")
