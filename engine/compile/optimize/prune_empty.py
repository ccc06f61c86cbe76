"""Removes branches that have no rows: changes of sources that did not change, and all that follows from them.

What a source was at the frontier is what it is now, where it did not change; `bind` has replaced those leaves.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    Aggregate,
    Empty,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Output,
    Project,
    Recursion,
    Repeat,
    SemiJoin,
    UnionAll,
    Window,
    keep,
)
from engine.algebra.scalars import cast, col, null
from engine.algebra.trees import rewrite


def prune_empty(root: Node) -> Node:
    return rewrite(root, _prune)


def _prune(node: Node) -> Node:
    match node:
        case (
            Filter(input=Empty())
            | Project(input=Empty())
            | Window(input=Empty())
            | Explode(input=Empty())
            | Repeat(input=Empty())
            | OuterJoin(left=Empty(), full=False)
            | OuterJoin(left=Empty(), right=Empty())
            | SemiJoin(input=Empty())
            | SemiJoin(touched=Empty())
            | Exists(input=Empty())
            | Recursion(base=Empty())
            | Exists(other=Empty(), negated=False)
        ):
            return Empty(node.columns)
        case InnerJoin() if any(isinstance(member, Empty) for member in node.members):
            return Empty(node.columns)
        case Aggregate(input=Empty()) if node.keys:
            return Empty(node.columns)
        case Exists(other=Empty(), negated=True):
            return node.input
        case OuterJoin(right=Empty(), full=False):
            nothing = tuple(Output(c.name, cast(null(), c.type), c.type) for c in node.right.columns)
            return Project(node.left, (*keep(node.left.columns), *nothing))
        case UnionAll():
            return _union(node)
        case _:
            return node


def _union(node: UnionAll) -> Node:
    members = tuple(member for member in node.members if not isinstance(member, Empty))
    if len(members) == len(node.members):
        return node
    if not members:
        return Empty(node.columns)
    first = members[0]
    if [c.name for c in first.columns] != [c.name for c in node.columns]:
        # The union took its names from a member that went.
        renamed = tuple(
            Output(mine.name, col(own.name), mine.type) for mine, own in zip(node.columns, first.columns, strict=True)
        )
        first = Project(first, renamed)
    return first if len(members) == 1 else UnionAll((first, *members[1:]))
