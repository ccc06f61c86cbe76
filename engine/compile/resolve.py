"""Scalar expressions of the text to scalars of the tree: names resolved, operations checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.scalars import Scalar, col
from engine.compile import functions
from engine.compile.parse import ParsedQuery
from engine.compile.positions import clause_position, position
from engine.compile.scope import Scope, Visible
from engine.errors import QueryParseError, UnsupportedOperator, VolatileFunction

SUPPORTED_NOW = "projection, filter, inner join and GROUP BY with COUNT, SUM and AVG are maintained differentially"


@dataclass
class Resolver:
    query: ParsedQuery

    def scalar(self, tree: exp.Expr, scope: Scope) -> Scalar:
        if aggregates_in(tree):
            raise QueryParseError(
                "an aggregate is not allowed here",
                position=position(tree, self.query.text),
                hint="use HAVING",
            )
        return Scalar(self.resolved(tree, scope))

    def resolved(self, tree: exp.Expr, scope: Scope) -> exp.Expr:
        """A copy in which every column has its name in the tree and only known operations occur."""
        self.check_scalar(tree)

        def visit(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                return node if node.this.meta.get("own") else self.column(node, scope)
            return node

        return replace_top_down(tree, visit)

    def column(self, node: exp.Column, scope: Scope) -> exp.Expr:
        """A column reference; `a.b` may also be the field b of a column a."""
        parts = [part.name for part in node.parts]
        if len(parts) >= 2 and scope.has_table(parts[0]):
            value = self.resolve(scope, parts[1], parts[0], node).tree.copy()
            fields = parts[2:]
        else:
            value = self.resolve(scope, parts[0], None, node).tree.copy()
            fields = parts[1:]
        for field in fields:
            value = exp.Dot(this=value, expression=exp.to_identifier(field, quoted=True))
        return value

    def resolve(self, scope: Scope, name: str, table: str | None, node: exp.Expr) -> Scalar:
        found = scope.find(name, table)
        if len(found) == 1:
            return Scalar(own(found[0]))
        if found:
            raise QueryParseError(
                f"{name} is ambiguous",
                detail=f"it is a column of {' and of '.join(sorted(each.table for each in found))}",
                position=position(node, self.query.text),
                hint="put the table's name or alias before it",
            )
        if table is None and name.lower() in functions.LITERAL_FUNCTIONS:
            raise self.volatile(name.lower(), node)  # Spark calls it without parentheses
        near = scope.nearest(name)
        raise QueryParseError(
            f"there is no column {table + '.' if table else ''}{name}",
            position=position(node, self.query.text),
            hint=f"did you mean {near}?" if near else None,
        )

    def check_scalar(self, tree: exp.Expr) -> None:
        for node in tree.walk():
            match node:
                case exp.Query() | exp.Exists() | exp.Subquery():
                    raise self.unsupported(node, "a subquery in an expression")
                case exp.Window():
                    raise self.unsupported(node, "a window function")
                case exp.Explode() | exp.Posexplode() | exp.Inline():
                    raise self.unsupported(node, "a function that makes rows")
                case exp.Parameter() | exp.Placeholder():
                    raise QueryParseError("a stream table has no parameters", position=position(node, self.query.text))
                case exp.AggFunc():
                    pass
                case exp.Func():
                    self.check_function(node)
                case _:
                    pass
        for found in functions.classify(tree):
            if found.volatility is functions.Volatility.STABLE and not found.suspected:
                raise self.volatile(found.name, found.node)  # what is no function: DATE 'today'

    def check_function(self, node: exp.Func) -> None:
        name = functions.name_of(node)
        if not name:
            return
        if functions.kind(name) not in (functions.Kind.SCALAR, functions.Kind.UNKNOWN):
            raise self.unsupported(node, f"the {functions.kind(name)} function {name}")
        match functions.refined(node, name)[0]:
            case functions.Volatility.IMMUTABLE:
                return
            case functions.Volatility.UNKNOWN:
                raise self.unsupported(node, f"the function {name}, of which is not known that it is deterministic,")
            case _:
                raise self.volatile(name, node)

    def volatile(self, name: str, node: exp.Expr) -> VolatileFunction:
        return VolatileFunction(
            f"{name} does not give the same answer each time",
            position=position(node, self.query.text),
            hint="write the value into the source, or create the stream table with refresh_mode = 'FULL'",
        )

    def written_name(self, call: exp.Func) -> str:
        """The function as the author calls it: sqlglot knows collect_list as array_agg."""
        start = call.meta.get("start")
        word = re.match(r"\w+", self.query.text[start:]) if start is not None else None
        return word[0].lower() if word else call.sql_name().lower()

    def unsupported(self, node: exp.Expr, what: str) -> UnsupportedOperator:
        return UnsupportedOperator(
            f"{what} cannot be maintained differentially yet",
            detail=SUPPORTED_NOW,
            position=clause_position(node, self.query.text),
            hint="refresh_mode = 'FULL' recomputes it; AUTO does so by itself",
        )


def own(column: Visible) -> exp.Expr:
    """The column under its name in the tree, marked as resolved."""
    tree = col(column.own).tree
    tree.this.meta["own"] = True
    return tree


def aggregates_in(tree: exp.Expr) -> list[exp.AggFunc]:
    """Those of this SELECT; a query inside has its own."""
    parts = tree.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in parts if isinstance(node, exp.AggFunc)]


def replace_top_down(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A changed copy; what was replaced is not looked into again."""
    return tree.transform(change)


def with_aliases(tree: exp.Expr, aliases: dict[str, exp.Expr], scope: Scope) -> exp.Expr:
    """HAVING may name outputs of the SELECT list; columns of the sources come first."""

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and not scope.find(node.name, None):
            named = aliases.get(node.name.casefold())
            return exp.paren(named) if named is not None else node
        return node

    return replace_top_down(tree, visit)
