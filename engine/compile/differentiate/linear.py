"""Operators that work row by row: the change of the result is the operator applied to the change."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.nodes import (
    WEIGHT,
    Empty,
    Explode,
    Filter,
    Node,
    Output,
    Project,
    Repeat,
    Role,
    Scan,
    UnionAll,
    Values,
)
from engine.algebra.scalars import col
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.records import Column

PASS_WEIGHT = Output(WEIGHT, col(WEIGHT), "int")


@change_of.register
def _(node: Scan) -> Node:
    if node.leaf.role is Role.STORED:
        # what is stored is what it was; the refresh changes it after all is computed
        return Empty((*node.columns, Column(WEIGHT, "int")))
    return replace(node, leaf=replace(node.leaf, role=Role.DELTA), fields=(*node.fields, (WEIGHT, WEIGHT, "int")))


@change_of.register
def _(node: Values) -> Node:
    return Empty((*node.fields, Column(WEIGHT, "int")))


@change_of.register
def _(node: Filter) -> Node:
    return Filter(delta(node.input), node.predicate)


@change_of.register
def _(node: Project) -> Node:
    return Project(delta(node.input), (*node.outputs, PASS_WEIGHT))


@change_of.register
def _(node: UnionAll) -> Node:
    return UnionAll(tuple(delta(member) for member in node.members))


@change_of.register
def _(node: Explode) -> Node:
    made = replace(node, input=delta(node.input))
    return Project(made, tuple(Output(c.name, col(c.name), c.type) for c in (*node.columns, Column(WEIGHT, "int"))))


@change_of.register
def _(node: Repeat) -> Node:
    return replace(node, input=delta(node.input))


@change_of.register
def _(node: Empty) -> Node:
    return Empty((*node.fields, Column(WEIGHT, "int")))


@rule_of.register
def _(node: Scan) -> Rule:
    return Rule("change feed", "the rows that commits since the frontier inserted and deleted")


@rule_of.register
def _(node: Values) -> Rule:
    return Rule("constant", "it stands in the query and never changes")


@rule_of.register(Filter)
@rule_of.register(Project)
@rule_of.register(UnionAll)
@rule_of.register(Explode)
@rule_of.register(Repeat)
def _(node: Node) -> Rule:
    return Rule("linear", "applied to the change alone")
