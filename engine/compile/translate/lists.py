"""Lists, aggregates and VALUES. See `engine.compile.translate`."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.translate.kinds import Kind
from engine.compile.translate.translating import DUCKDB, SNOWFLAKE, Rule, Translating


def _bracket(context: Translating, node: exp.Bracket) -> exp.Expr:
    """sqlglot has made the index count from 0. Spark fails where there is no such element; there it is NULL."""
    index = node.expressions[0] if len(node.expressions) == 1 else None
    if context.kind(node.this) is not Kind.ARRAY or not (isinstance(index, exp.Literal) and index.is_int):
        raise context.refused(node, "an index other than a number, into what is known to be a list")
    return exp.Anonymous(this="GET", expressions=[node.this.copy(), index.copy()])


def _array_agg(context: Translating, node: exp.ArrayAgg) -> exp.Expr:
    inner = node.this.this if isinstance(node.this, exp.Distinct) else node.this
    if context.dialect is not SNOWFLAKE:
        raise context.refused(node, "ARRAY_AGG keeps NULLs, and Spark's leaves them out")
    if isinstance(inner, exp.Order) or isinstance(node.parent, exp.WithinGroup):
        raise context.refused(node, "ARRAY_AGG with an order of its own")
    return node


def _arg_max(context: Translating, node: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    if context.dialect is not SNOWFLAKE or node.args.get("count"):
        raise context.refused(node, "ARG_MAX leaves out rows whose value is NULL, and Spark's MAX_BY does not")
    return node


def _count(context: Translating, node: exp.Count) -> exp.Expr:
    parts = node.this.expressions if isinstance(node.this, exp.Distinct) else []
    several = len(parts) > 1 or any(isinstance(each, exp.Tuple) for each in parts)
    if node.expressions or (several and context.dialect is not SNOWFLAKE):
        raise context.refused(node, "COUNT of several columns treats NULLs otherwise in Spark")
    return node


def _group_concat(context: Translating, node: exp.GroupConcat) -> exp.Expr:
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    if context.kind(value) is not Kind.TEXT or not isinstance(node.args.get("separator"), exp.Literal):
        raise context.refused(node, "of what is not known to be text, or without a separator in quotes")
    if context.dialect is SNOWFLAKE:
        if isinstance(node.parent, exp.Window | exp.Filter | exp.WithinGroup):
            raise context.refused(node, "LISTAGG of nothing is an empty text there, which is not translated with OVER")
        return exp.Coalesce(this=node.copy(), expressions=[exp.Literal.string("")])
    return node


def _percentile(context: Translating, node: exp.PercentileCont | exp.PercentileDisc) -> exp.Expr:
    if not isinstance(node.parent, exp.WithinGroup):
        raise context.refused(node, "a percentile without WITHIN GROUP")
    return node


def _to_date(context: Translating, node: exp.TsOrDsToDate) -> exp.Expr:
    if node.args.get("format") is not None:
        raise context.refused(node, "formats of dates are others in Spark")
    return node


def _values(context: Translating, node: exp.Values) -> exp.Expr:
    alias = node.args.get("alias") or (node.parent.args.get("alias") if isinstance(node.parent, exp.Subquery) else None)
    if alias is None or not alias.args.get("columns"):
        raise context.refused(node, "the columns of VALUES have other names in Spark", "say AS t(a, b)")
    return node


def _corr(context: Translating, node: exp.Corr) -> exp.Expr:
    if context.dialect is DUCKDB:
        raise context.refused(node, "CORR of a single row, or of equal ones, is NaN there, and NULL in Spark")
    return node


def _contains(context: Translating, node: exp.ArrayContains) -> exp.Expr:
    """In Spark it is not known whether a NULL in the list is what is looked for; in DuckDB it is not."""
    if context.dialect is not DUCKDB:
        raise context.refused(node, "whether a list contains something hangs on its NULLs")
    unknown = exp.or_(*(exp.Is(this=each.copy(), expression=exp.null()) for each in (node.this, node.expression)))
    found = exp.Coalesce(this=node.copy(), expressions=[exp.false()])
    return exp.paren(exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=found))


RULES: dict[type[exp.Expr], Rule] = {
    exp.Bracket: _bracket,
    exp.ArrayAgg: _array_agg,
    exp.ArrayContains: _contains,
    exp.ArgMax: _arg_max,
    exp.ArgMin: _arg_max,
    exp.Count: _count,
    exp.Corr: _corr,
    exp.GroupConcat: _group_concat,
    exp.PercentileCont: _percentile,
    exp.PercentileDisc: _percentile,
    exp.TsOrDsToDate: _to_date,
    exp.Values: _values,
}
