"""Answers the compiler's questions to Spark without Spark: names and types of what a query puts out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.algebra.copies import copied
from engine.algebra.dialect import Spark4
from engine.compile import functions
from engine.compile.identifiers import spell_identifiers
from engine.compile.parse import spell_pipes
from engine.errors import QueryParseError
from engine.lake.opinion import Opinion
from engine.lake.sql_functions import SqlFunction
from engine.records import Column
from tests.support.duck_dialect import write_as_spark_means_it
from tests.support.spark_types import TIME_WINDOWS, UNKNOWN, field_of, fields_of, type_of, widest

write_as_spark_means_it()

#: what a relation in FROM is called, and the columns it has
Relation = tuple[str, tuple[Column, ...]]
Relations = Mapping[str, tuple[Column, ...]]
#: a SELECT, and what tells the type of an expression in it
Visit = Callable[[exp.Expr, Callable[[exp.Expr], str]], None]


@lru_cache(maxsize=32)
def parsed(text: str) -> exp.Expr:
    """Remembered, because one text is asked about again and again; nobody may change it."""
    tree = sqlglot.parse_one(text, dialect=Spark4)
    spell_pipes(tree)
    spell_identifiers(tree, text)
    return tree


@lru_cache(maxsize=32)
def for_duckdb(text: str) -> str:
    tree = copied(parsed(text))
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()  # nothing to DuckDB
    for join in tree.find_all(exp.Join):
        if join.meta.get("comma"):
            join.set("kind", "CROSS")  # a comma binds less than JOIN to DuckDB, and not to Spark
    return tree.sql("duckdb", copy=False)


class DuckAnalyzer:
    """Implements `engine.compile.pipeline.Analyzer` over declared tables."""

    def __init__(self, relations: Relations) -> None:
        self.relations = {name.casefold(): columns for name, columns in relations.items()}
        #: every query that was asked about, with the answer, so that Spark can be asked the same
        self.asked: dict[str, tuple[Column, ...]] = {}
        #: functions that somebody wrote in SQL
        self.made: dict[str, SqlFunction] = {}
        #: names of aggregate functions that somebody made, in whatever language
        self.aggregates: set[str] = set()

    def describe(self, sql: str) -> tuple[Column, ...]:
        try:
            tree = parsed(sql)
        except SqlglotError as error:
            refused = QueryParseError("this is not SQL")
            refused.by_parser = True
            raise refused from error
        assert isinstance(tree, exp.Query)
        self.asked[sql] = answer = described(tree, self.relations)
        return answer

    def same_semantics(self, one: str, other: str) -> bool:
        """As strict as can be without Spark: both must read the same again."""
        try:
            one_sql, other_sql = for_duckdb(one), for_duckdb(other)
        except SqlglotError:
            return False  # what sqlglot writes, it does not always read again
        # DATE '…' and a cast of the string are the same.
        return one_sql.replace("TRY_CAST", "CAST") == other_sql.replace("TRY_CAST", "CAST")

    def opinion(self, sql: str) -> Opinion:
        """What the text says; what it leaves open (a column named user, a text that may be a date) is harmless."""
        found = [each for each in functions.classify(parsed(sql), self.declared) if not each.suspected]
        volatile = any(each.volatility is functions.Volatility.VOLATILE for each in found)
        stable = [each for each in found if each.volatility is functions.Volatility.STABLE]
        words = any(each.name.startswith("'") for each in stable)
        session = any("session" in each.why for each in stable)
        clock = any("clock" in each.why and not each.name.startswith("'") for each in stable)
        return Opinion(not volatile, clock, session, words)

    @property
    def declared(self) -> Mapping[str, functions.Function]:
        """Of functions that somebody made: deterministic as far as anybody can see."""
        names = {name for body in self.made.values() for _, name in functions.calls(parsed(f"SELECT {body.body}"))}
        return {name: functions.Function(name, functions.Kind.UNKNOWN) for name in {*self.made, *names}}

    def show_view(self, name: str, sql: str) -> None:
        self.relations[name.casefold()] = self.describe(sql)

    def kind_of(self, function: str) -> functions.Kind:
        return functions.Kind.AGGREGATE if function in self.aggregates else functions.Kind.SCALAR

    def look_up(self, function: str) -> SqlFunction | None:
        return self.made.get(function)

    def meaning(self, functions: tuple[str, ...]) -> str:
        """DuckDB has one way to understand a query, but for functions that somebody made."""
        return "\n".join(["duckdb", *(str(self.made.get(name)) for name in functions)])


def described(tree: exp.Expr, relations: Relations) -> tuple[Column, ...]:
    """Names and types of a query's columns."""
    return _query(tree, _Scope(relations))


def visit_selects(tree: exp.Expr, relations: Relations, visit: Visit) -> None:
    """Shows every SELECT of a query, with what tells the types of its expressions."""
    _query(tree, _Scope(relations, visit=visit))


