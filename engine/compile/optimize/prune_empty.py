"""Removes branches that have no rows: changes of sources that did not change, and all that follows from them.

What a source was at the frontier is what it is now, where it did not change; `bind` has replaced those leaves.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    Aggregate,
    Empty,
    Filter,
    InnerJoin,
    LeftJoin,
    Node,
    Numbered,
    Output,
    Project,
    Repeat,
    SemiJoin,
    UnionAll,
    rewrite,
)
from engine.algebra.scalars import cast, col, null


def prune_empty(root: Node) -> Node:
    return rewrite(root, _prune)


def _prune(node: Node) -> Node:
    match node:
        case (
            Filter(input=Empty())
            | Project(input=Empty())
            | Numbered(input=Empty())
            | Repeat(input=Empty())
            | LeftJoin(left=Empty())
            | SemiJoin(input=Empty())
            | SemiJoin(touched=Empty())
        ):
            return Empty(node.columns)
        case InnerJoin() if any(isinstance(member, Empty) for member in node.members):
            return Empty(node.columns)
        case Aggregate(input=Empty()) if node.keys:
            return Empty(node.columns)
        case LeftJoin(right=Empty(fields=fields)):
            nothing = tuple(Output(each.name, cast(null(), each.type), each.type) for each in fields)
            kept = tuple(Output(each.name, col(each.name), each.type) for each in node.left.columns)
            return Project(node.left, (*kept, *nothing))
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
    if first.names != node.names or [c.name for c in first.columns] != [c.name for c in node.columns]:
        # The union took its names from a member that went.
        renamed = tuple(
            Output(mine.name, col(own.name), mine.type) for mine, own in zip(node.columns, first.columns, strict=True)
        )
        first = Project(first, renamed)
    return first if len(members) == 1 else UnionAll((first, *members[1:]))
