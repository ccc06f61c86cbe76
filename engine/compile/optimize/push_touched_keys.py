"""Moves "only the touched keys" from above a query down to the inputs that have those keys.

A SemiJoin commutes with what works row by row, and with a join when one input has all its keys. So the other
sides of a join are read only for keys that occur in the change.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    UnionAll,
    Window,
)
from engine.algebra.scalars import col
from engine.algebra.trees import rewrite
from engine.compile.differentiate.touched import Pairs


def push_touched_keys(root: Node) -> Node:
    return rewrite(root, lambda node: _push(node) if isinstance(node, SemiJoin) and node.pairs else node)


def _push(node: SemiJoin) -> Node:
    source, touched, pairs = node.input, node.touched, node.pairs
    wanted = frozenset().union(*(scalar.columns for scalar, _ in pairs))
    match source:
        case Filter() | Explode() | Repeat() | Exists() if wanted <= source.inputs[0].names:
            return source.with_inputs((_push(SemiJoin(source.inputs[0], touched, pairs)), *source.inputs[1:]))
        case Project(input=below, outputs=outputs):
            values = {output.name: output.scalar for output in outputs}
            moved = tuple((scalar.substitute(values), name) for scalar, name in pairs)
            return Project(_push(SemiJoin(below, touched, moved)), outputs)
        case Window() if wanted <= frozenset(source.partition):
            return source.with_inputs((_push(SemiJoin(source.input, touched, pairs)),))
        case Aggregate() if wanted and wanted <= {key.name for key in source.keys}:
            keys = {key.name: key.scalar for key in source.keys}
            moved = tuple((scalar.substitute(keys), name) for scalar, name in pairs)
            return source.with_inputs((_push(SemiJoin(source.input, touched, moved)),))
        case OuterJoin(full=False) if wanted and wanted <= source.left.names:
            return source.with_inputs((_push(SemiJoin(source.left, touched, pairs)), source.right))
        case UnionAll():
            return UnionAll(tuple(_push(SemiJoin(each, touched, _for(source, each, pairs))) for each in source.members))
        case InnerJoin(members=members, conditions=conditions):
            for index, member in enumerate(members):
                if wanted and wanted <= member.names:
                    pushed = _push(SemiJoin(member, touched, pairs))
                    return InnerJoin((*members[:index], pushed, *members[index + 1 :]), conditions)
            return node
        case _:
            return node


def _for(union: UnionAll, member: Node, pairs: Pairs) -> Pairs:
    """Columns of a union are those of its first member, by position."""
    names = {column.name: col(own.name) for column, own in zip(union.columns, member.columns, strict=True)}
    return tuple((scalar.substitute(names), name) for scalar, name in pairs)
