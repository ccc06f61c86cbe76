"""Arithmetic: what is divided, rounded, compared. See `engine.compile.translate`."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.translate.kinds import NUMBERS, Kind
from engine.compile.translate.translating import DUCKDB, POSTGRES, SNOWFLAKE, Rule, Translating, number, require_literal


def _div(context: Translating, node: exp.Div) -> exp.Expr:
    left, right = context.kind(node.this), context.kind(node.expression)
    if context.dialect is POSTGRES:
        if left is right is Kind.INTEGER:
            return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
        if not (left in NUMBERS and right in NUMBERS):
            raise context.refused(
                node,
                "/ of two integers has no fraction, and whether these are integers is not known",
                "cast one side to DOUBLE PRECISION or to NUMERIC(p, s)",
            )
    if context.dialect is DUCKDB:
        # a quotient is a DOUBLE whatever is divided, and dividing by zero gives an infinity
        one, other = _as_double(node.this), _as_double(node.expression)
        quotient = exp.Div(this=one, expression=other, typed=False, safe=False)
        if isinstance(node.expression, exp.Literal) and float(node.expression.name or 0):
            return quotient
        infinite = exp.Mul(this=one.copy(), expression=_as_double(exp.Literal.string("Infinity")))
        return exp.paren(
            exp.Case(
                ifs=[exp.If(this=exp.EQ(this=other.copy(), expression=number(0)), true=infinite)], default=quotient
            )
        )
    return node


def _as_double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node.copy().unnest(), to=exp.DataType.build("double"))


def _int_div(context: Translating, node: exp.IntDiv) -> exp.Expr:
    _integers(context, node, node.this, node.expression)
    return _without_zero(context, node)


def _mod(context: Translating, node: exp.Mod) -> exp.Expr:
    return _without_zero(context, node)


def _without_zero(context: Translating, node: exp.Binary) -> exp.Expr:
    """Dividing by zero gives NULL in DuckDB, and an error everywhere else."""
    divisor = node.expression
    if context.dialect is not DUCKDB or (isinstance(divisor, exp.Literal) and float(divisor.name)):
        return node
    never_zero = exp.Nullif(this=divisor.copy().unnest(), expression=number(0))
    return type(node)(this=node.this.copy(), expression=never_zero)


def _integers(context: Translating, node: exp.Expr, *parts: exp.Expr) -> None:
    if any(context.kind(each) is not Kind.INTEGER for each in parts):
        raise context.refused(node, "these are not known to be integers, and of others Spark makes something else")


def _round(context: Translating, node: exp.Round) -> exp.Expr:
    kind, digits = context.kind(node.this), node.args.get("decimals")
    if kind not in NUMBERS or kind is Kind.NUMBER:
        raise context.refused(node, "how ROUND rounds depends on the type, which is not known", "cast to DECIMAL(p, s)")
    if kind is Kind.DOUBLE and (digits is not None or context.dialect is POSTGRES):
        raise context.refused(node, "ROUND of a floating-point number is rounded otherwise", "cast to DECIMAL(p, s)")
    if digits is not None:
        require_literal(context, node, digits, 0)
    return node


def _trunc(context: Translating, node: exp.Trunc) -> exp.Expr:
    if context.kind(node.this) not in NUMBERS or node.args.get("decimals") is not None:
        raise context.refused(node, "TRUNC of anything but a number, or to digits, is not translated")
    return node


def _log(context: Translating, node: exp.Log) -> exp.Expr:
    """Of one argument it is the decimal logarithm there, and the natural one in Spark."""
    base, value = (node.this, node.args["expression"]) if node.args.get("expression") else (number(10), node.this)
    # a logarithm by way of the natural one is off in its last digit: log(10, 1000) is 2.9999999999999996
    exact = {"10": "LOG10", "2": "LOG2"}.get(base.name if isinstance(base, exp.Literal) else "")
    return exp.Anonymous(this=exact, expressions=[value.copy()]) if exact else node


def _greatest(context: Translating, node: exp.Greatest | exp.Least) -> exp.Expr:
    """NULL does not count in PostgreSQL, DuckDB and Spark; in Snowflake it makes the result NULL."""
    if context.dialect is not SNOWFLAKE or node.args.get("ignore_nulls"):
        return node
    parts = [node.this, *node.expressions]
    missing = exp.or_(*(exp.Is(this=each.copy(), expression=exp.null()) for each in parts))
    return exp.Case(ifs=[exp.If(this=missing, true=exp.null())], default=node.copy())


def _literal(context: Translating, node: exp.Literal) -> exp.Expr:
    if not node.is_string and "e" in node.name.lower() and context.dialect is not DUCKDB:
        raise context.refused(node, "numbers with an exponent are exact there, and floating-point in Spark")
    return node


RULES: dict[type[exp.Expr], Rule] = {
    exp.Div: _div,
    exp.IntDiv: _int_div,
    exp.Mod: _mod,
    exp.Round: _round,
    exp.Trunc: _trunc,
    exp.Log: _log,
    exp.Greatest: _greatest,
    exp.Least: _greatest,
    exp.Literal: _literal,
}
