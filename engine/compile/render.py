"""Algebra to SQL: trees of sqlglot, rendered to text once, at the very end.

Filters and projections melt into the SELECT they stand on, scans into the FROM of a join, so that what comes out
reads as a person would write it. A subtree that is used twice becomes a common table expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatchmethod

from sqlglot import exp
from sqlglot.dialects.dialect import DialectType

from engine.algebra.copies import copied
from engine.algebra.dialect import MAX_LEVEL, Spark4
from engine.algebra.nodes import (
    Aggregate,
    Empty,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Project,
    Recursion,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
)
from engine.algebra.scalars import Scalar, col, data_type, null_safe_eq
from engine.errors import InternalError

#: where a leaf is found: a table expression of sqlglot, made for the one who asks
Places = Callable[[Leaf], exp.Expr]


def by_name(leaf: Leaf) -> exp.Expr:
    """Leaves as plain names, `delta_orders`: for people, golden files and temporary views."""
    return table(str(leaf))


def table(name: str) -> exp.Table:
    return exp.Table(this=exp.Identifier(this=name, quoted=True))


def render(root: Node, places: Places = by_name, dialect: DialectType = Spark4, *, pretty: bool = False) -> str:
    return _Renderer(root, places).statement().sql(dialect=dialect, pretty=pretty, copy=False)


def render_call(root: Node, call: Scalar, dialect: DialectType = Spark4) -> str:
    """A SELECT of one expression, for those that give several columns."""
    renderer = _Renderer(root, by_name)
    block = renderer.relation(root)
    select = exp.Select(expressions=[copied(renderer.scalar(call, block))], from_=exp.From(this=block.relation))
    return select.sql(dialect=dialect)


@dataclass(frozen=True)
class _Block:
    """A SELECT in the making: FROM and WHERE, and what each column of the tree is in it."""

    relation: exp.Expr
    columns: dict[str, exp.Expr]
    joins: tuple[exp.Join, ...] = ()
    laterals: tuple[exp.Lateral, ...] = ()
    where: tuple[exp.Expr, ...] = ()
    group: tuple[exp.Expr, ...] | None = None
    #: may a Filter or Project above still melt into it?
    open: bool = True

    @property
    def is_relation(self) -> bool:
        """Nothing but one relation: can stand in another FROM as it is."""
        return self.open and not self.joins and not self.where and self.group is None

    def select(self) -> exp.Select:
        # Values may stand in several places, and a tree has one parent: they are copied. The rest stands here only.
        chosen = [_named(copied(value), name) for name, value in self.columns.items()]
        select = exp.Select(expressions=chosen or [exp.Literal.number(1)])
        select.set("from_", exp.From(this=self.relation))
        select.set("joins", list(self.joins))
        if self.laterals:
            select.set("laterals", list(self.laterals))
        if self.where:
            select.set("where", exp.Where(this=exp.and_(*self.where, copy=False)))
        if self.group:
            select.set("group", exp.Group(expressions=[copied(each) for each in self.group]))
        return select


class _Renderer:
    def __init__(self, root: Node, places: Places) -> None:
        self.root = root
        self.places = places
        self.uses = _count_uses(root)
        self.shared: dict[int, str] = {}
        self.definitions: list[exp.CTE] = []
        self.aliases: dict[str, int] = {}

    def statement(self) -> exp.Expr:
        query = self.query(self.root)
        if self.definitions:
            query.set("with_", exp.With(expressions=self.definitions))
        return query

    # ------------------------------------------------------------ the three forms of a subtree

    def query(self, node: Node) -> exp.Query:
        """As a statement of its own."""
        if isinstance(node, UnionAll):
            return _union([self.query(member) for member in node.members])
        return self.block(node).select()

    def block(self, node: Node) -> _Block:
        """As a SELECT that may still grow."""
        if self.uses[id(node)] > 1 and not isinstance(node, Scan | Empty):
            return self.shared_block(node)
        return self.make(node)

    def shared_block(self, node: Node) -> _Block:
        if id(node) not in self.shared:
            name = self.alias("step")
            query = self.query(node) if isinstance(node, UnionAll) else self.make(node).select()
            self.definitions.append(exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))))
            self.shared[id(node)] = name
        source = self.shared[id(node)]
        alias = self.alias(source[:1])
        place = _aliased(exp.Table(this=exp.to_identifier(source)), exp.to_identifier(alias))
        return self.relation_block(place, alias, node)

    def relation(self, node: Node) -> _Block:
        """As something that can stand in a FROM."""
        block = self.block(node)
        return block if block.is_relation else self.derived(block.select(), node)

    def derived(self, query: exp.Query, node: Node) -> _Block:
        alias = self.alias("t")
        subquery = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
        return self.relation_block(subquery, alias, node)

    def relation_block(self, relation: exp.Expr, alias: str, node: Node) -> _Block:
        return _Block(relation, {column.name: _ref(alias, column.name) for column in node.columns})

    def alias(self, base: str) -> str:
        self.aliases[base] = self.aliases.get(base, 0) + 1
        count = self.aliases[base]
        return f"{base}{count}" if len(base) == 1 or base == "step" else base + (f"_{count}" if count > 1 else "")

    # ------------------------------------------------------------ one method for each operator

    @singledispatchmethod
    def make(self, node: Node) -> _Block:
        raise InternalError(f"{type(node).__name__} cannot be rendered")

    @make.register
    def _(self, node: Scan) -> _Block:
        alias = self.alias(str(node.leaf))
        named = table(node.leaf.name) if node.leaf.role is Role.ITSELF else self.places(node.leaf)
        place = _aliased(named, exp.to_identifier(alias, quoted=True))
        return _Block(place, {name: _ref(alias, source) for name, source, _ in node.fields})

    @make.register
    def _(self, node: Empty) -> _Block:
        chosen = [
            exp.alias_(
                exp.Cast(this=exp.null(), to=data_type(column.type)), exp.to_identifier(column.name, quoted=True)
            )
            for column in node.columns
        ]
        return self.derived(exp.select(*(chosen or [exp.Literal.number(1)])).where(exp.false()), node)

    @make.register
    def _(self, node: Filter) -> _Block:
        block = self.block(node.input)
        if not block.open or block.group is not None:
            block = self.derived(block.select(), node.input)
        return replace(block, where=(*block.where, self.scalar(node.predicate, block)))

    @make.register
    def _(self, node: Project) -> _Block:
        block = self.block(node.input)
        if not block.open or _would_repeat(node, block) or _would_lose_the_row(node, block):
            block = self.derived(block.select(), node.input)
        return replace(block, columns={output.name: self.scalar(output.scalar, block) for output in node.outputs})

    @make.register
    def _(self, node: InnerJoin) -> _Block:
        blocks = [self.liftable(member) for member in node.members]
        first, *others = blocks
        columns = dict(first.columns)
        pending = list(node.conditions)
        joins: list[exp.Join] = list(first.joins)
        for block in others:
            columns.update(block.columns)
            ready = [each for each in pending if each.columns <= columns.keys()]
            pending = [each for each in pending if each not in ready]
            joined = _Block(block.relation, columns)
            join = exp.Join(this=block.relation)
            if ready:
                join.set("on", exp.and_(*(self.scalar(each, joined) for each in ready), copy=False))
            else:
                join.set("kind", "CROSS")
            joins.append(join)
        where = tuple(condition for block in blocks for condition in block.where)
        whole = _Block(first.relation, columns, tuple(joins), where=where)
        return replace(whole, where=(*where, *(self.scalar(each, whole) for each in pending)))

    def liftable(self, node: Node) -> _Block:
        """A member of an inner join: its WHERE may move up, its joins and groups may not."""
        block = self.block(node)
        if block.open and not block.joins and block.group is None:
            return block
        return self.derived(block.select(), node)

    @make.register
    def _(self, node: OuterJoin) -> _Block:
        left, right = self.relation(node.left), self.relation(node.right)
        # Computed above the join, it would have a value also where there is no partner.
        right = right if _passes_columns(right) else self.derived(right.select(), node.right)
        if node.full and not _passes_columns(left):
            left = self.derived(left.select(), node.left)
        joined = _Block(left.relation, {**left.columns, **right.columns})
        conditions = [self.scalar(each, joined) for each in node.conditions] or [exp.true()]
        on = exp.and_(*conditions, copy=False)
        join = exp.Join(this=right.relation, side="FULL" if node.full else "LEFT", on=on)
        return replace(joined, joins=(join,))

    @make.register
    def _(self, node: Exists) -> _Block:
        def on(left: _Block, right: _Block) -> list[exp.Expr]:
            both = _Block(left.relation, {**right.columns, **left.columns})
            return [self.scalar(each, both) for each in node.conditions]

        return self.kept_by(node.input, "ANTI" if node.negated else "SEMI", node.other, on)

    @make.register
    def _(self, node: SemiJoin) -> _Block:
        def on(left: _Block, right: _Block) -> list[exp.Expr]:
            """Each side by itself: the columns of the keys may be called like columns of the input."""
            sides = ((self.scalar(scalar, left), self.scalar(col(name), right)) for scalar, name in node.pairs)
            return [null_safe_eq(Scalar(mine), Scalar(theirs)).tree for mine, theirs in sides]

        return self.kept_by(node.input, "SEMI", node.touched, on)

    def kept_by(
        self, node: Node, kind: str, other: Node, conditions: Callable[[_Block, _Block], list[exp.Expr]]
    ) -> _Block:
        """As a join and not as EXISTS: so there is nothing correlated to take apart, which DuckDB cannot everywhere."""
        left, right = self.block(node), self.relation(other)
        if not left.open or left.group is not None:
            left = self.derived(left.select(), node)
        found = conditions(left, right)
        on = exp.and_(*found, copy=False) if found else exp.true()
        join = exp.Join(this=right.relation, side="LEFT", kind=kind, on=on)
        return replace(left, joins=(*left.joins, join))

    @make.register
    def _(self, node: Aggregate) -> _Block:
        block = self.block(node.input)
        if not block.open or block.group is not None:
            block = self.derived(block.select(), node.input)
        keys = [self.scalar(key.scalar, block) for key in node.keys]
        if not all(key.find(exp.Column) for key in keys):
            # GROUP BY 1 would mean the first column of the SELECT list.
            block = self.derived(block.select(), node.input)
            keys = [self.scalar(key.scalar, block) for key in node.keys]
        columns = dict(zip((key.name for key in node.keys), keys, strict=True))
        columns |= {made.name: self.scalar(made.call, block) for made in node.aggregations}
        return replace(block, columns=columns, group=tuple(keys), open=True)

    @make.register
    def _(self, node: UnionAll) -> _Block:
        return replace(self.derived(self.query(node), node), open=True)

    @make.register
    def _(self, node: Values) -> _Block:
        names = [exp.to_identifier(column.name, quoted=True) for column in node.columns]
        rows = [
            exp.Select(
                expressions=[exp.alias_(value.tree.copy(), name.copy()) for value, name in zip(row, names, strict=True)]
            )
            for row in node.rows
        ]
        if not names:
            rows = [exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one")]) for _ in node.rows]
        return self.derived(_union(rows), node)

    @make.register
    def _(self, node: Window) -> _Block:
        block = self.relation(node.input)
        made = {each.name: self.scalar(each.call, block) for each in node.functions}
        return replace(block, columns={**block.columns, **made}, open=False)

    @make.register
    def _(self, node: Explode) -> _Block:
        block = self.relation(node.input)
        alias = self.alias("e")
        names = [exp.to_identifier(field.name, quoted=True) for field in node.fields]
        lateral = exp.Lateral(
            this=copied(self.scalar(node.call, block)),
            view=True,
            outer=node.outer,
            alias=exp.TableAlias(this=exp.to_identifier(alias), columns=names),
        )
        made = {field.name: _ref(alias, field.name) for field in node.fields}
        return replace(block, laterals=(lateral,), columns={**block.columns, **made}, open=False)

    @make.register
    def _(self, node: Recursion) -> _Block:
        """A WITH of its own: what is shared inside of it may speak of the recursion itself."""
        inner = _Renderer(node, self.places)
        base, step = inner.query(node.base), inner.query(node.step)
        names = [exp.to_identifier(name, quoted=True) for name in node.inner_names]
        name = exp.to_identifier(node.name, quoted=True)
        alias = exp.TableAlias(this=name, columns=names)
        if node.max_level is not None:
            alias.meta[MAX_LEVEL] = node.max_level
        itself = exp.CTE(this=exp.Union(this=base, expression=step, distinct=False), alias=alias)
        chosen = [
            exp.alias_(exp.column(mine.copy()), exp.to_identifier(column.name, quoted=True))
            for mine, column in zip(names, node.columns, strict=True)
        ]
        query = exp.Select(expressions=chosen, from_=exp.From(this=exp.Table(this=name.copy())))
        query.set("with_", exp.With(expressions=[*inner.definitions, itself], recursive=True))
        return self.derived(query, node)

    @make.register
    def _(self, node: Repeat) -> _Block:
        block = self.relation(node.input)
        alias = self.alias("copies")
        # EXPLODE of a sequence, which sqlglot spells for each dialect.
        series = exp.GenerateSeries(start=exp.Literal.number(1), end=copied(block.columns[node.times]))
        copies = exp.Unnest(
            expressions=[series],
            alias=exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(f"{alias}_number")]),
        )
        kept = {column.name: block.columns[column.name] for column in node.columns}
        return replace(block, joins=(exp.Join(this=copies, kind="CROSS"),), columns=kept, open=False)

    def scalar(self, scalar: Scalar, block: _Block) -> exp.Expr:
        """The scalar in terms of the block's FROM. Not to be changed: it may be the block's own."""
        name = scalar.as_column
        if name is not None:
            return block.columns[name]
        return scalar.substitute({name: Scalar(block.columns[name]) for name in scalar.columns}).tree


def _named(value: exp.Expr, name: str) -> exp.Expr:
    """A column that keeps its name is no new one to Spark.

    Of a condition over n columns that are all given a name anew, it derives 2ⁿ, one for each choice of names.
    """
    if isinstance(value, exp.Column) and value.name == name:
        return value
    return exp.Alias(this=value, alias=exp.Identifier(this=name, quoted=True))


def _union(parts: Sequence[exp.Query]) -> exp.Query:
    union = parts[0]
    for part in parts[1:]:
        union = exp.Union(this=union, expression=part, distinct=False)
    return union


def _passes_columns(block: _Block) -> bool:
    return all(isinstance(value, exp.Column) for value in block.columns.values())


def _would_repeat(node: Project, block: _Block) -> bool:
    """Would melting write an expression of the block more than once?"""
    uses = Counter(name for output in node.outputs for name in output.scalar.column_uses)
    return any(
        count > 1 and not isinstance(block.columns[name], exp.Column | exp.Literal) for name, count in uses.items()
    )


def _would_lose_the_row(node: Project, block: _Block) -> bool:
    """Without GROUP BY it is the aggregates in the SELECT list that make one row of many."""
    return block.group == () and not any(output.scalar.columns for output in node.outputs)


def _aliased(relation: exp.Expr, alias: exp.Identifier) -> exp.Expr:
    """What nobody else has: it is given the alias as it is."""
    relation.set("alias", exp.TableAlias(this=alias))
    return relation


def _ref(table: str, column: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=column, quoted=True), table=exp.Identifier(this=table, quoted=True))


def _count_uses(root: Node) -> dict[int, int]:
    uses: dict[int, int] = {}

    def visit(node: Node) -> None:
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for child in node.inputs:
                visit(child)

    visit(root)
    return uses
