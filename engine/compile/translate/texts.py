"""Text: joined, matched, cut. See `engine.compile.translate`."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.translate.kinds import Kind
from engine.compile.translate.translating import (
    POSTGRES,
    SNOWFLAKE,
    Rule,
    Translating,
    is_written_alike,
    require_literal,
)


def _dpipe(context: Translating, node: exp.DPipe) -> exp.Expr:
    parts = (node.this, node.expression)
    is_text = Kind.TEXT in map(context.kind, parts)
    if not is_text or not all(is_written_alike(context, each) for each in parts):
        raise context.refused(node, "|| of what is not known to be text", "cast to TEXT, if that is what is meant")
    return node


def _concat(context: Translating, node: exp.Concat) -> exp.Expr:
    """Of NULL PostgreSQL and DuckDB make no text, Snowflake and Spark NULL."""
    parts: list[exp.Expr] = []
    for each in node.expressions:
        short = context.kind(each) is Kind.BOOLEAN and context.dialect is POSTGRES  # 't'
        if short or not is_written_alike(context, each):
            raise context.refused(node, "CONCAT of what is not known to be text", "cast it to TEXT")
        part = each.copy()
        if context.kind(each) is not Kind.TEXT:
            part = exp.Cast(this=part, to=exp.DataType.build("string", dialect="spark"))
        if context.dialect is not SNOWFLAKE:
            part = exp.Coalesce(this=part, expressions=[exp.Literal.string("")])
        parts.append(part)
    return exp.Concat(expressions=parts, safe=True, coalesce=False)


def _like(context: Translating, node: exp.Like | exp.ILike) -> exp.Expr:
    """A backslash escapes in PostgreSQL and Spark, and is like any other character in DuckDB and Snowflake."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) and not isinstance(node.parent, exp.Escape):
        raise context.refused(node, "LIKE with a pattern that is no text in quotes")
    if context.dialect is not POSTGRES and "\\" in pattern.name:
        raise context.refused(node, "a backslash in a pattern escapes in Spark", "say ESCAPE")
    return node


def _substring(context: Translating, node: exp.Substring) -> exp.Expr:
    require_literal(context, node, node.args.get("start"), 0 if context.dialect is SNOWFLAKE else 1)
    if node.args.get("length") is not None:
        require_literal(context, node, node.args["length"], 0)
    return node


def _counted_text(context: Translating, node: exp.Left | exp.Right | exp.Repeat) -> exp.Expr:
    count = node.args.get("times") if isinstance(node, exp.Repeat) else node.expression
    require_literal(context, node, count, 0)
    return node


def _pad(context: Translating, node: exp.Pad) -> exp.Expr:
    require_literal(context, node, node.expression, 0)
    _some_text(context, node, node.args.get("fill_pattern"))
    return node


def _split_part(context: Translating, node: exp.SplitPart) -> exp.Expr:
    require_literal(context, node, node.args.get("part_index"), 1)
    _some_text(context, node, node.args.get("delimiter"))
    return node


def _some_text(context: Translating, node: exp.Expr, value: exp.Expr | None) -> None:
    if value is not None and not (isinstance(value, exp.Literal) and value.is_string and value.name):
        raise context.refused(node, "here Spark is only known to do the same for a text in quotes that is not empty")


def _length(context: Translating, node: exp.Length) -> exp.Expr:
    if context.kind(node.this) is not Kind.TEXT:
        raise context.refused(node, "the length of what is not known to be text")
    return node


RULES: dict[type[exp.Expr], Rule] = {
    exp.DPipe: _dpipe,
    exp.Concat: _concat,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.Left: _counted_text,
    exp.Right: _counted_text,
    exp.Repeat: _counted_text,
    exp.Pad: _pad,
    exp.SplitPart: _split_part,
    exp.Length: _length,
}
