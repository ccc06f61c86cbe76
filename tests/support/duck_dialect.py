"""What sqlglot writes for DuckDB, where DuckDB understands something else by it than Spark."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator


def _count_if(writer: Generator, node: exp.CountIf) -> str:
    """Of NULLs alone DuckDB counts NULL, Spark 0."""
    return writer.func("COUNT", exp.case().when(node.this.copy(), exp.Literal.number(1)))


def _is_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and node.args.get("query") is not None


def _in(writer: Generator, node: exp.In) -> str:
    """With a subquery it is never NULL in Spark: FALSE where it is not known."""
    written = writer.in_sql(node)
    return f"COALESCE({written}, FALSE)" if _is_in(node) else written


def _not(writer: Generator, node: exp.Not) -> str:
    """So is its opposite. Spark moves NOT inwards before it decides."""
    inner = node.this.unnest()
    if _is_in(inner):
        return f"COALESCE(NOT {writer.in_sql(inner)}, FALSE)"
    has_in = any(_is_in(each) for each in inner.walk())
    if has_in and isinstance(inner, exp.Not):
        return writer.sql(exp.paren(inner.this))
    if has_in and isinstance(inner, exp.And | exp.Or):
        sides = [writer.sql(exp.not_(exp.paren(each))) for each in (inner.left, inner.right)]
        return f"({' OR '.join(sides)})" if isinstance(inner, exp.And) else f"({' AND '.join(sides)})"
    return writer.not_sql(node)


def _equal(writer: Generator, node: exp.EQ) -> str:
    """A comparison with TRUE or FALSE is none, or a NOT."""
    if isinstance(node.right, exp.Boolean) and any(_is_in(each) for each in node.left.walk()):
        return writer.sql(exp.paren(node.left) if node.right.this else exp.not_(exp.paren(node.left)))
    return writer.binary(node, "=")


def _of_the_greatest(writer: Generator, node: exp.ArgMax | exp.ArgMin) -> str:
    """A NULL that belongs to the greatest order is the answer; DuckDB's other function looks for the next."""
    name = "ARG_MAX" if isinstance(node, exp.ArgMax) else "ARG_MIN"
    if node.args.get("count"):
        return writer.func(name, node.this, node.expression, node.args["count"])
    return writer.func(f"{name}_NULL", node.this, node.expression)


def write_as_spark_means_it() -> None:
    DuckDB.Generator.TRANSFORMS[exp.ArgMax] = _of_the_greatest
    DuckDB.Generator.TRANSFORMS[exp.ArgMin] = _of_the_greatest
    DuckDB.Generator.TRANSFORMS[exp.CountIf] = _count_if
    DuckDB.Generator.TRANSFORMS[exp.In] = _in
    DuckDB.Generator.TRANSFORMS[exp.Not] = _not
    DuckDB.Generator.TRANSFORMS[exp.EQ] = _equal
