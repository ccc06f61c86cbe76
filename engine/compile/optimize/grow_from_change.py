"""Orders the inputs of a join so that it grows from the change: first the change, then what is connected to it.

The change is small, so each step stays small and can be broadcast into the next input, instead of the next
input being shuffled to meet it.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.nodes import InnerJoin, Node, Output, Project, Role, SemiJoin
from engine.algebra.scalars import Scalar, col
from engine.algebra.trees import leaves, rewrite


def grow_from_change(root: Node) -> Node:
    return rewrite(root, lambda node: grown(node) if isinstance(node, InnerJoin) else node)


def grown(node: InnerJoin) -> Node:
    ordered = _connected_first(node.members, node.conditions)
    if all(mine is other for mine, other in zip(ordered, node.members, strict=True)):
        return node
    joined = replace(node, members=ordered)
    kept = tuple(Output(column.name, col(column.name), column.type) for column in node.columns)
    return Project(joined, kept)


def _connected_first(members: tuple[Node, ...], conditions: tuple[Scalar, ...]) -> tuple[Node, ...]:
    rest = sorted(members, key=_size_rank)  # stable: the order of the query where nothing is known
    ordered = [rest.pop(0)]
    while rest:
        have = frozenset().union(*(member.names for member in ordered))
        next_ = next((m for m in rest if any(_connects(c, have, m) for c in conditions)), rest[0])
        rest.remove(next_)
        ordered.append(next_)
    return tuple(ordered)


def _connects(condition: Scalar, have: frozenset[str], member: Node) -> bool:
    """Would adding this member make the condition usable, joining both sides?"""
    columns = condition.columns
    return columns <= have | member.names and bool(columns & have) and bool(columns & member.names)


def _size_rank(member: Node) -> int:
    """0 for a change, 1 for what is cut down to the keys of one, 2 for the rest."""
    if member.weighted:
        return 0
    cut_down = isinstance(member, SemiJoin) or any(leaf.leaf.role is Role.DELTA for leaf in leaves(member))
    return 1 if cut_down else 2
