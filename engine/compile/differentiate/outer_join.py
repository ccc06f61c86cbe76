"""Outer joins: the inner join, and beside it the rows that have no partner, padded with NULLs."""

from __future__ import annotations

from engine.algebra.nodes import Exists, InnerJoin, Node, OuterJoin, UnionAll
from engine.algebra.trees import padded
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of


@change_of.register
def _(node: OuterJoin) -> Node:
    return delta(taken_apart(node))


def taken_apart(node: OuterJoin) -> Node:
    """The same rows by operators that have rules of their own."""
    parts: list[Node] = [InnerJoin((node.left, node.right), node.conditions)]
    parts.append(padded(Exists(node.left, node.right, node.conditions, negated=True), node.columns))
    if node.full:
        parts.append(padded(Exists(node.right, node.left, node.conditions, negated=True), node.columns))
    return UnionAll(tuple(parts))


@rule_of.register
def _(node: OuterJoin) -> Rule:
    sides = "rows of either side" if node.full else "left rows"
    return Rule("inner ∪ without partner", f"telescoping, and {sides} whose partners may have come or gone")
