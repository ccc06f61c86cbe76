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
    if not _is_in(node):
        return writer.in_sql(node)
    return _some_row_equals(writer, node, unknown=False) or f"COALESCE({writer.in_sql(node)}, FALSE)"


def _some_row_equals(writer: Generator, node: exp.In, *, unknown: bool) -> str:
    """Of several columns one that differs decides, whatever the others are; DuckDB knows nothing where one is NULL."""
    values = node.this.unnest()
    if not isinstance(values, exp.Tuple):
        return ""
    names = [f"__of_{place}" for place, _ in enumerate(values.expressions)]
    same = exp.and_(
        *(
            exp.EQ(this=each.copy(), expression=exp.column(name, "__row"))
            for each, name in zip(values.expressions, names, strict=True)
        )
    )
    known = exp.Coalesce(this=same, expressions=[exp.Boolean(this=unknown)])
    rows = f"{writer.sql(node.args['query'])} AS __row({', '.join(names)})"
    return f"EXISTS (SELECT 1 FROM {rows} WHERE {writer.sql(known)})"


def _not(writer: Generator, node: exp.Not) -> str:
    """So is its opposite. Spark moves NOT inwards before it decides."""
    inner = node.this.unnest()
    if _is_in(inner):
        several = _some_row_equals(writer, inner, unknown=True)
        if several:
            return f"NOT {several}"
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


def _distinct(writer: Generator, node: exp.Distinct) -> str:
    """Of several values none of which is NULL; sqlglot writes them as text that it reads again in another dialect."""
    if len(node.expressions) < 2:
        return writer.distinct_sql(node)
    missing = exp.or_(*(exp.Is(this=each.copy(), expression=exp.null()) for each in node.expressions))
    whole = exp.Tuple(expressions=[each.copy() for each in node.expressions])
    return f"DISTINCT {writer.sql(exp.Case(ifs=[exp.If(this=missing, true=exp.null())], default=whole))}"


def write_as_spark_means_it() -> None:
    DuckDB.Generator.TRANSFORMS[exp.Distinct] = _distinct
    DuckDB.Generator.TRANSFORMS[exp.ArgMax] = _of_the_greatest
    DuckDB.Generator.TRANSFORMS[exp.ArgMin] = _of_the_greatest
    DuckDB.Generator.TRANSFORMS[exp.CountIf] = _count_if
    DuckDB.Generator.TRANSFORMS[exp.In] = _in
    DuckDB.Generator.TRANSFORMS[exp.Not] = _not
    DuckDB.Generator.TRANSFORMS[exp.EQ] = _equal
