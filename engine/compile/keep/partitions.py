"""Into which parts a result falls, such that each row of the sources has to do with few of them.

Any exact columns would do: what changed is in the parts of the rows that the change brings or takes, and all else is as
it was. The keys of groups and partitions make parts of which a small change touches few.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Output,
    Project,
    Window,
)
from engine.algebra.scalars import col
from engine.compile.exactness import inexact_columns

#: names of columns
Names = tuple[str, ...]


def has_parts(root: Node) -> bool:
    """Is a window the outermost thing that is not row by row?"""
    match root:
        case Window():
            return True
        case Project() | Filter():
            return has_parts(root.input)
        case _:
            return False


def with_parts(root: Project) -> tuple[Project, Names]:
    """The result with the columns that cut it into parts; those that it did not have stand last."""
    wide, found = carried(root.input)
    shown = {output.scalar.as_column: output.name for output in reversed(root.outputs)}
    exact = inexact_columns(wide)
    hidden: list[Output] = []
    names: list[str] = []
    for name in dict.fromkeys(found):
        if name in exact:
            continue
        if name not in shown:
            hidden.append(Output(f"__trickle_key_{len(hidden) + 1}", col(name), wide.types[name]))
        names.append(shown.get(name) or hidden[-1].name)
    outputs = (*root.outputs, *hidden)
    return Project(wide, outputs), tuple(names)


@singledispatch
def carried(node: Node) -> tuple[Node, Names]:
    """The operator with the columns of its parts among its columns. Without names: it is all one part."""
    return node, ()


@carried.register
def _(node: Aggregate) -> tuple[Node, Names]:
    return node, tuple(key.name for key in node.keys)


@carried.register
def _(node: Window) -> tuple[Node, Names]:
    return node, node.partition


@carried.register(Filter)
@carried.register(Exists)
@carried.register(Explode)
def _(node: Filter | Exists | Explode) -> tuple[Node, Names]:
    below, names = carried(node.input)
    return replace(node, input=below), names


@carried.register
def _(node: Project) -> tuple[Node, Names]:
    below, names = carried(node.input)
    shown = {output.scalar.as_column: output.name for output in reversed(node.outputs)}
    more = tuple(Output(name, col(name), below.types[name]) for name in names if name not in shown)
    return Project(below, (*node.outputs, *more)), tuple(shown.get(name, name) for name in names)


@carried.register
def _(node: InnerJoin) -> tuple[Node, Names]:
    members = _apart(
        node, [carried(each) if inexact_columns(each) or has_parts(each) else (each, ()) for each in node.members]
    )
    names = tuple(name for _, names in members for name in names)
    return InnerJoin(tuple(each for each, _ in members), node.conditions), names


@carried.register
def _(node: OuterJoin) -> tuple[Node, Names]:
    sides = [carried(each) if inexact_columns(each) else (each, ()) for each in (node.left, node.right)]
    (left, mine), (right, others) = _apart(node, sides)
    return replace(node, left=left, right=right), mine + others


def _apart(join: Node, sides: list[tuple[Node, Names]]) -> list[tuple[Node, Names]]:
    """What is joined twice, under other names each time, carries the same columns twice: they are told apart."""
    taken = {name for each in join.inputs for name in each.names}
    found: list[tuple[Node, Names]] = []
    for side, (wide, names) in zip(join.inputs, sides, strict=True):
        renamed: dict[str, str] = {}
        for name in sorted(wide.names - side.names):
            other, number = name, 1
            while other in taken:
                number += 1
                other = renamed[name] = f"{name}_{number}"
            taken.add(other)
        if renamed:
            outputs = (Output(renamed.get(c.name, c.name), col(c.name), c.type) for c in wide.columns)
            wide, names = Project(wide, tuple(outputs)), tuple(renamed.get(name, name) for name in names)
        found.append((wide, names))
    return found