@dataclass(frozen=True)
class _Scope:
    """What can be named in a query."""

    #: tables and common table expressions, by folded name
    known: Relations
    #: what stands in FROM
    sources: tuple[Relation, ...] = ()
    #: outputs to the left in the same SELECT list, which Spark lets the next ones use
    outputs: tuple[Column, ...] = ()
    #: the query around this one
    outer: _Scope | None = None
    #: is shown every SELECT
    visit: Visit | None = None

    def inner(self) -> _Scope:
        """Of a subquery: it sees all that is here from outside."""
        return _Scope(self.known, outer=self, visit=self.visit)

    def beside(self) -> _Scope:
        """Of a derived table: it sees what this query sees around itself, and not what stands beside."""
        return _Scope(self.known, outer=self.outer, visit=self.visit)

    def look_up(self, column: exp.Column) -> str:
        for name, columns in self.sources:
            if column.table and name.casefold() != column.table.casefold():
                continue
            for each in columns:
                if each.name.casefold() == column.name.casefold():
                    return each.type
        if not column.table:
            for each in self.outputs:
                if each.name.casefold() == column.name.casefold():
                    return each.type
        else:
            struct = self.look_up(exp.column(column.table))
            if struct != UNKNOWN:
                return field_of(struct, column.name)
        return self.outer.look_up(column) if self.outer is not None else self._call_that_is_meant(column)

    def _call_that_is_meant(self, column: exp.Column) -> str:
        """`window`, `window.start` and `grouping__id` stand for a call in the same SELECT."""
        if column.name == "grouping__id":
            return "bigint"
        called = (column.table or column.name).casefold()
        select = column.parent_select
        for call in select.find_all(exp.Anonymous) if select is not None else ():
            if functions.name_of(call) == called in TIME_WINDOWS:
                window = self.type_of(call)
                return field_of(window, column.name) if column.table else window
        return UNKNOWN

    def type_of(self, tree: exp.Expr) -> str:
        return type_of(tree, self.look_up, lambda query: [each.type for each in _query(query, self.inner())])


def _query(tree: exp.Expr, scope: _Scope) -> tuple[Column, ...]:
    with_ = tree.args.get("with_")
    if with_ is not None:
        known = dict(scope.known)
        for cte in with_.expressions:
            if with_.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
                # What it begins with is what every round gives.
                known[cte.alias.casefold()] = _named(_query(cte.this.this, replace(scope, known=known)), cte)
            known[cte.alias.casefold()] = _named(_query(cte.this, replace(scope, known=known)), cte)
        scope = replace(scope, known=known)
    match tree:
        case exp.Subquery():
            return _query(tree.this, scope)
        case exp.SetOperation():
            left, right = _query(tree.this, scope), _query(tree.expression, scope)
            both = zip(left, right, strict=False)
            return tuple(replace(one, type=widest([one.type, other.type])) for one, other in both)
        case exp.Select():
            return _select(tree, scope)
        case exp.Values():
            return _values(tree, scope)
        case _:
            return (Column("value", UNKNOWN),)


def _select(tree: exp.Select, scope: _Scope) -> tuple[Column, ...]:
    from_ = tree.args.get("from_")
    sources = _relations(from_.this, scope) if from_ is not None else []
    merged: list[str] = []
    for join in tree.args.get("joins") or []:
        # LATERAL sees what stands to its left.
        added = _relations(join.this, replace(scope, sources=tuple(sources)))
        if join.side in ("SEMI", "ANTI") or join.kind in ("SEMI", "ANTI"):
            continue
        merged += [name.name.casefold() for name in join.args.get("using") or []]
        if join.method == "NATURAL":
            mine = {each.name.casefold() for _, columns in sources for each in columns}
            merged += [each.name.casefold() for _, columns in added for each in columns if each.name.casefold() in mine]
        sources += added
    for lateral in tree.args.get("laterals") or []:
        sources.append(_lateral(lateral, replace(scope, sources=tuple(sources))))
    scope = replace(scope, sources=tuple(sources))
    found: list[Column] = []
    for item in tree.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            excepted = star.args.get("except_") or ()
            left_out = {each.name.casefold() for each in excepted if not each.text("table")}
            qualified = {(each.text("table").casefold(), each.name.casefold()) for each in excepted}
            some = [
                (name, tuple(each for each in columns if (name.casefold(), each.name.casefold()) not in qualified))
                for name, columns in sources
            ]
            columns = _star(item.table if isinstance(item, exp.Column) else "", some, merged, scope)
            if not columns:
                columns = fields_of(scope.type_of(exp.column(item.args["table"].copy(), item.args.get("db"))))
            found.extend(each for each in columns if each.name.casefold() not in left_out)
        else:
            name = item.alias_or_name or ("col" if isinstance(item, exp.Explode) else item.sql("spark").lower())
            found.append(Column(name, replace(scope, outputs=tuple(found)).type_of(item)))
    if scope.visit is not None:
        _show(tree, replace(scope, outputs=tuple(found)), scope.visit)
    return tuple(found)


