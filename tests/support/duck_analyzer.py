"""Answers the compiler's questions to Spark without Spark: names and types of what a query puts out."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from engine.compile.dialect import Spark4
from engine.records import Column
from tests.support.spark_types import UNKNOWN, type_of

#: what a relation in FROM is called, and the columns it has
Relation = tuple[str, tuple[Column, ...]]
Relations = Mapping[str, tuple[Column, ...]]


class DuckAnalyzer:
    """Implements `engine.compile.pipeline.Analyzer` over declared tables."""

    def __init__(self, relations: Relations) -> None:
        self.relations = {name.casefold(): columns for name, columns in relations.items()}
        #: every query that was asked about, with the answer, so that Spark can be asked the same
        self.asked: dict[str, tuple[Column, ...]] = {}

    def describe(self, sql: str) -> tuple[Column, ...]:
        tree = sqlglot.parse_one(sql, dialect=Spark4)
        assert isinstance(tree, exp.Query)
        self.asked[sql] = answer = _query(tree, self.relations)
        return answer

    def same_semantics(self, one: str, other: str) -> bool:
        """As strict as can be without Spark: both must read the same again."""
        one_sql, other_sql = (sqlglot.parse_one(each, dialect=Spark4).sql("duckdb") for each in (one, other))
        # DATE '…' and a cast of the string are the same.
        return one_sql.replace("TRY_CAST", "CAST") == other_sql.replace("TRY_CAST", "CAST")

    def meaning(self, functions: tuple[str, ...]) -> str:
        """DuckDB has one way to understand a query."""
        return "duckdb"


def _query(tree: exp.Expr, known: Relations) -> tuple[Column, ...]:
    with_ = tree.args.get("with_")
    if with_ is not None:
        inner = dict(known)
        for cte in with_.expressions:
            inner[cte.alias.casefold()] = _named(_query(cte.this, inner), cte)
        known = inner
    match tree:
        case exp.Subquery():
            return _query(tree.this, known)
        case exp.SetOperation():
            return _query(tree.this, known)
        case exp.Select():
            return _select(tree, known)
        case _:
            return (Column("value", UNKNOWN),)


def _select(tree: exp.Select, known: Relations) -> tuple[Column, ...]:
    from_ = tree.args.get("from_")
    joins = tree.args.get("joins") or []
    sources = [_relation(from_.this, known)] if from_ is not None else []
    sources += [_relation(join.this, known) for join in joins]
    merged = [name.name.casefold() for join in joins for name in join.args.get("using") or []]

    def look_up(column: exp.Column) -> str:
        for name, columns in sources:
            if column.table and name.casefold() != column.table.casefold():
                continue
            for each in columns:
                if each.name.casefold() == column.name.casefold():
                    return each.type
        return UNKNOWN

    found: list[Column] = []
    for item in tree.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            found.extend(_star(item.table if isinstance(item, exp.Column) else "", sources, merged))
        else:
            name = item.alias_or_name or item.sql("spark").lower()
            found.append(Column(name, type_of(item, look_up)))
    return tuple(found)


def _star(table: str, sources: list[Relation], merged: list[str]) -> list[Column]:
    if table:
        return [each for name, columns in sources if name.casefold() == table.casefold() for each in columns]
    every = [each for _, columns in sources for each in columns]
    first = [next(each for each in every if each.name.casefold() == name) for name in dict.fromkeys(merged)]
    return first + [each for each in every if each.name.casefold() not in merged]


def _relation(tree: exp.Expr, known: Relations) -> Relation:
    match tree:
        case exp.Table():
            return tree.alias_or_name, _named(known.get(tree.name.casefold(), ()), tree)
        case exp.Subquery():
            return tree.alias_or_name, _named(_query(tree.this, known), tree)
        case _:
            return tree.alias_or_name, ()


def _named(columns: tuple[Column, ...], tree: exp.Expr) -> tuple[Column, ...]:
    """Columns behind an alias `t(a, b)`."""
    alias = tree.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    renamed = tuple(Column(name, each.type) for name, each in zip(names, columns, strict=False))
    return renamed + columns[len(renamed) :]
