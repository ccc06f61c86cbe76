"""Subqueries in conditions and as values, as joins.

A condition that is nothing but EXISTS, IN or their negation keeps or drops rows by their partners (`Exists`). Anywhere
else (under OR, in CASE, in the SELECT list) a subquery is a value: one more column, joined to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.aggregates import count_rows
from engine.algebra.nodes import Aggregate, Aggregation, Exists, Filter, Node, OuterJoin, Output, Project, keep
from engine.algebra.scalars import (
    Scalar,
    all_of,
    case,
    coalesce,
    col,
    conjuncts,
    eq,
    false,
    gt,
    is_null,
    lit,
    lt,
    not_null,
    null,
    null_safe_eq,
    raise_error,
    true,
)
from engine.algebra.trees import distinct, inner_join
from engine.algebra.types import is_orderable
from engine.compile.lower.below import Below
from engine.compile.lower.context import Context, Environment, Source
from engine.compile.lower.correlation import Correlated, columns_used, compares_alike, lower_subquery, opened
from engine.compile.lower.expressions import aggregates_in, over, own, replaced, windows_in
from engine.compile.lower.negations import at_the_leaves, is_in, is_not_in
from engine.compile.lower.ordering import keeps_first
from engine.compile.scope import Scope

_SUBQUERIES = (exp.Exists, exp.Subquery)


def filtered(context: Context, source: Source, condition: exp.Expr, environment: Environment) -> Source:
    """The rows for which a condition holds. What needs no subquery is asked first."""
    parts = [each.tree for each in conjuncts(Scalar(condition))]
    plain = [each for each in parts if not _has_subquery(each)]
    if plain:
        kept = [_plain(context, each, source) for each in plain]
        source = replace(source, node=Filter(source.node, all_of(kept)))
    for part in parts:
        if _has_subquery(part):
            source = _filtered_by(context, source, part, environment)
    return source


def _plain(context: Context, tree: exp.Expr, source: Source) -> Scalar:
    if not source.known:
        if any(aggregates_in(tree)):
            raise context.misread(tree, "an aggregate is not allowed here")
        if any(windows_in(tree)):
            raise context.misread(tree, "a window function is not allowed here")
    return over(context, tree, source)


def _has_subquery(tree: exp.Expr) -> bool:
    return tree.find(exp.Query) is not None


def _filtered_by(context: Context, source: Source, condition: exp.Expr, environment: Environment) -> Source:
    tree, negated = condition, False
    while isinstance(tree, exp.Paren | exp.Not):
        negated = negated != isinstance(tree, exp.Not)
        tree = tree.this
    match tree:
        case exp.Exists():
            query = _without_limit(tree.this)
            return _partners(context, source, query, environment, lambda _: (), negated=negated)
        case exp.In() if is_in(tree):
            source, values = _operands(context, source, tree.this, environment)
            query = tree.args["query"]
            return _partners(
                context,
                source,
                query,
                environment,
                lambda ys: _equal(context, tree, values, ys, negated),
                negated=negated,
            )
        case _:
            source, changed = with_values(context, source, condition, environment)
            return replace(source, node=Filter(source.node, over(context, changed, source)))


def _operands(
    context: Context, source: Source, tree: exp.Expr, environment: Environment
) -> tuple[Source, tuple[Scalar, ...]]:
    inner = tree.unnest()
    parts = inner.expressions if isinstance(inner, exp.Tuple) else [tree]
    found = []
    for part in parts:
        source, changed = with_values(context, source, part, environment)
        found.append(over(context, changed, source))
    return source, tuple(found)


def _equal(
    context: Context, tree: exp.Expr, values: Sequence[Scalar], ys: tuple[str, ...], unless_known: bool
) -> tuple[Scalar, ...]:
    """`unless_known`: also partners of which is not known whether they are equal, as NOT IN wants it."""
    if len(values) != len(ys):
        raise context.misread(tree, f"{len(values)} values cannot be among rows of {len(ys)} columns")
    pairs = tuple(eq(value, col(y)) for value, y in zip(values, ys, strict=True))
    return (coalesce(all_of(pairs), true()),) if unless_known else pairs


def _partners(
    context: Context,
    source: Source,
    query: exp.Expr,
    environment: Environment,
    conditions: Callable[[tuple[str, ...]], tuple[Scalar, ...]],
    *,
    negated: bool,
) -> Source:
    found = lower_subquery(context, query, source, environment)
    ys = tuple(each.own for each in found.lowered.visible)
    other, joined = opened(found, conditions(ys))
    return replace(source, node=Exists(source.node, other, joined, negated))


def _without_limit(query: exp.Expr) -> exp.Expr:
    """Whether there is a row is decided by the first one: which one it is, and how many more, does not matter."""
    if not keeps_first(query.args.get("limit"), query.args.get("offset")):
        return query
    query = query.copy()
    query.set("limit", None)
    query.set("order", None)
    return query


# ------------------------------------------------------------------ subqueries that are values


def with_values(context: Context, source: Source, tree: exp.Expr, environment: Environment) -> tuple[Source, exp.Expr]:
    """The source with a column for each subquery of an expression, and the expression over these columns."""
    (source,), tree = with_values_of(context, (source,), tree, environment)
    return source, tree


def with_values_of(
    context: Context, sources: Sequence[Source], tree: exp.Expr, environment: Environment
) -> tuple[Sequence[Source], exp.Expr]:
    """The same for what speaks of several sources: each subquery belongs to the one that it speaks of."""
    found, tree = list(sources), at_the_leaves(tree)
    while True:
        inner = _outermost(tree)
        if inner is None:
            return found, tree
        place = _spoken_of(context, found, inner, environment) if len(found) > 1 else 0
        found[place], value = _value(context, found[place], inner, environment)
        spelled = _as_own(value.tree)
        if inner is tree:
            return found, spelled
        tree = _with(tree, inner, spelled)


def _spoken_of(context: Context, sources: Sequence[Source], tree: exp.Expr, environment: Environment) -> int:
    scope = Scope(tuple(each for source in sources for each in source.scope.columns))
    both = Source(inner_join(tuple(source.node for source in sources), ()), scope)
    names = columns_used(context, tree, both, environment)
    place = next((place for place, source in enumerate(sources) if names <= source.node.names), None)
    if place is None:
        raise context.unsupported(tree, "a subquery that speaks of both sides of an outer join")
    return place


def _outermost(tree: exp.Expr) -> exp.Expr | None:
    # NOT IN before IN: the same IN may stand elsewhere without NOT, and is replaced wherever it stands
    for node in tree.walk(prune=lambda each: isinstance(each, _SUBQUERIES) or is_in(each)):
        if is_not_in(node):
            return node
    for node in tree.walk():
        if isinstance(node, _SUBQUERIES) or is_in(node):
            return node
    return None


def _with(tree: exp.Expr, inner: exp.Expr, value: exp.Expr) -> exp.Expr:
    return replaced(tree, lambda node: value.copy() if node == inner else None)


def _as_own(tree: exp.Expr) -> exp.Expr:
    return exp.paren(tree.transform(lambda node: own(node.name) if isinstance(node, exp.Column) else node))


def _value(context: Context, source: Source, tree: exp.Expr, environment: Environment) -> tuple[Source, Scalar]:
    match tree:
        case exp.Subquery():
            return _scalar(context, source, tree, environment)
        case exp.Exists():
            return _exists(context, source, _without_limit(tree.this), environment)
        case exp.In():
            return _in(context, source, tree, environment)
        case _:  # NOT around IN
            return _not_in(context, source, tree.this.unnest(), environment)


def _scalar(context: Context, source: Source, tree: exp.Expr, environment: Environment) -> tuple[Source, Scalar]:
    found = lower_subquery(context, tree, source, environment, as_value=True)
    if len(found.lowered.visible) != 1:
        raise context.misread(tree, f"a subquery of {len(found.lowered.visible)} columns is no value")
    y = found.lowered.visible[0].own
    node = found.lowered.node
    if not (found.lowered.one_row or found.lowered.at_most_one_row):
        return _at_most_one(context, source, found, y, tree)
    if not found.pairs and found.lowered.one_row:
        return replace(source, node=inner_join((source.node, node), ())), col(y)
    missing = found.lowered.when_missing.get(y)
    if missing is None or missing == null() or _is_null_cast(missing):
        return replace(source, node=OuterJoin(source.node, node, found.conditions)), col(y)
    there = context.names.fresh("", "found")
    marked = Project(node, (*keep(node.columns), Output(there, lit(1), "int")))
    joined = OuterJoin(source.node, marked, found.conditions)
    return replace(source, node=joined), case((is_null(col(there)), missing), otherwise=col(y))


def _is_null_cast(value: Scalar) -> bool:
    return isinstance(value.tree, exp.Cast) and isinstance(value.tree.this, exp.Null)


def _at_most_one(context: Context, source: Source, found: Correlated, y: str, tree: exp.Expr) -> tuple[Source, Scalar]:
    """More than one row is an error as it is in Spark: when it happens, and to a row that asks for it."""
    node = found.lowered.node
    if not is_orderable(node.types[y]):
        raise context.unsupported(tree, f"a subquery of type {node.types[y]} that may have several rows")
    rows, value, checked = (context.names.fresh("", word) for word in ("rows", "value", "value"))
    aggregate = Aggregate(
        node,
        tuple(Output(name, col(name), node.types[name]) for name in found.lowered.domain),
        (
            Aggregation(rows, count_rows(), "bigint"),
            Aggregation(value, Scalar(exp.Max(this=col(y).tree)), node.types[y]),
        ),
    )
    several = raise_error("a subquery that stands for a value gave more than one row")
    one = Output(checked, case((gt(col(rows), lit(1)), several), otherwise=col(value)), node.types[y])
    if found.pairs:
        # a column of its own, so that no condition takes the check along into the join
        joined: Node = OuterJoin(source.node, aggregate, found.conditions)
        return replace(source, node=Project(joined, (*keep(source.node.columns), one))), col(checked)
    # it is computed for whoever asks, and where nobody does
    return replace(source, node=OuterJoin(source.node, Project(aggregate, (one,)), ())), col(checked)


def _exists(context: Context, source: Source, query: exp.Expr, environment: Environment) -> tuple[Source, Scalar]:
    found = lower_subquery(context, query, source, environment)
    if not found.pairs:
        rows = context.names.fresh("", "rows")
        counted = Aggregate(found.lowered.node, (), (Aggregation(rows, count_rows(), "bigint"),))
        return replace(source, node=inner_join((source.node, counted), ())), gt(col(rows), lit(0))
    flags, there = _flagged(context, found.lowered.node, found.lowered.domain)
    joined = OuterJoin(source.node, flags, found.conditions)
    return replace(source, node=joined), not_null(col(there))


def _flagged(context: Context, node: Node, names: Sequence[str]) -> tuple[Node, str]:
    """The distinct values of some columns, with one that is never NULL beside them."""
    there = context.names.fresh("", "found")
    values = Aggregate(node, tuple(Output(name, col(name), node.types[name]) for name in dict.fromkeys(names)), ())
    return Project(values, (*keep(values.columns), Output(there, lit(1), "int"))), there


def _in(context: Context, source: Source, tree: exp.Expr, environment: Environment) -> tuple[Source, Scalar]:
    """TRUE where an equal is among the rows, otherwise FALSE: as Spark has it, which knows no NULL here."""
    source, values = _operands(context, source, tree.this, environment)
    found = lower_subquery(context, tree.args["query"], source, environment)
    ys = tuple(each.own for each in found.lowered.visible)
    same = _equal(context, tree, values, ys, False)
    if not _compare_alike(context, source.node, values, found.lowered.node, ys):
        source, partner = _partner_of_values(context, source, tree, values, found, unless_known=False)
        return source, not_null(partner)
    flags, there = _flagged(context, found.lowered.node, (*ys, *found.lowered.domain))
    return replace(source, node=OuterJoin(source.node, flags, (*found.conditions, *same))), not_null(col(there))


def _not_in(context: Context, source: Source, tree: exp.Expr, environment: Environment) -> tuple[Source, Scalar]:
    """TRUE where it is known that no equal is among the rows, otherwise FALSE."""
    source, values = _operands(context, source, tree.this, environment)
    found = lower_subquery(context, tree.args["query"], source, environment)
    ys = tuple(each.own for each in found.lowered.visible)
    node = found.lowered.node
    if len(values) > 1 or not _compare_alike(context, source.node, values, node, ys):
        source, partner = _partner_of_values(context, source, tree, values, found, unless_known=True)
        return source, is_null(partner)
    value, y = values[0], ys[0]
    flags, there = _flagged(context, node, (y, *found.lowered.domain))
    rows, known = (context.names.fresh("", word) for word in ("rows", "known"))
    counted, names = context.renamed(
        Aggregate(
            node,
            tuple(Output(name, col(name), node.types[name]) for name in found.lowered.domain),
            (
                Aggregation(rows, count_rows(), "bigint"),
                Aggregation(known, Scalar(exp.Count(this=col(y).tree, big_int=True)), "bigint"),
            ),
        )
    )
    same = tuple(null_safe_eq(col(around), col(names[inside])) for around, inside in found.pairs)
    if found.pairs:
        joined: Node = OuterJoin(source.node, counted, same)
    else:
        joined = inner_join((source.node, counted), ())
    joined = OuterJoin(joined, flags, (*found.conditions, eq(value, col(y))))
    number, not_null_number = coalesce(col(names[rows]), lit(0)), coalesce(col(names[known]), lit(0))
    answer = case(
        (not_null(col(there)), false()),
        (eq(number, lit(0)), true()),
        (is_null(value), false()),
        (lt(not_null_number, number), false()),
        otherwise=true(),
    )
    return replace(source, node=joined), answer


def _partner_of_values(
    context: Context,
    source: Source,
    tree: exp.Expr,
    values: Sequence[Scalar],
    found: Correlated,
    *,
    unless_known: bool,
) -> tuple[Source, Scalar]:
    """A column that is NULL where no row of the subquery equals the values: what is looked for is looked for once."""
    below = Below(context, source.node, [each.name for each in source.node.columns])
    columns = [below.column(value, "asked") for value in values]
    node = below.node()
    ys = tuple(each.own for each in found.lowered.visible)
    other, conditions = opened(found, _equal(context, tree, [col(each) for each in columns], ys, unless_known))
    asked = dict.fromkeys([*columns, *(around for around, _ in found.pairs)])
    distinct_rows = distinct(Project(node, tuple(Output(name, col(name), node.types[name]) for name in asked)))
    rows, names = context.renamed(distinct_rows)
    renamed = {name: col(names[name]) for name in asked}
    about_rows = tuple(each.substitute(renamed) for each in conditions)
    there = context.names.fresh("", "found")
    partnered = Exists(rows, other, about_rows, negated=False)
    flags = Project(partnered, (*keep(partnered.columns), Output(there, lit(1), "int")))
    same = tuple(null_safe_eq(col(name), renamed[name]) for name in asked)
    return replace(source, node=OuterJoin(node, flags, same)), col(there)


def _compare_alike(context: Context, left: Node, values: Sequence[Scalar], right: Node, ys: Sequence[str]) -> bool:
    """What is compared after a cast would be looked for among values that were made distinct before it."""
    below = Below(context, left)
    types = [below.type_of(below.column(value, "asked")) for value in values]
    return all(compares_alike(type_, right.types[y]) for type_, y in zip(types, ys, strict=True))
