"""Reads only columns that something above needs."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from engine.algebra.nodes import (
    Aggregate,
    Aggregation,
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
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
)
from engine.algebra.scalars import col
from engine.errors import InternalError

Names = frozenset[str]


def prune_columns(root: Node) -> Node:
    needed = _needed_by_all(root)
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            inputs = tuple(visit(child) for child in node.inputs)
            if isinstance(node, UnionAll):
                inputs = _aligned(node, inputs, needed[id(node)])
            done[id(node)] = narrow(node, needed[id(node)]).with_inputs(inputs)
        return done[id(node)]

    return visit(root)


def _needed_by_all(root: Node) -> dict[int, Names]:
    """What the users of each subtree need of it, all together."""
    order: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.inputs:
                visit(child)
            order.append(node)

    visit(root)
    needed = {id(node): frozenset[str]() for node in order}
    needed[id(root)] = root.names
    for node in reversed(order):  # users before what they use
        for child, names in zip(node.inputs, asked(node, needed[id(node)]), strict=True):
            needed[id(child)] |= names & child.names
    return needed


@singledispatch
def asked(node: Node, needed: Names) -> tuple[Names, ...]:
    """What an operator needs of each of its inputs, when `needed` is needed of it."""
    raise InternalError(f"prune_columns does not know {type(node).__name__}")


@singledispatch
def narrow(node: Node, needed: Names) -> Node:
    """The operator without what nobody needs; its inputs are replaced afterwards."""
    return node


@asked.register(Scan)
@asked.register(Empty)
@asked.register(Values)
def _(node: Node, needed: Names) -> tuple[Names, ...]:
    return ()


@narrow.register
def _(node: Scan, needed: Names) -> Node:
    fields = tuple(each for each in node.fields if each[0] in needed)
    return node if fields == node.fields else replace(node, fields=fields)


@narrow.register
def _(node: Empty, needed: Names) -> Node:
    fields = tuple(each for each in node.fields if each.name in needed)
    return node if fields == node.fields else Empty(fields)


@asked.register
def _(node: Filter, needed: Names) -> tuple[Names, ...]:
    return (needed | node.predicate.columns,)


@asked.register
def _(node: Project, needed: Names) -> tuple[Names, ...]:
    used = [output.scalar.columns for output in node.outputs if output.name in needed]
    return (frozenset().union(*used),)


@narrow.register
def _(node: Project, needed: Names) -> Node:
    outputs = tuple(output for output in node.outputs if output.name in needed)
    return node if outputs == node.outputs else Project(node.input, outputs)


@asked.register
def _(node: InnerJoin, needed: Names) -> tuple[Names, ...]:
    used = needed.union(*(condition.columns for condition in node.conditions))
    return tuple(used for _ in node.members)


@asked.register
def _(node: OuterJoin, needed: Names) -> tuple[Names, ...]:
    used = needed.union(*(condition.columns for condition in node.conditions))
    return (used, used)


@asked.register
def _(node: SemiJoin, needed: Names) -> tuple[Names, ...]:
    return (
        needed.union(*(scalar.columns for scalar, _ in node.pairs)),
        frozenset(name for _, name in node.pairs),
    )


@asked.register
def _(node: Aggregate, needed: Names) -> tuple[Names, ...]:
    used = [key.scalar.columns for key in node.keys]
    used += [made.call.columns for made in _kept(node, needed)]
    return (frozenset().union(*used),)


@narrow.register
def _(node: Aggregate, needed: Names) -> Node:
    kept = _kept(node, needed)
    return node if kept == node.aggregations else replace(node, aggregations=kept)


def _kept(node: Aggregate, needed: Names) -> tuple[Aggregation, ...]:
    kept = tuple(made for made in node.aggregations if made.name in needed)
    # Without keys it is the aggregations that make the one row.
    return kept if kept or node.keys else node.aggregations


@asked.register
def _(node: UnionAll, needed: Names) -> tuple[Names, ...]:
    wanted = [index for index, column in enumerate(node.columns) if column.name in needed]
    return tuple(frozenset(member.columns[index].name for index in wanted) for member in node.members)


@asked.register
def _(node: Exists, needed: Names) -> tuple[Names, ...]:
    used = frozenset().union(*(condition.columns for condition in node.conditions))
    return (needed | used, used)


@asked.register
def _(node: Window, needed: Names) -> tuple[Names, ...]:
    used = [made.call.columns for made in node.functions if made.name in needed]
    return (needed.union(*used, node.partition),)


@narrow.register
def _(node: Window, needed: Names) -> Node:
    kept = tuple(made for made in node.functions if made.name in needed)
    return node if kept == node.functions else replace(node, functions=kept)


@asked.register
def _(node: Explode, needed: Names) -> tuple[Names, ...]:
    return (needed | node.call.columns,)


@asked.register
def _(node: Recursion, needed: Names) -> tuple[Names, ...]:
    # what the step needs of the round before is needed of every round
    return (node.base.names, node.step.names)


@asked.register
def _(node: Repeat, needed: Names) -> tuple[Names, ...]:
    return (needed | {node.times},)


def _aligned(union: UnionAll, members: tuple[Node, ...], needed: Names) -> tuple[Node, ...]:
    """Columns of a union count by position, and members may have kept more, for conditions of their own."""
    wanted = [index for index, column in enumerate(union.columns) if column.name in needed]
    return tuple(
        _exactly(narrowed, tuple(original.columns[index].name for index in wanted))
        for original, narrowed in zip(union.members, members, strict=True)
    )


def _exactly(member: Node, names: tuple[str, ...]) -> Node:
    """The member with just these columns, in this order."""
    if tuple(column.name for column in member.columns) == names:
        return member
    types = {column.name: column.type for column in member.columns}
    return Project(member, tuple(Output(name, col(name), types[name]) for name in names))
