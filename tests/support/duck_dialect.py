"""What sqlglot writes for DuckDB, where DuckDB understands something else by it than Spark."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator


def _count_if(writer: Generator, node: exp.CountIf) -> str:
    """Of NULLs alone DuckDB counts NULL, Spark 0."""
    return writer.func("COUNT", exp.case().when(node.this.copy(), exp.Literal.number(1)))


def write_as_spark_means_it() -> None:
    DuckDB.Generator.TRANSFORMS[exp.CountIf] = _count_if
