"""Moves "only the touched keys" from above a query down to the inputs that have those keys.

A SemiJoin commutes with what works row by row, and with a join when one input has all its keys, or what the join says
to be equal to them. So the other sides of a join are read only for keys that occur in the change.
"""

from __future__ import annotations

from dataclasses import replace

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
from engine.compile.equalities import equal_columns


def push_touched_keys(root: Node) -> Node:
    return rewrite(root, lambda node: pushed(node) if isinstance(node, SemiJoin) else node)


def pushed(node: SemiJoin) -> Node:
    """As far down as it goes."""
    source, pairs = node.input, node.pairs
    wanted = frozenset().union(*(scalar.columns for scalar, _ in pairs))
    if not wanted:
        return node  # a row over everything is there or not, and is not made of fewer rows
    match source:
        case Filter() | Explode() | Repeat() | Exists() if wanted <= source.inputs[0].names:
            return source.with_inputs((_onto(source.inputs[0], node, pairs), *source.inputs[1:]))
        case Project(input=below, outputs=outputs):
            values = {output.name: output.scalar for output in outputs}
            moved = tuple((scalar.substitute(values), name) for scalar, name in pairs)
            return Project(_onto(below, node, moved), outputs)
        case Window() if wanted <= frozenset(source.partition):
            return source.with_inputs((_onto(source.input, node, pairs),))
        case Aggregate() if wanted <= {key.name for key in source.keys}:
            keys = {key.name: key.scalar for key in source.keys}
            moved = tuple((scalar.substitute(keys), name) for scalar, name in pairs)
            return source.with_inputs((_onto(source.input, node, moved),))
        case OuterJoin(full=False) if wanted <= source.left.names:
            return source.with_inputs((_onto(source.left, node, pairs), source.right))
        case UnionAll():
            return UnionAll(tuple(_onto(each, node, _for(source, each, pairs)) for each in source.members))
        case InnerJoin(members=members, conditions=conditions):
            known = [_known_to(member, pairs, source) for member in members]
            index = max(range(len(members)), key=lambda each: len(known[each]))
            if not known[index]:
                return node
            cut_down = _onto(members[index], node, known[index])
            joined = InnerJoin((*members[:index], cut_down, *members[index + 1 :]), conditions)
            # a member that has some of the keys is cut down by these, and what comes out by all of them
            return joined if node.only_saves or len(known[index]) == len(pairs) else replace(node, input=joined)
        case SemiJoin() if node.only_saves and (inside := _among(source, node)) is not None:
            return replace(source, touched=inside)
        case _:
            return node


def _among(source: SemiJoin, keys: SemiJoin) -> Node | None:
    """The keys of a semi join that are also among others; None where these are other columns."""
    columns = {scalar: column for scalar, column in source.pairs}
    if not all(scalar in columns for scalar, _ in keys.pairs):
        return None
    pairs = tuple((col(columns[scalar]), name) for scalar, name in keys.pairs)
    return replace(keys, input=source.touched, pairs=pairs)


def _onto(below: Node, keys: SemiJoin, pairs: Pairs) -> Node:
    return pushed(replace(keys, input=below, pairs=pairs))


def _known_to(member: Node, pairs: Pairs, join: InnerJoin) -> Pairs:
    """The keys that a member has, by itself or as what the join says to be equal to them."""
    equal = {
        column: col(other) for column, other in equal_columns(join.conditions, join.types) if other in member.names
    }
    found = ((scalar if scalar.columns <= member.names else scalar.substitute(equal), name) for scalar, name in pairs)
    return tuple((scalar, name) for scalar, name in found if scalar.columns <= member.names)


def _for(union: UnionAll, member: Node, pairs: Pairs) -> Pairs:
    """Columns of a union are those of its first member, by position."""
    names = {column.name: col(own.name) for column, own in zip(union.columns, member.columns, strict=True)}
    return tuple((scalar.substitute(names), name) for scalar, name in pairs)
