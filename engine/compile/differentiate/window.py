"""Window functions: recompute the partitions that the change touches, before and after."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.nodes import Node, SemiJoin, UnionAll, Window
from engine.algebra.scalars import col
from engine.algebra.trees import at_frontier, weighted
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.compile.differentiate.touched import touched_values


@change_of.register
def _(node: Window) -> Node:
    touched, pairs = touched_values(delta(node.input), {name: col(name) for name in node.partition}, node.input.types)

    def recomputed(source: Node) -> Node:
        if not pairs:
            # Without a partition it is one, which the change touches if there is any.
            return SemiJoin(replace(node, input=source), touched, ())
        return replace(node, input=SemiJoin(source, touched, pairs))

    return UnionAll((weighted(recomputed(node.input), 1), weighted(recomputed(at_frontier(node.input)), -1)))


@rule_of.register
def _(node: Window) -> Rule:
    if not node.partition:
        return Rule("recomputed", "a window over everything is recomputed by any change")
    return Rule("touched partitions", "recomputes the partitions that occur in the change, before and after")
