"""Recursive queries: computed again, before and after, when anything that they read has changed."""

from __future__ import annotations

from engine.algebra.nodes import WEIGHT, Node, Output, Project, Recursion, Role, SemiJoin, UnionAll
from engine.algebra.scalars import col
from engine.algebra.trees import at_frontier, leaves, weighted
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of


@change_of.register
def _(node: Recursion) -> Node:
    changes = tuple(
        Project(delta(scan), (Output("__k", col(WEIGHT), "int"),))
        for scan in leaves(node)
        if scan.leaf.role is Role.NEW
    )
    if not changes:
        return delta(node.base)
    touched = UnionAll(changes) if len(changes) > 1 else changes[0]
    now = SemiJoin(node, touched, ())
    before = SemiJoin(at_frontier(node), touched, ())
    return UnionAll((weighted(now, 1), weighted(before, -1)))


@rule_of.register
def _(node: Recursion) -> Rule:
    return Rule("recomputed", "computed again, before and after, by any change of what it reads")
