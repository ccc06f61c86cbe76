"""What all rules share: the text, the kinds of its values, and how something is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from engine.compile.positions import clause_position, fragment
from engine.compile.translate.kinds import Kind, Kinds
from engine.errors import QueryError, UnsupportedOperator
from engine.records import SqlDialect

DUCKDB, POSTGRES, SNOWFLAKE = SqlDialect.DUCKDB, SqlDialect.POSTGRES, SqlDialect.SNOWFLAKE
#: kinds whose values are written alike everywhere when they become text
WRITTEN_ALIKE = (Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.BOOLEAN, Kind.NOTHING)


@dataclass
class Translating:
    text: str
    dialect: SqlDialect
    kinds: Kinds
    notices: list[str] = field(default_factory=list)

    def kind(self, node: exp.Expr) -> Kind | None:
        return self.kinds.of(node)

    def refused(self, node: exp.Expr, why: str, hint: str = "") -> QueryError:
        while clause_position(node, self.text, self.dialect.value) is None and node.parent is not None:
            node = node.parent  # what has no part of its own that knows its place
        return UnsupportedOperator(
            f"{self.dialect.value}: {why}",
            position=clause_position(node, self.text, self.dialect.value),
            fragment=fragment(node, self.text, self.dialect.value),
            hint=hint or "say it in another way, or write the query in Spark's SQL",
        )


Rule = Callable[[Translating, Any], exp.Expr]


def is_written_alike(context: Translating, node: exp.Expr) -> bool:
    """Is its text the same one there? That of a DECIMAL has as many digits as its type, which a cast tells."""
    if context.kind(node) is Kind.DECIMAL:
        return isinstance(node.unnest(), exp.Cast)
    return context.kind(node) in WRITTEN_ALIKE


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def require_literal(context: Translating, node: exp.Expr, value: exp.Expr | None, least: int) -> None:
    if not (isinstance(value, exp.Literal) and value.is_int and int(value.name) >= least):
        raise context.refused(node, f"here Spark is only known to do the same for a number that is {least} or more")
