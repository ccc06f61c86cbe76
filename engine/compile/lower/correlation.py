"""Subqueries that speak of the query around them.

Such a subquery has an answer for each row around it, but only a few columns of that row matter. The distinct values
of these are the subquery's *domain*. It is one more relation in its FROM, and what belongs to which of its rows stays
known from there on up: its columns are keys of every GROUP BY, DISTINCT and window on the way. So the subquery
becomes an ordinary query, evaluated once, whose result is joined to the query around it by the domain.

Where the text compares the domain with columns of the subquery's own, nothing but that comparison is left of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from engine.algebra.nodes import Empty, Filter, InnerJoin, Node, Output, Project
from engine.algebra.scalars import Scalar, all_of, coalesce, col, conjuncts, not_null, null_safe_eq
from engine.algebra.trees import distinct, inner_join
from engine.algebra.types import is_equal_the_same, is_integer, is_orderable, parse_decimal
from engine.compile.lower.context import Context, Environment, Lowered, Source
from engine.compile.lower.expressions import is_own
from engine.compile.scope import Scope, Visible

NUMBER = "number"
#: clauses of a SELECT whose conditions are known by the tree
_CONDITIONS = ("where", "from_", "joins")


@dataclass(frozen=True)
class Outer:
    """The query around a subquery, as far as the subquery uses it."""

    scope: Scope
    #: the columns that are used, under their names around
    columns: tuple[str, ...]
    #: their distinct values, in that order
    domain: Node
    #: the SELECTs that use them themselves; None while that is being found out
    users: frozenset[int] | None
    found_columns: dict[str, None] = field(default_factory=dict)
    found_users: set[int] = field(default_factory=set)

    @property
    def is_rehearsed(self) -> bool:
        """Is not known yet who uses it, so that everybody is taken for a user?"""
        return self.users is None

    def is_used_by(self, select: exp.Expr) -> bool:
        return self.users is None or number(select) in self.users

    def instance(self, context: Context) -> Source:
        """The domain as one more relation."""
        node, names = context.renamed(self.domain, "outer")
        return Source(node, Scope(), tuple(names[each.name] for each in self.domain.columns))


@dataclass(frozen=True)
class _FromOuter:
    """Names of the query around, for one SELECT."""

    outer: Outer
    select: int
    #: what columns around are called among the rows of this SELECT
    own: dict[str, str]

    def find(self, name: str, table: str | None) -> list[Visible]:
        found = self.outer.scope.find(name, table)
        for each in found:
            self.outer.found_columns[each.own] = None
            self.outer.found_users.add(self.select)
        return [replace(each, own=self.own[each.own]) for each in found]

    def has_table(self, table: str) -> bool:
        return self.outer.scope.has_table(table)


def number(select: exp.Expr) -> int:
    """Tells the SELECTs of a query apart, and survives that parts of the text are copied."""
    return int(select.meta[NUMBER])


def numbered(made: exp.Expr) -> exp.Expr:
    """A query that stands in no text."""
    for place, node in enumerate(made.walk()):
        node.meta.setdefault(NUMBER, -place - 1)
    return made


def seen_from(source: Source, select: exp.Expr, environment: Environment) -> Source:
    """The source with names of the query around, where rows of it are among its own."""
    if environment.outer is None or not source.domain:
        return source
    own = dict(zip(environment.outer.columns, source.domain, strict=True))
    return replace(source, scope=source.scope.within(_FromOuter(environment.outer, number(select), own)))


def with_domain(context: Context, source: Source, environment: Environment) -> Source:
    """The source for each row of the domain."""
    if source.domain or environment.outer is None:
        return source
    instance = environment.outer.instance(context)
    return replace(source, node=inner_join((instance.node, source.node), ()), domain=instance.domain)


@dataclass(frozen=True)
class Correlated:
    """A subquery beside the query around it."""

    lowered: Lowered
    #: columns of the query around, and what they are called in the subquery
    pairs: tuple[tuple[str, str], ...]
    #: the relation that `pairs` came in by
    domain: Node | None

    @property
    def conditions(self) -> tuple[Scalar, ...]:
        return tuple(null_safe_eq(col(around), col(inside)) for around, inside in self.pairs)


def lower_subquery(
    context: Context, tree: exp.Expr, source: Source, environment: Environment, *, as_value: bool = False
) -> Correlated:
    """A subquery in terms of the rows of `source`, which it may speak of."""
    environment = replace(environment, as_value=as_value)
    if context.is_rehearsal:
        # a rehearsal for each level of a rehearsal would take twice as long with each level
        every, lowered = _with_every_column(context, tree, source, environment)
        return Correlated(lowered, tuple(zip(every.columns, lowered.domain, strict=False)), every.domain)
    every = _rehearsed(context, tree, source, environment)
    around, used = every.scope, tuple(every.found_columns)
    if not used:
        return Correlated(context.lower(context, tree, replace(environment, outer=None)), (), None)
    types = source.node.types
    values = Project(
        source.node, tuple(Output(context.names.fresh("outer", name), col(name), types[name]) for name in used)
    )
    domain = distinct(values)
    outer = Outer(around, used, domain, frozenset(every.found_users))
    lowered = context.lower(context, tree, replace(environment, outer=outer))
    pairs = tuple(zip(used, lowered.domain, strict=True)) if lowered.domain else ()
    return Correlated(lowered, pairs, domain)


def _rehearsed(context: Context, tree: exp.Expr, source: Source, environment: Environment) -> Outer:
    """What a subquery speaks of."""
    return _with_every_column(context.rehearsal(), tree, source, environment)[0]


def _with_every_column(
    rehearsal: Context, tree: exp.Expr, source: Source, environment: Environment
) -> tuple[Outer, Lowered]:
    """The subquery as if it spoke of all columns around, and of which of them it does."""
    # what cannot be a key is no obstacle before it is known to be used
    columns = tuple(each if is_orderable(each.type) else replace(each, type="") for each in source.node.columns)
    every = Outer(_seen_from_inside(source), tuple(each.name for each in columns), Empty(columns), users=None)
    return every, rehearsal.lower(rehearsal, tree, replace(environment, outer=every))


def columns_used(context: Context, tree: exp.Expr, source: Source, environment: Environment) -> frozenset[str]:
    """Of the source, by an expression and by the subqueries in it."""
    found: set[str] = set()
    for node in tree.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(node, exp.Query):
            found.update(_rehearsed(context, node, source, environment).found_columns)
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            visible = source.scope.find(node.name, node.table or None)
            found.update([node.name] if is_own(node) else (each.own for each in visible))
    return frozenset(found)


def _seen_from_inside(source: Source) -> Scope:
    """The names of a source, for those of its columns that are still there once it was grouped."""
    known = {tree.name: scalar.as_column or "" for tree, scalar in source.known.items() if isinstance(tree, exp.Column)}
    scope = source.scope.with_own(known)
    return replace(scope, columns=tuple(each for each in scope.columns if each.own in source.node.names))


# ------------------------------------------------------------------ without the domain


def without_domain(context: Context, source: Source, select: exp.Expr, environment: Environment) -> Source:
    """The source without the relation of the domain, where each of its columns is compared with one of its own.

    Rows of the domain that have no partner are gone then, and rows of others are there that belong to none: neither
    matters to who joins the result to the query around.
    """
    if environment.outer is None or not source.domain:
        return source
    members, conditions = _taken_apart(source.node)
    domain = next((each for each in members if frozenset(source.domain) <= each.names), None)
    if domain is None or not _passes_on(domain, environment.outer.domain):
        return source
    others = tuple(each for each in members if each is not domain)
    types = {name: type_ for each in others for name, type_ in each.types.items()}
    values: dict[str, Scalar] = {}
    decisive: list[Scalar] = []
    for condition in conditions:
        for name, value in _equalities(condition):
            if (
                name in source.domain
                and name not in values
                and value not in values.values()
                and value.as_column in types
                and compares_alike(domain.types[name], types[value.as_column or ""])
            ):
                values[name] = value
                decisive.append(condition)
    if not others or len(values) < len(source.domain):
        return source
    said = _said_again(environment.outer, select, source)
    said = said.union(*(each.columns for each in conditions if each not in decisive))
    if not all(_stands_for(types[values[name].as_column or ""], domain.types[name]) for name in said & values.keys()):
        return source
    rest = tuple(each.substitute(values) for each in conditions)
    compared = tuple(dict.fromkeys(values.values()))
    kept = tuple(each for each in rest if not any(_says_nothing_but(each, value) for value in compared))
    kept += tuple(not_null(value) for value in compared)
    node = others[0] if len(others) == 1 else InnerJoin(others, ())
    own = {name: value.as_column or "" for name, value in values.items()}
    left = Source(Filter(node, all_of(kept)), source.scope.with_own(own), tuple(own[name] for name in source.domain))
    return seen_from(left, select, environment)


def _said_again(outer: Outer, select: exp.Expr, source: Source) -> frozenset[str]:
    """Columns of the domain that are named elsewhere than in the conditions of this SELECT."""
    if outer.users != frozenset({number(select)}):
        return frozenset(source.domain)
    clauses = [part for key, value in select.args.items() if key not in _CONDITIONS for part in _trees(value)]
    named = (column for clause in clauses for column in clause.find_all(exp.Column))
    found = (source.scope.find(each.name, each.table or None) for each in named if not is_own(each))
    return frozenset(visible.own for each in found for visible in each) & frozenset(source.domain)


def _trees(value: object) -> list[exp.Expr]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, exp.Expr)]


def _stands_for(one: str, other: str) -> bool:
    """Is what equals a value of that type this very value?"""
    return one == other and is_equal_the_same(one)


def opened(correlated: Correlated, conditions: tuple[Scalar, ...]) -> tuple[Node, tuple[Scalar, ...]]:
    """What rows around must find a partner in, and by which conditions.

    Where the subquery is a plain join, what it says of the query around becomes a condition on the partner, and the
    domain is not needed at all.
    """
    lowered = correlated.lowered
    whole = (lowered.node, (*correlated.conditions, *conditions))
    if not correlated.pairs or correlated.domain is None:
        return whole
    parts = _opened(lowered.node)
    if parts is None:
        return whole
    members, inside, values = parts
    domain = next((each for each in members if _passes_on(each, correlated.domain)), None)
    if domain is None:
        return whole
    around = {inner: col(outer) for outer, inner in correlated.pairs}
    # the instance may be known by other names than the result's
    named = {values[name].as_column or "": scalar for name, scalar in around.items() if name in values}
    others = tuple(each for each in members if each is not domain)
    if not others or frozenset(named) != domain.names:
        return whole
    wanted = tuple(each.substitute(values).substitute(named) for each in conditions)
    spoken = tuple(each.substitute(named) for each in inside if each.columns & domain.names)
    silent = tuple(each for each in inside if not each.columns & domain.names)
    node = others[0] if len(others) == 1 and not silent else InnerJoin(others, silent)
    return node, (*spoken, *wanted)


def _opened(node: Node) -> tuple[tuple[Node, ...], tuple[Scalar, ...], dict[str, Scalar]] | None:
    """A plain join as members, conditions and what its columns are in terms of them."""
    match node:
        case Project(input=below, outputs=outputs):
            parts = _opened(below)
            if parts is None:
                return None
            members, conditions, values = parts
            return members, conditions, {each.name: each.scalar.substitute(values) for each in outputs}
        case Filter() | InnerJoin():
            members, conditions = _taken_apart(node)
            return members, conditions, {name: col(name) for name in node.names}
        case _:
            return None


def _taken_apart(node: Node) -> tuple[tuple[Node, ...], tuple[Scalar, ...]]:
    match node:
        case Filter(input=below, predicate=predicate):
            members, conditions = _taken_apart(below)
            return members, conditions + conjuncts(predicate)
        case InnerJoin(members=members, conditions=conditions):
            parts = [_taken_apart(each) if isinstance(each, InnerJoin) else ((each,), ()) for each in members]
            inner = tuple(condition for _, each in parts for condition in each)
            return tuple(part for each, _ in parts for part in each), conditions + inner
        case _:
            return (node,), ()


def _passes_on(node: Node, domain: Node) -> bool:
    return isinstance(node, Project) and node.input is domain


def _equalities(condition: Scalar) -> tuple[tuple[str, Scalar], ...]:
    """`a = b` as (a, b) and (b, a)."""
    tree = condition.tree.unnest()
    if not isinstance(tree, exp.EQ):
        return ()
    left, right = Scalar(tree.left.unnest()), Scalar(tree.right.unnest())
    both = ((left, right), (right, left))
    return tuple((one.as_column, other) for one, other in both if one.as_column)


def _says_nothing_but(condition: Scalar, value: Scalar) -> bool:
    """Does `value = value` stand there, which holds wherever the value is known?"""
    tree = condition.tree.unnest()
    return isinstance(tree, exp.EQ) and tree.left.unnest() == tree.right.unnest() == value.tree.unnest()


def compares_alike(one: str, other: str) -> bool:
    """Is what equals one value of the one type just one value of the other?"""
    exact = (is_integer(one) or parse_decimal(one) is not None) and (
        is_integer(other) or parse_decimal(other) is not None
    )
    return one == other or exact


def merged_domain(context: Context, node: Node, left: tuple[str, ...], right: tuple[str, ...]) -> Source:
    """After a full join either side's columns may be missing."""
    made = [
        Output(context.names.fresh("outer", one), coalesce(col(one), col(other)), node.types[one])
        for one, other in zip(left, right, strict=True)
    ]
    kept = tuple(Output(c.name, col(c.name), c.type) for c in node.columns)
    return Source(Project(node, (*kept, *made)), Scope(), tuple(each.name for each in made))
