"""Moves each condition as far down as its columns allow, and conditions between inputs into the join."""

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
    UnionAll,
    Window,
)
from engine.algebra.scalars import Scalar, all_of, col, conjuncts
from engine.algebra.trees import rewrite


def push_filters(root: Node) -> Node:
    return rewrite(root, _push)


def _push(node: Node) -> Node:
    match node:
        case Filter(input=source, predicate=predicate):
            return _into(source, conjuncts(predicate), node)
        case InnerJoin(conditions=conditions):
            # ON conditions of an inner join are filters too.
            single = tuple(each for each in conditions if any(each.columns <= m.names for m in node.members))
            if not single:
                return node
            rest = tuple(each for each in conditions if each not in single)
            return _into(InnerJoin(node.members, rest), single, node)
        case _:
            return node


def _into(source: Node, conditions: tuple[Scalar, ...], original: Node) -> Node:
    match source:
        case Filter():
            return _into(source.input, conjuncts(source.predicate) + conditions, original)
        case Project():
            # Only over columns that are passed on: a computed one would be computed twice.
            passed = {output.name: output.scalar for output in source.outputs if output.scalar.as_column}
            below = tuple(each for each in conditions if each.columns <= passed.keys())
            above = tuple(each for each in conditions if each not in below)
            if not below:
                return _filter(source, above, original)
            moved = tuple(each.substitute(passed) for each in below)
            projected = Project(_into(source.input, moved, original), source.outputs)
            return _filter(projected, above, original) if above else projected
        case UnionAll():
            return UnionAll(tuple(_into_member(source, member, conditions, original) for member in source.members))
        case InnerJoin():
            return _into_join(source, conditions, original)
        case Aggregate() if source.keys:
            keys = {key.name: key.scalar for key in source.keys}
            below = tuple(each for each in conditions if each.columns <= keys.keys())
            above = tuple(each for each in conditions if each not in below)
            if not below:
                return _filter(source, above, original)
            moved = tuple(each.substitute(keys) for each in below)
            pushed = Aggregate(_into(source.input, moved, original), source.keys, source.aggregations)
            return _filter(pushed, above, original) if above else pushed
        case Window():
            # A condition on the partition keeps partitions whole.
            return _past(source, source.input, frozenset(source.partition), conditions, original)
        case Exists() | Explode() | Repeat():
            return _past(source, source.input, source.input.names, conditions, original)
        case OuterJoin(full=False):
            # The left side only: on the right a condition would make partners into NULLs.
            return _past(source, source.left, source.left.names, conditions, original)
        case _:
            return _filter(source, conditions, original)


def _past(source: Node, below: Node, names: frozenset[str], conditions: tuple[Scalar, ...], original: Node) -> Node:
    """Conditions on these columns go to the first input of an operator, which commutes with them."""
    moved = tuple(each for each in conditions if each.columns <= names)
    above = tuple(each for each in conditions if each not in moved)
    if not moved:
        return _filter(source, above, original)
    pushed = source.with_inputs((_into(below, moved, original), *source.inputs[1:]))
    return _filter(pushed, above, original) if above else pushed


def _into_member(union: UnionAll, member: Node, conditions: tuple[Scalar, ...], original: Node) -> Node:
    """Columns of a union are those of its first member, by position."""
    names = {column.name: col(own.name) for column, own in zip(union.columns, member.columns, strict=True)}
    return _into(member, tuple(each.substitute(names) for each in conditions), original)


def _into_join(join: InnerJoin, conditions: tuple[Scalar, ...], original: Node) -> Node:
    members = list(join.members)
    between: list[Scalar] = []
    for condition in conditions:
        homes = [i for i, member in enumerate(members) if condition.columns <= member.names]
        if homes:
            members[homes[0]] = _into(members[homes[0]], (condition,), original)
        else:
            between.append(condition)
    return InnerJoin(tuple(members), (*join.conditions, *between))


def _filter(source: Node, conditions: tuple[Scalar, ...], original: Node) -> Node:
    """The same object again where nothing moved, so that sharing and `changed` stay true."""
    if isinstance(original, Filter) and original.input is source:
        return original
    return Filter(source, all_of(conditions))
