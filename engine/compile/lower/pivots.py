"""PIVOT and UNPIVOT, spelled out: a GROUP BY with FILTER, and a UNION ALL of one SELECT for each column.

What PIVOT groups by is what is left: every column that neither its aggregates nor FOR name. A value that occurs with no
row of a group gives NULL, also where COUNT would say 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.algebra.scalars import data_type
from engine.compile import functions
from engine.compile.lower.context import Context, Source
from engine.compile.lower.expressions import aggregates_in, column_named

#: aggregates of numbers only, which Spark gives NULL where there is no row
_COUNTED = ("count", "count_if", "sum", "avg", "mean", "stddev", "variance")


def pivoted(context: Context, source: Source, tree: exp.Expr, pivot: exp.Pivot) -> tuple[exp.Query, exp.Expr | None]:
    """The query that a pivoted relation stands for, and its alias. `source` is the relation before that."""
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or isinstance(fields[0].this, exp.Tuple):
        raise context.unsupported(tree, "PIVOT of several columns")
    alone = tree.copy()
    alone.set("pivots", None)
    spelled = _unpivot if pivot.args.get("unpivot") else _pivot
    return spelled(context, source, alone, pivot, fields[0]), pivot.args.get("alias")


# ------------------------------------------------------------------ PIVOT


def _pivot(context: Context, source: Source, alone: exp.Expr, pivot: exp.Pivot, field: exp.In) -> exp.Query:
    calls = [each.unalias() for each in pivot.expressions]
    _check(context, pivot, calls)
    used = {column.name.casefold() for part in (*calls, field.this) for column in part.find_all(exp.Column)}
    names = [each.name for each in source.scope.all_of(None)]
    rest = [name for name in names if name.casefold() not in used]
    kind = source.node.types[column_named(context, source.scope, field.this.name, field)]
    titles = [each.name for each in pivot.args.get("columns") or ()]
    made = [_filled(call, field.this, value.unalias(), kind) for value in field.expressions for call in calls]
    if len(titles) != len(made):
        raise context.unsupported(pivot, "PIVOT whose columns have no plain names")
    select = exp.Select(expressions=[*map(_named, rest), *map(_titled, made, titles)]).from_(alone)
    if rest:
        select.set("group", exp.Group(expressions=[_named(name) for name in rest]))
    return select


def _check(context: Context, pivot: exp.Pivot, calls: Sequence[exp.Expr]) -> None:
    names = [functions.name_of(call) for call in calls]
    counts = any(name in ("count", "count_if") for name in names)
    for call, name, written in zip(calls, names, pivot.expressions, strict=True):
        known = functions.AGGREGATES.get(name)
        if known is None or list(aggregates_in(call)) != [call]:
            raise context.unsupported(call, "PIVOT with anything but aggregate functions")
        # Spark fills up with NULL or with what the function gives over nothing, depending on all types together
        plain = name in _COUNTED if counts else known.empty == "NULL"
        if not plain:
            raise context.unsupported(call, f"PIVOT with {name} beside these")
        if len(calls) > 1 and not isinstance(written, exp.Alias):
            raise context.unsupported(call, "PIVOT of several aggregates without names")


def _filled(call: exp.Expr, key: exp.Expr, value: exp.Expr, kind: str) -> exp.Expr:
    literal = exp.Cast(this=value.copy(), to=data_type(kind)) if kind else value.copy()
    same = exp.Where(this=exp.NullSafeEQ(this=key.copy(), expression=literal))
    filtered = exp.Filter(this=call.copy(), expression=same)
    if functions.name_of(call) not in ("count", "count_if"):
        return filtered
    rows = exp.Filter(this=exp.Count(this=exp.Star(), big_int=True), expression=same.copy())
    return exp.Case(ifs=[exp.If(this=exp.GT(this=rows, expression=exp.Literal.number(0)), true=filtered)])


# ------------------------------------------------------------------ UNPIVOT


def _unpivot(context: Context, source: Source, alone: exp.Expr, pivot: exp.Pivot, field: exp.In) -> exp.Query:
    value = pivot.expressions[0] if len(pivot.expressions) == 1 else None
    columns = [each if isinstance(each, exp.Column) else each.this for each in field.expressions]
    if not isinstance(value, exp.Identifier) or not all(isinstance(each, exp.Column) for each in columns):
        raise context.unsupported(pivot, "UNPIVOT of several columns at once")
    visible = {each.name.casefold(): each.name for each in source.scope.all_of(None)}
    taken = {each.name.casefold() for each in columns}
    rest = [name for folded, name in visible.items() if folded not in taken]
    members: list[exp.Query] = []
    for column, written in zip(columns, field.expressions, strict=True):
        column_named(context, source.scope, column.name, written)
        title = written.alias if isinstance(written, exp.PivotAlias | exp.Alias) else visible[column.name.casefold()]
        outputs = [*map(_named, rest), _titled(exp.Literal.string(title), field.this.name)]
        member = exp.Select(expressions=[*outputs, _titled(column.copy(), value.name)]).from_(alone.copy())
        if not pivot.args.get("include_nulls"):
            member = member.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
        members.append(member)
    query: exp.Query = members[0]
    for other in members[1:]:
        query = exp.Union(this=query, expression=other, distinct=False)
    return query


def _named(name: str) -> exp.Expr:
    return exp.column(exp.to_identifier(name, quoted=True))


def _titled(tree: exp.Expr, title: str) -> exp.Expr:
    return exp.alias_(tree, exp.to_identifier(title, quoted=True))