def _show(tree: exp.Select, scope: _Scope, visit: Visit) -> None:
    visit(tree, scope.type_of)
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Query) and part is not tree):
        if (
            isinstance(node, exp.Query)
            and node is not tree
            and not isinstance(node.parent, exp.From | exp.Join | exp.CTE)
        ):
            _query(node, scope.inner())


def _star(table: str, sources: list[Relation], merged: list[str], scope: _Scope) -> list[Column]:
    if table:
        return [each for name, columns in sources if name.casefold() == table.casefold() for each in columns]
    every = [each for _, columns in sources for each in columns]
    first = [next(each for each in every if each.name.casefold() == name) for name in dict.fromkeys(merged)]
    return first + [each for each in every if each.name.casefold() not in merged]


def _relations(tree: exp.Expr, scope: _Scope) -> list[Relation]:
    """One relation, or those of a join in parentheses."""
    if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Table | exp.Subquery) and not tree.alias:
        found = _relations(tree.this, scope)
    else:
        found = [_relation(tree, scope)]
    for join in tree.args.get("joins") or []:
        found += _relations(join.this, replace(scope, sources=tuple(found)))
    return found


def _relation(tree: exp.Expr, scope: _Scope) -> Relation:
    if tree.args.get("pivots"):
        return _pivoted(tree, tree.args["pivots"][0], scope)
    match tree:
        case exp.Table(this=exp.Explode() | exp.Inline()):
            return _lateral(tree, scope)
        case exp.Table():
            return tree.alias_or_name, _named(scope.known.get(tree.name.casefold(), ()), tree)
        case exp.Subquery():
            return tree.alias_or_name, _named(_query(tree.this, scope.beside()), tree)
        case exp.Values():
            return tree.alias_or_name, _named(_values(tree, scope), tree)
        case exp.Lateral(this=exp.Subquery() as subquery):
            return tree.alias_or_name, _named(_query(subquery.this, scope.inner()), tree)
        case exp.Lateral():
            return _lateral(tree, scope)
        case exp.Unnest():
            return tree.alias_or_name, _named((Column("col", _element(scope.type_of(tree.expressions[0]))),), tree)
        case _:
            return tree.alias_or_name, ()


def _pivoted(tree: exp.Expr, pivot: exp.Pivot, scope: _Scope) -> Relation:
    """The columns that are left, and those that PIVOT or UNPIVOT makes."""
    alone = tree.copy()
    alone.set("pivots", None)
    name, columns = _relation(alone, scope)
    inner = replace(scope, sources=((name, columns),))
    field = pivot.args["fields"][0]
    if pivot.args.get("unpivot"):
        turned = [each if isinstance(each, exp.Column) else each.this for each in field.expressions]
        taken = {each.name for each in turned}
        value = Column(pivot.expressions[0].name, widest([inner.type_of(each) for each in turned]))
        made = (Column(field.this.name, "string"), value)
    else:
        calls = [each.unalias() for each in pivot.expressions]
        taken = {column.name for part in (*calls, field.this) for column in part.find_all(exp.Column)}
        types = [inner.type_of(call) for _ in field.expressions for call in calls]
        made = tuple(Column(each.name, type_) for each, type_ in zip(pivot.args["columns"], types, strict=True))
    alias = pivot.args.get("alias")
    return (alias.name if alias else name), tuple(each for each in columns if each.name not in taken) + made


def _lateral(tree: exp.Lateral | exp.Table, scope: _Scope) -> Relation:
    """Rows made of an array."""
    made = tree.this
    element = _element(scope.type_of(made.this)) if isinstance(made, exp.Explode | exp.Inline) else UNKNOWN
    position = (Column("pos", "int"),) if isinstance(made, exp.Posexplode) else ()
    return tree.alias_or_name, _named((*position, Column("col", element)), tree)


def _element(type_: str) -> str:
    return type_.removeprefix("array<").removesuffix(">") if type_.startswith("array<") else UNKNOWN


def _values(tree: exp.Values, scope: _Scope) -> tuple[Column, ...]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions]
    columns = [widest([scope.type_of(value) for value in column]) for column in zip(*rows, strict=True)]
    return tuple(Column(f"col{number}", type_) for number, type_ in enumerate(columns, start=1))


def _named(columns: tuple[Column, ...], tree: exp.Expr) -> tuple[Column, ...]:
    """Columns behind an alias `t(a, b)`."""
    alias = tree.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    renamed = tuple(Column(name, each.type) for name, each in zip(names, columns, strict=False))
    return renamed + columns[len(renamed) :]
