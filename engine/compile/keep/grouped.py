"""Queries that end in groups: an aggregate, perhaps a HAVING, and what is computed of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.algebra.nodes import Aggregate, Filter, Node, Output, Project, keep
from engine.algebra.scalars import Scalar, col, lit
from engine.records import Column

#: the key of the only row of an aggregate without GROUP BY
ONE = "__trickle_one"


@dataclass(frozen=True)
class Grouped:
    aggregate: Aggregate
    having: Scalar | None
    #: projections above the aggregate, the lowest first
    layers: tuple[tuple[Output, ...], ...]

    @property
    def shown(self) -> dict[str, str]:
        """The columns of the aggregate that the query puts out as they are, with the names that they have there."""
        names = {column.name: column.name for column in self.aggregate.columns}
        for layer in self.layers:
            above = {output.scalar.as_column: output.name for output in reversed(layer)}
            names = {below: above[name] for below, name in names.items() if name in above}
        return names

    def over(self, groups: Node, values: Mapping[str, Scalar], *besides: Output) -> Project:
        """The layers over groups that have the columns of the aggregate, or what gives their `values`."""
        needed = frozenset[str]().union(*(output.scalar.columns for output in besides))
        lowest = tuple(replace(each, scalar=each.scalar.substitute(values)) for each in self.layers[0])
        *below, highest = (lowest, *self.layers[1:])
        made = groups
        for layer in below:
            there = {output.name for output in layer}
            passed = keep(tuple(each for each in groups.columns if each.name in needed - there))
            made = Project(made, (*layer, *passed))
        return Project(made, (*highest, *besides))


def grouped(root: Node) -> Grouped | None:
    layers: list[tuple[Output, ...]] = []
    node = root
    while isinstance(node, Project):
        layers.append(node.outputs)
        node = node.input
    if not layers:
        return None
    match node:
        case Aggregate():
            return Grouped(node, None, tuple(reversed(layers)))
        case Filter(input=Aggregate() as aggregate, predicate=predicate) if aggregate.keys:
            return Grouped(aggregate, predicate, tuple(reversed(layers)))
        case _:
            return None


@dataclass(frozen=True)
class GroupKeys:
    """What identifies a group in the stored table."""

    #: columns of the stored table, one for each key of the aggregate, in their order
    identity: tuple[str, ...]
    #: those that the query does not put out, over the aggregate's columns
    hidden: tuple[Output, ...]

    @property
    def hidden_columns(self) -> tuple[Column, ...]:
        return tuple(Column(each.name, each.type) for each in self.hidden)


def group_keys(found: Grouped) -> GroupKeys:
    if not found.aggregate.keys:
        return GroupKeys((ONE,), (Output(ONE, lit(1), "int"),))
    identity: list[str] = []
    hidden: list[Output] = []
    for number, key in enumerate(found.aggregate.keys, start=1):
        name = found.shown.get(key.name)
        if name is None:
            name = f"__trickle_key_{number}"
            hidden.append(Output(name, col(key.name), key.type))
        identity.append(name)
    return GroupKeys(tuple(identity), tuple(hidden))
