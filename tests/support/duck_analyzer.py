"""Answers the compiler's questions to Spark without Spark: names and types of what a query puts out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import sqlglot
from sqlglot import exp

from engine.compile.dialect import Spark4
from engine.records import Column
from tests.support.spark_types import UNKNOWN, type_of, widest

#: what a relation in FROM is called, and the columns it has
Relation = tuple[str, tuple[Column, ...]]
Relations = Mapping[str, tuple[Column, ...]]


@lru_cache(maxsize=32)
def parsed(text: str) -> exp.Expr:
    """Remembered, because one text is asked about again and again; nobody may change it."""
    return sqlglot.parse_one(text, dialect=Spark4)


@lru_cache(maxsize=32)
def for_duckdb(text: str) -> str:
    return parsed(text).sql("duckdb")


class DuckAnalyzer:
    """Implements `engine.compile.pipeline.Analyzer` over declared tables."""

    def __init__(self, relations: Relations) -> None:
        self.relations = {name.casefold(): columns for name, columns in relations.items()}
        #: every query that was asked about, with the answer, so that Spark can be asked the same
        self.asked: dict[str, tuple[Column, ...]] = {}

    def describe(self, sql: str) -> tuple[Column, ...]:
        tree = parsed(sql)
        assert isinstance(tree, exp.Query)
        self.asked[sql] = answer = _query(tree, self.relations)
        return answer

    def same_semantics(self, one: str, other: str) -> bool:
        """As strict as can be without Spark: both must read the same again."""
        one_sql, other_sql = for_duckdb(one), for_duckdb(other)
        # DATE '…' and a cast of the string are the same.
        return one_sql.replace("TRY_CAST", "CAST") == other_sql.replace("TRY_CAST", "CAST")

    def meaning(self, functions: tuple[str, ...]) -> str:
        """DuckDB has one way to understand a query."""
        return "duckdb"


#: the type of a column of a query outside
Outside = Callable[[exp.Column], str]


def _nowhere(column: exp.Column) -> str:
    return UNKNOWN


def _query(tree: exp.Expr, known: Relations, outside: Outside = _nowhere) -> tuple[Column, ...]:
    with_ = tree.args.get("with_")
    if with_ is not None:
        inner = dict(known)
        for cte in with_.expressions:
            if with_.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
                # What the anchor gives is what every round gives.
                inner[cte.alias.casefold()] = _named(_query(cte.this.this, inner), cte)
            inner[cte.alias.casefold()] = _named(_query(cte.this, inner), cte)
        known = inner
    match tree:
        case exp.Subquery():
            return _query(tree.this, known, outside)
        case exp.SetOperation():
            left, right = _query(tree.this, known, outside), _query(tree.expression, known, outside)
            return tuple(Column(a.name, widest([a.type, b.type])) for a, b in zip(left, right, strict=False))
        case exp.Select():
            return _select(tree, known, outside)
        case _:
            return (Column("value", UNKNOWN),)


def _select(tree: exp.Select, known: Relations, outside: Outside) -> tuple[Column, ...]:
    sources, merged = _sources(tree, known, outside)

    def look_up(column: exp.Column) -> str:
        for name, columns in sources:
            if column.table and name.casefold() != column.table.casefold():
                continue
            for each in columns:
                if each.name.casefold() == column.name.casefold():
                    return each.type
        made = next((each.type for each in found if not column.table and each.name == column.name), None)
        return outside(column) if made is None else made

    found: list[Column] = []
    for item in tree.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            found.extend(_star(item.table if isinstance(item, exp.Column) else "", sources, merged))
        else:
            name = item.alias_or_name or item.sql("spark").lower()
            found.append(Column(name, type_of(_without_queries(item, known, look_up), look_up)))
    return tuple(found)


def _without_queries(item: exp.Expr, known: Relations, look_up: Outside) -> exp.Expr:
    """A scalar subquery gives way to a value of its type."""
    if item.find(exp.Subquery) is None:
        return item

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.In | exp.Exists):
            (column,) = _query(node.this, known, look_up)[:1]
            return exp.Cast(this=exp.Null(), to=exp.DataType.build(column.type, dialect="spark"))
        return node

    return item.copy().transform(visit)


def _sources(tree: exp.Expr, known: Relations, outside: Outside) -> tuple[list[Relation], list[str]]:
    """The relations of a FROM, and the names of which a join made one column."""
    from_ = tree.args.get("from_")
    sources = _relations(from_.this, known, outside) if from_ is not None else []
    merged: list[str] = []
    for join in tree.args.get("joins") or []:
        sources = _joined(sources, join, known, outside, merged)
    for lateral in tree.args.get("laterals") or []:
        sources.append(_exploded(lateral, sources))
    return sources, merged


def _joined(
    sources: list[Relation], join: exp.Join, known: Relations, outside: Outside, merged: list[str]
) -> list[Relation]:
    def beside(column: exp.Column) -> str:
        for name, columns in sources:
            if name.casefold() == column.table.casefold():
                return next((each.type for each in columns if each.name.casefold() == column.name.casefold()), UNKNOWN)
        return outside(column)

    added = _relations(join.this, known, beside)
    if join.kind in ("SEMI", "ANTI"):
        return sources
    merged += [name.name.casefold() for name in join.args.get("using") or []]
    if join.method == "NATURAL":
        mine = {each.name.casefold() for _, columns in sources for each in columns}
        merged += [each.name.casefold() for _, columns in added for each in columns if each.name.casefold() in mine]
    return sources + added


def _exploded(lateral: exp.Lateral, sources: list[Relation]) -> Relation:
    def look_up(column: exp.Column) -> str:
        for name, columns in sources:
            if not column.table or name.casefold() == column.table.casefold():
                for each in columns:
                    if each.name.casefold() == column.name.casefold():
                        return each.type
        return UNKNOWN

    names = [each.name for each in lateral.args["alias"].columns]
    types = [type_of(lateral.this, look_up)]
    return lateral.alias, tuple(Column(name, type_) for name, type_ in zip(names, types, strict=False))


def _star(table: str, sources: list[Relation], merged: list[str]) -> list[Column]:
    if table:
        return [each for name, columns in sources if name.casefold() == table.casefold() for each in columns]
    every = [each for _, columns in sources for each in columns]
    first = [next(each for each in every if each.name.casefold() == name) for name in dict.fromkeys(merged)]
    return first + [each for each in every if each.name.casefold() not in merged]


def _relations(tree: exp.Expr, known: Relations, outside: Outside) -> list[Relation]:
    """One relation, or those of a join in parentheses."""
    match tree:
        case exp.Table():
            found = [(tree.alias_or_name, _named(known.get(tree.name.casefold(), ()), tree))]
        case exp.Subquery(this=exp.Table() | exp.Subquery() as inner) if not tree.alias:
            found = _relations(inner, known, outside)
        case exp.Subquery():
            found = [(tree.alias_or_name, _named(_query(tree.this, known), tree))]
        case exp.Lateral():
            found = [(tree.alias, _named(_query(tree.this, known, outside), tree))]
        case exp.Values():
            found = [(tree.alias, _named(_values(tree), tree))]
        case _:
            found = [(tree.alias_or_name, ())]
    for join in tree.args.get("joins") or []:
        found = _joined(found, join, known, outside, [])
    return found


def _values(tree: exp.Values) -> tuple[Column, ...]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions]
    kinds = [widest([type_of(cell, _nowhere) for cell in cells]) for cells in zip(*rows, strict=True)]
    return tuple(Column(f"col{number}", kind) for number, kind in enumerate(kinds, start=1))


def _named(columns: tuple[Column, ...], tree: exp.Expr) -> tuple[Column, ...]:
    """Columns behind an alias `t(a, b)`."""
    alias = tree.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    renamed = tuple(Column(name, each.type) for name, each in zip(names, columns, strict=False))
    return renamed + columns[len(renamed) :]
