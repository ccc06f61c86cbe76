"""Operators that work row by row: the change of the result is the operator applied to the change."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.nodes import WEIGHT, Empty, Filter, Node, Output, Project, Role, Scan, UnionAll
from engine.algebra.scalars import col
from engine.compile.differentiate.dispatch import Rule, delta, rule_of
from engine.records import Column

PASS_WEIGHT = Output(WEIGHT, col(WEIGHT), "int")


@delta.register
def _(node: Scan) -> Node:
    return replace(node, leaf=replace(node.leaf, role=Role.DELTA), fields=(*node.fields, (WEIGHT, WEIGHT, "int")))


@delta.register
def _(node: Filter) -> Node:
    return Filter(delta(node.input), node.predicate)


@delta.register
def _(node: Project) -> Node:
    return Project(delta(node.input), (*node.outputs, PASS_WEIGHT))


@delta.register
def _(node: UnionAll) -> Node:
    return UnionAll(tuple(delta(member) for member in node.members))


@delta.register
def _(node: Empty) -> Node:
    return Empty((*node.fields, Column(WEIGHT, "int")))


@rule_of.register
def _(node: Scan) -> Rule:
    return Rule("change feed", "the rows that commits since the frontier inserted and deleted")


@rule_of.register(Filter)
@rule_of.register(Project)
@rule_of.register(UnionAll)
def _(node: Node) -> Rule:
    return Rule("linear", "applied to the change alone")
