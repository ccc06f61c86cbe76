"""What is done with whole trees: changed, searched, seen at the frontier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.algebra import scalars
from engine.algebra.aggregates import any_of_them, sum_of
from engine.algebra.comparable import comparable
from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Aggregation,
    Exists,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Output,
    Project,
    Role,
    Scan,
    Values,
    Window,
    keep,
)
from engine.algebra.scalars import Scalar, col, lit
from engine.algebra.types import has_float, is_orderable
from engine.records import Column


def rewrite(root: Node, change: Callable[[Node], Node]) -> Node:
    """Applies `change` to every operator, inputs first. What was shared stays shared."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            inputs = tuple(visit(child) for child in node.inputs)
            done[id(node)] = change(node.with_inputs(inputs))
        return done[id(node)]

    return visit(root)


def nodes_of(root: Node) -> tuple[Node, ...]:
    """Every operator once, inputs first."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in found:
            for child in node.inputs:
                visit(child)
            found[id(node)] = node

    visit(root)
    return tuple(found.values())


def leaves(root: Node) -> tuple[Scan, ...]:
    """Every scan of a relation, once. What a recursion has found so far is none."""
    found = (node for node in nodes_of(root) if isinstance(node, Scan))
    return tuple(scan for scan in found if scan.leaf.role is not Role.ITSELF)


def columns_by_leaf(*roots: Node) -> dict[Leaf, tuple[Column, ...]]:
    """What is read of each leaf, under the leaf's own names, wherever it is read."""
    found: dict[Leaf, dict[str, Column]] = {}
    for root in roots:
        for scan in leaves(root):
            found.setdefault(scan.leaf, {}).update((name, Column(name, type_)) for _, name, type_ in scan.fields)
    return {leaf: tuple(columns.values()) for leaf, columns in found.items()}


def at_frontier(root: Node) -> Node:
    """The same query over the sources as they were at the frontier. Each tree has one, so it can be shared."""
    known: Node | None = root.__dict__.get("_at_frontier")
    if known is None:
        if isinstance(root, Scan):
            known = replace(root, leaf=replace(root.leaf, role=Role.OLD)) if root.leaf.role is Role.NEW else root
        else:
            known = root.with_inputs(tuple(at_frontier(each) for each in root.inputs))
        root.__dict__["_at_frontier"] = known
    return known


def consolidate(changes: Node) -> Node:
    """Changes with one row for each distinct value, weighted by the net of what came and went."""
    value_columns = tuple(column for column in changes.columns if column.name != WEIGHT)
    net = Aggregation(WEIGHT, sum_of(col(WEIGHT)), "bigint")
    compared = {column.name: _made_comparable(column) for column in value_columns if is_lost_in_keys(column.type)}
    if not compared:
        grouped = Aggregate(changes, keep(value_columns), (net,))
        return Filter(grouped, scalars.ne(col(WEIGHT), lit(0)))
    # any of the values that are equal: what they are compared by is not what they are
    keys = tuple(compared.get(c.name) or Output(c.name, col(c.name), c.type) for c in value_columns)
    ones = tuple(Aggregation(c.name, any_of_them(col(c.name)), c.type) for c in value_columns if c.name in compared)
    wide = Project(changes, (*keep(changes.columns), *compared.values()))
    grouped = Aggregate(wide, tuple(replace(key, scalar=col(key.name)) for key in keys), (*ones, net))
    return Project(Filter(grouped, scalars.ne(col(WEIGHT), lit(0))), keep((*value_columns, Column(WEIGHT, "bigint"))))


def is_lost_in_keys(type_: str) -> bool:
    """Spark makes 0.0 of a key that is -0.0, and compares no maps."""
    return has_float(type_) or not is_orderable(type_)


def _made_comparable(column: Column) -> Output:
    value, type_ = comparable(col(column.name), column.type) or (col(column.name), column.type)
    return Output(f"__as_{column.name}", value, type_)


def weighted(rows: Node, weight: int) -> Node:
    """Rows as a change: all of them came, or all went."""
    return Project(rows, (*keep(rows.columns), Output(WEIGHT, lit(weight), "int")))


def distinct(rows: Node) -> Node:
    return Aggregate(rows, keep(rows.columns), ())


def inner_join(members: tuple[Node, ...], conditions: tuple[Scalar, ...]) -> InnerJoin:
    """Inner joins of inner joins are one, however they were nested."""
    flat = tuple(part for each in members for part in (each.members if isinstance(each, InnerJoin) else (each,)))
    inside = tuple(part for each in members if isinstance(each, InnerJoin) for part in each.conditions)
    return InnerJoin(flat, (*inside, *conditions))


def padded(alone: Node, columns: tuple[Column, ...]) -> Project:
    """One side of an outer join beside NULLs, with the columns of both."""
    there = alone.names
    return Project(
        alone,
        tuple(
            Output(
                each.name, col(each.name) if each.name in there else scalars.cast(scalars.null(), each.type), each.type
            )
            for each in columns
        ),
    )


def has_one_row(node: Node) -> bool:
    """At most one, whatever the sources say."""
    match node:
        case Values():
            return len(node.rows) == 1
        case Aggregate():
            return not node.keys
        case Project() | Filter() | Window() | Exists():
            return has_one_row(node.inputs[0])
        case InnerJoin() | OuterJoin(full=False):
            return all(map(has_one_row, node.inputs))
        case _:
            return False
