"""Casts: to which type, and how what does not fit is rounded. See `engine.compile.translate`."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.translate.kinds import Kind
from engine.compile.translate.translating import POSTGRES, SNOWFLAKE, Rule, Translating, is_written_alike

_T = exp.DataType.Type
_EXACT = (_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT)


def _cast(context: Translating, node: exp.Cast) -> exp.Expr:
    to, source = node.to, context.kind(node.this)
    wanted = _target(context, node, to)
    if node.args.get("format") is not None:
        raise context.refused(node, "a cast with a format is not translated")
    whole = to.this in _EXACT or (context.dialect is SNOWFLAKE and to.this is _T.DECIMAL)
    if whole and to.this in _EXACT and source in (Kind.DECIMAL, Kind.DOUBLE):
        return _rounded(context, node, source, wanted)
    if to.this in _EXACT and source not in (Kind.INTEGER, Kind.TEXT, Kind.BOOLEAN, Kind.NOTHING):
        raise context.refused(node, "a cast to an integer rounds there, and what is cast here is not known to be one")
    if to.this in (_T.TEXT, _T.VARCHAR) and not is_written_alike(context, node.this):
        raise context.refused(node, "the text of such a value is another one in Spark, or its type is not known")
    return type(node)(**{**node.args, "this": node.this.copy(), "to": wanted})


def _rounded(context: Translating, node: exp.Cast, source: Kind, wanted: exp.DataType) -> exp.Expr:
    """Spark cuts off what stands behind the point. Halves go away from zero, those of DOUBLE mostly to the even one."""
    to_even = source is Kind.DOUBLE and context.dialect is not SNOWFLAKE
    value = node.this.copy().unnest()
    rounded: exp.Expr = exp.Anonymous(this="BROUND", expressions=[value]) if to_even else exp.Round(this=value)
    return type(node)(**{**node.args, "this": rounded, "to": wanted})


def _target(context: Translating, node: exp.Cast, to: exp.DataType) -> exp.DataType:
    simple = {
        _T.FLOAT: "double" if context.dialect is SNOWFLAKE else "float",
        _T.DOUBLE: "double",
        _T.BOOLEAN: "boolean",
        _T.DATE: "date",
        _T.TEXT: "string",
        _T.TIMESTAMPTZ: "timestamp",
        _T.TIMESTAMP: "timestamp_ntz",
        _T.TIMESTAMPNTZ: "timestamp_ntz",
    }
    if to.this in _EXACT:
        # Snowflake's integers have 38 digits
        return exp.DataType.build("decimal(38,0)" if context.dialect is SNOWFLAKE else to.sql("spark"), dialect="spark")
    if to.this is _T.DECIMAL and len(to.expressions) == 2:
        return to.copy()
    if to.this is _T.DECIMAL and context.dialect is SNOWFLAKE:
        digits = to.expressions[0].name if to.expressions else "38"
        return exp.DataType.build(f"decimal({digits},0)", dialect="spark")
    if to.this is _T.FLOAT and context.dialect is POSTGRES:
        raise context.refused(node, "FLOAT is 8 bytes long and REAL 4; Spark's FLOAT is 4", "say DOUBLE PRECISION")
    if to.this is _T.VARCHAR and not to.expressions:
        return exp.DataType.build("string", dialect="spark")
    if to.this in simple:
        return exp.DataType.build(simple[to.this], dialect="spark")
    detail = {
        _T.DECIMAL: "a DECIMAL without digits has others in Spark: say DECIMAL(p, s)",
        _T.VARCHAR: "a cast to VARCHAR(n) cuts the text there, and not in Spark: say LEFT(text, n)",
    }.get(to.this, f"the type {to.sql()} has no counterpart in Spark that means the same")
    raise context.refused(node, detail)


RULES: dict[type[exp.Expr], Rule] = {
    exp.Cast: _cast,
}
