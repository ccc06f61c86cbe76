"""Outer joins: the inner join, and beside it the rows that have no partner, padded with NULLs."""

from __future__ import annotations

from engine.algebra.nodes import Exists, InnerJoin, Node, OuterJoin, Output, Project, UnionAll
from engine.algebra.scalars import cast, col, null
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of


@change_of.register
def _(node: OuterJoin) -> Node:
    return delta(taken_apart(node))


def taken_apart(node: OuterJoin) -> Node:
    """The same rows by operators that have rules of their own."""
    parts: list[Node] = [InnerJoin((node.left, node.right), node.conditions)]
    parts.append(_padded(node, Exists(node.left, node.right, node.conditions, negated=True)))
    if node.full:
        parts.append(_padded(node, Exists(node.right, node.left, node.conditions, negated=True)))
    return UnionAll(tuple(parts))


def _padded(node: OuterJoin, alone: Node) -> Node:
    there = alone.names
    return Project(
        alone,
        tuple(
            Output(each.name, col(each.name) if each.name in there else cast(null(), each.type), each.type)
            for each in node.columns
        ),
    )


@rule_of.register
def _(node: OuterJoin) -> Rule:
    sides = "rows of either side" if node.full else "left rows"
    return Rule("inner ∪ without partner", f"telescoping, and {sides} whose partners may have come or gone")
