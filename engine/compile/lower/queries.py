"""Queries of every kind: SELECT, WITH, UNION and its kin, VALUES."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.algebra.aggregates import sum_of
from engine.algebra.nodes import Aggregate, Aggregation, Filter, Node, Output, Project, Repeat, UnionAll, Values, keep
from engine.algebra.scalars import Scalar, all_of, cast, col, eq, gt, least, lit, subtract
from engine.algebra.trees import distinct
from engine.compile.lower.context import Context, Definition, Environment, Lowered, Source
from engine.compile.lower.correlation import with_domain
from engine.compile.lower.ordering import limit_of, limited, order_of, refuse_limit_without_order
from engine.compile.lower.select import lower_select
from engine.compile.scope import Scope, Visible
from engine.errors import UnsupportedOperator
from engine.records import Column

HERE, THERE = "__here", "__there"


def lower_query(context: Context, tree: exp.Expr, environment: Environment) -> Lowered:
    environment = _with_definitions(context, tree, environment)
    match tree:
        case exp.Subquery():
            return _clauses(context, tree, lower_query(context, tree.this, environment))
        case exp.Select():
            try:
                return lower_select(context, tree, environment)
            except UnsupportedOperator as error:
                context.place(error, tree)
                raise
        case exp.SetOperation():
            return _clauses(context, tree, _set_operation(context, tree, environment))
        case exp.Values():
            return _values(context, tree)
        case exp.Table():
            star = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree.copy()))
            star.meta.update(tree.meta)
            return lower_select(context, star, environment)
        case _:
            raise context.unsupported(tree, f"{type(tree).__name__.upper()} as a query")


def _with_definitions(context: Context, tree: exp.Expr, environment: Environment) -> Environment:
    with_ = tree.args.get("with_")
    if with_ is None:
        return environment
    for cte in with_.expressions:
        # A definition sees only those before it.
        environment = environment.with_definition(cte.alias, Definition(cte, replace(environment, as_value=False)))
    return environment


def _clauses(context: Context, tree: exp.Expr, lowered: Lowered) -> Lowered:
    """ORDER BY and LIMIT behind parentheses or a set operation: over its outputs."""
    limit, offset, order = limit_of(tree), tree.args.get("offset"), tree.args.get("order")
    if limit is None and offset is None:
        if order is not None:
            context.ignore_order(order)
        return lowered
    refuse_limit_without_order(context, tree)
    source = Source(lowered.node, Scope(lowered.visible), lowered.domain)
    keys = order_of(context, order, source, lowered.visible)
    return limited(context, lowered, keys, limit, offset)


# ------------------------------------------------------------------ VALUES


def _values(context: Context, tree: exp.Values) -> Lowered:
    rows = tuple(
        tuple(Scalar(value) for value in (row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]))
        for row in tree.expressions
    )
    fields = tuple(context.names.fresh("", f"col{index}") for index, _ in enumerate(rows[0], start=1))
    constants = Values(tuple(Column(name, "") for name in fields), rows)
    found = context.typing(constants)
    typed = tuple(replace(column, name=name) for column, name in zip(found, fields, strict=True))
    cast_rows = tuple(
        tuple(cast(value, column.type) if column.type else value for value, column in zip(row, typed, strict=True))
        for row in rows
    )
    visible = tuple(Visible("", f"col{index}", name) for index, name in enumerate(fields, start=1))
    return Lowered(Values(typed, cast_rows), visible)


# ------------------------------------------------------------------ set operations


def _set_operation(context: Context, tree: exp.SetOperation, environment: Environment) -> Lowered:
    if tree.args.get("by_name"):
        raise context.unsupported(tree, "a set operation BY NAME")
    environment = replace(environment, as_value=False)
    left = lower_query(context, tree.left, environment)
    right = lower_query(context, tree.right, environment)
    if len(left.visible) != len(right.visible):
        raise context.misread(tree, f"{len(left.visible)} columns cannot stand above {len(right.visible)}")
    if left.domain or right.domain:
        left, right = (_for_domain(context, each, environment) for each in (left, right))
    one, other = context.aligned((left.in_order(), right.in_order()))
    is_all = not tree.args.get("distinct")
    match tree:
        case exp.Union():
            node: Node = UnionAll((one, other)) if is_all else distinct(UnionAll((one, other)))
        case exp.Intersect():
            node = _counted(one, other, intersect=True, is_all=is_all)
        case exp.Except():
            node = _counted(one, other, intersect=False, is_all=is_all)
        case _:
            raise context.unsupported(tree, type(tree).__name__.upper())
    # the union has its columns' names from its left side, which may be used elsewhere
    renamed, names = context.renamed(node)
    visible = tuple(Visible("", each.name, names[each.own]) for each in left.visible)
    return Lowered(renamed, visible, tuple(names[each] for each in left.domain))


def _for_domain(context: Context, lowered: Lowered, environment: Environment) -> Lowered:
    source = with_domain(context, Source(lowered.node, Scope(), lowered.domain), environment)
    return replace(lowered, node=source.node, domain=source.domain)


def _counted(left: Node, right: Node, *, intersect: bool, is_all: bool) -> Node:
    """INTERSECT and EXCEPT by counting how often a row is on either side."""
    columns = left.columns
    marked = UnionAll((_marked(left, 1, 0), _marked(right, 0, 1)))
    counts = tuple(Aggregation(name, sum_of(col(name)), "bigint") for name in (HERE, THERE))
    counted = Aggregate(marked, keep(columns), counts)
    here, there = col(HERE), col(THERE)
    if not is_all:
        other_side = gt(there, lit(0)) if intersect else eq(there, lit(0))
        return Project(Filter(counted, all_of((gt(here, lit(0)), other_side))), keep(columns))
    times = least(here, there) if intersect else subtract(here, there)
    wanted = Project(counted, (*keep(columns), Output(THERE, cast(times, "bigint"), "bigint")))
    return Repeat(Filter(wanted, gt(there, lit(0))), THERE)


def _marked(rows: Node, here: int, there: int) -> Node:
    marks = (Output(HERE, cast(lit(here), "bigint"), "bigint"), Output(THERE, cast(lit(there), "bigint"), "bigint"))
    return Project(rows, (*keep(rows.columns), *marks))
