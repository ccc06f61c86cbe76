"""FROM: tables, common table expressions, derived tables, VALUES, and the joins between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.nodes import ONE_ROW, Exists, Leaf, OuterJoin, Output, Project, Role, Scan
from engine.algebra.scalars import Scalar, coalesce, col, conjuncts, eq, null_safe_eq
from engine.algebra.trees import inner_join
from engine.compile.lower.context import Context, Definition, Environment, Lowered, Source
from engine.compile.lower.correlation import lower_subquery, merged_domain, numbered, seen_from, with_domain
from engine.compile.lower.expressions import column_named, scalar
from engine.compile.lower.generators import generated, is_generator
from engine.compile.lower.pivots import pivoted
from engine.compile.lower.ranges import is_range, numbers
from engine.compile.lower.recursion import lower_itself, lower_recursive
from engine.compile.lower.subqueries import filtered, with_values_of
from engine.compile.parse import names_itself, naming_the_view
from engine.compile.scope import Scope, Visible, aliased


def from_clause(context: Context, select: exp.Select, environment: Environment) -> Source | None:
    """None where there is no FROM."""
    clause = select.args.get("from_")
    if clause is None:
        return None
    return joined(context, clause.this, select.args.get("joins") or [], select, environment)


def joined(
    context: Context, first: exp.Expr, joins: Sequence[exp.Join], select: exp.Expr, environment: Environment
) -> Source:
    """From left to right. To Spark a comma is a join like any other, which does not bind less than the rest."""
    source = _started(context, first, select, environment)
    for join in joins:
        source = _join(context, source, join, select, environment)
    return source


def _started(context: Context, tree: exp.Expr, select: exp.Expr, environment: Environment) -> Source:
    if isinstance(tree, exp.Table) and is_generator(tree.this):
        return _function(context, tree, select, environment)
    source = relation(context, tree, environment)
    if environment.outer is not None and environment.outer.is_used_by(select):
        source = with_domain(context, source, environment)
    return seen_from(source, select, environment)


# ------------------------------------------------------------------ one relation


def relation(context: Context, tree: exp.Expr, environment: Environment) -> Source:
    if tree.args.get("pivots"):
        return _pivoted(context, tree, environment)
    if tree.args.get("sample") or isinstance(tree, exp.TableSample):
        raise context.unsupported(tree, "TABLESAMPLE")
    joins = tree.args.get("joins")
    if joins:
        alone = tree.copy()
        alone.set("joins", None)
        return joined(context, alone, joins, tree, environment)
    match tree:
        case exp.Table() if is_generator(tree.this):
            return generated(context, Source(ONE_ROW, Scope()), tree, outer=False)
        case exp.Table() if is_range(tree):
            return numbers(context, tree)
        case exp.Table() if isinstance(tree.this, exp.Values):
            return _of(context.lower(context, tree.this, environment), tree)
        case exp.Table():
            return _table(context, tree, environment)
        case exp.Lateral(this=exp.Subquery() as query):
            return _of(context.lower(context, query, environment), tree)  # nothing stands before it
        case exp.Subquery() if _is_join(tree.this):
            return _nested(context, tree, environment)
        case exp.Subquery() | exp.Values():
            return _of(context.lower(context, tree, environment), tree)
        case _:
            raise context.unsupported(tree, f"{type(tree).__name__.upper()} in FROM")


def _pivoted(context: Context, tree: exp.Expr, environment: Environment) -> Source:
    pivots = tree.args["pivots"]
    if len(pivots) > 1 or tree.args.get("joins"):
        raise context.unsupported(tree, "PIVOT of a PIVOT, or of a join,")
    alone = tree.copy()
    alone.set("pivots", None)
    query, alias = pivoted(context, relation(context, alone, environment), tree, pivots[0])
    return _of(context.lower(context, numbered(query), environment), exp.Subquery(this=query, alias=alias))


def _rows_of(lateral: exp.Lateral) -> exp.Select:
    """What a function gives, as a query."""
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=lateral.this.copy())))
    numbered(query)
    return query


def _function(context: Context, call: exp.Table, select: exp.Expr, environment: Environment) -> Source:
    """A function in FROM; its arguments may speak of the query around."""
    rows = Source(ONE_ROW, Scope())
    if environment.outer is not None and environment.outer.is_used_by(select):
        rows = seen_from(environment.outer.instance(context), select, environment)
    return generated(context, rows, call, outer=False)


def _is_join(tree: exp.Expr) -> bool:
    """In parentheses there may be a query, or a part of FROM."""
    if isinstance(tree, exp.Subquery):
        return bool(tree.args.get("joins") or tree.alias) or _is_join(tree.this)
    return isinstance(tree, exp.Table)


def _nested(context: Context, tree: exp.Subquery, environment: Environment) -> Source:
    """Joins in parentheses."""
    source = relation(context, tree.this, environment)
    alias = tree.args.get("alias")
    if alias is None:
        return source
    names = [each.name for each in alias.args.get("columns") or []]
    visible = tuple(source.scope.all_of(None))
    return replace(source, scope=Scope(aliased(visible, alias.name, names)))


def _of(lowered: Lowered, tree: exp.Expr) -> Source:
    alias = tree.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or []] if alias else []
    return Source(lowered.node, Scope(aliased(lowered.visible, alias.name if alias else "", names)), lowered.domain)


def _table(context: Context, tree: exp.Table, environment: Environment) -> Source:
    for clause in ("version", "when", "hints"):
        if tree.args.get(clause):
            raise context.unsupported(tree, "a table with time travel or hints")
    if not isinstance(tree.this, exp.Identifier):
        raise context.unsupported(tree, f"the table function {tree.this.sql()}")
    folded = tree.name.casefold()
    if not tree.db and folded in environment.definitions:
        return _definition(context, tree, environment)
    if tree.db or folded not in context.relations:
        raise context.unsupported(tree, f"the relation {tree.sql()}")
    name, columns = context.relations[folded]
    alias = tree.alias or tree.name
    fields = tuple((context.names.fresh(alias, each.name), each.name, each.type) for each in columns)
    scan = Scan(Leaf(Role.NEW, name), fields)
    given = tree.args.get("alias")
    names = [each.name for each in given.args.get("columns") or []] if given else []
    visible = tuple(Visible(alias, source, own) for own, source, _ in fields)
    return Source(scan, Scope(aliased(visible, alias, names)))


def _definition(context: Context, tree: exp.Table, environment: Environment) -> Source:
    """A common table expression: lowered once, and known by new names wherever it is used again."""
    definition = environment.definitions[tree.name.casefold()]
    lowered = lower_itself(context, definition.itself) if definition.itself else _lowered(context, definition, tree)
    around = definition.environment.outer
    if lowered.domain and around is not None and around is not environment.outer:
        if not around.is_rehearsed:
            raise context.unsupported(tree, "a WITH that speaks of a query around it, used in yet another query")
        lowered = replace(lowered, domain=())
    inner = definition.tree.args["alias"]
    visible = aliased(lowered.visible, inner.name, [each.name for each in inner.args.get("columns") or []])
    given = tree.args.get("alias")
    names = [each.name for each in given.args.get("columns") or []] if given else []
    return Source(lowered.node, Scope(aliased(visible, tree.alias or tree.name, names)), lowered.domain)


def _lowered(context: Context, definition: Definition, named_at: exp.Table) -> Lowered:
    key = (id(definition.tree), id(definition.environment.outer))
    known = context.lowered_definitions.get(key)
    if known is None:
        tree = definition.tree
        view = definition.view
        if view is not None:
            with naming_the_view(view.name, context.position(named_at)):
                known = context.lower(replace(context, query=view.query), tree.this, definition.environment)
        elif names_itself(tree):
            known = lower_recursive(context, definition)
        else:
            known = context.lower(context, tree.this, definition.environment)
        context.lowered_definitions[key] = known
        return known
    node, names = context.renamed(known.node)
    visible = tuple(replace(each, own=names[each.own]) for each in known.visible)
    return Lowered(node, visible, tuple(names[each] for each in known.domain))


# ------------------------------------------------------------------ joins


def _join(context: Context, left: Source, join: exp.Join, select: exp.Expr, environment: Environment) -> Source:
    if isinstance(join.this, exp.Lateral):
        return _lateral(context, left, join, select, environment)
    right = relation(context, join.this, environment)
    side, kind = join.side, join.kind
    keeps_left = kind in ("SEMI", "ANTI")
    condition = join.args.get("on")
    if condition is not None and condition.find(exp.Query) is not None:
        if not side and not keeps_left:
            both = _by_side(context, left, right, side, (), select, environment)
            return filtered(context, both, condition, environment)
        (left, right), condition = with_values_of(context, (left, right), condition, environment)
        join = join.copy()
        join.set("on", condition)
    shared = _shared(context, left, right, join)
    if shared is not None and not keeps_left:
        return _join_using(context, left, right, shared, join, select, environment)
    if shared is not None:
        on = _equal(context, left, right, shared, join)
    else:
        on = _condition(context, left, right, join, select, environment)
    if keeps_left:
        return replace(left, node=Exists(left.node, right.node, on, negated=kind == "ANTI"))
    return _by_side(context, left, right, side, on, select, environment)


def _condition(
    context: Context, left: Source, right: Source, join: exp.Join, select: exp.Expr, environment: Environment
) -> tuple[Scalar, ...]:
    on = join.args.get("on")
    if on is None:
        return ()
    both = replace(left, scope=left.scope.beside(right.scope))
    return conjuncts(scalar(context, on, seen_from(both, select, environment).scope))


def _shared(context: Context, left: Source, right: Source, join: exp.Join) -> tuple[str, ...] | None:
    """Names of columns that the join compares by themselves; None where it says its condition."""
    using = join.args.get("using")
    if using:
        return tuple(each.name for each in using)
    if join.method != "NATURAL":
        return None
    mine = [each.name for each in left.scope.all_of(None)]
    others = {each.name.casefold() for each in right.scope.all_of(None)}
    return tuple(dict.fromkeys(name for name in mine if name.casefold() in others))


def _equal(
    context: Context, left: Source, right: Source, shared: tuple[str, ...], join: exp.Join
) -> tuple[Scalar, ...]:
    pairs = ((column_named(context, side.scope, name, join) for side in (left, right)) for name in shared)
    return tuple(eq(col(one), col(other)) for one, other in pairs)


def _join_using(
    context: Context,
    left: Source,
    right: Source,
    shared: tuple[str, ...],
    join: exp.Join,
    select: exp.Expr,
    environment: Environment,
) -> Source:
    mine = {name: column_named(context, left.scope, name, join) for name in shared}
    others = {name: column_named(context, right.scope, name, join) for name in shared}
    on = _equal(context, left, right, shared, join)
    source = _by_side(context, left, right, join.side, on, select, environment)
    match join.side:
        case "RIGHT":
            own = others
        case "FULL":
            made = {name: context.names.fresh("", name) for name in shared}
            kept = tuple(Output(c.name, col(c.name), c.type) for c in source.node.columns)
            both = [Output(made[n], coalesce(col(mine[n]), col(others[n])), "") for n in shared]
            source = replace(source, node=context.typed(Project(source.node, (*kept, *both))))
            own = made
        case _:
            own = mine
    scope = left.scope.beside_sharing(right.scope, own)
    return seen_from(replace(source, scope=scope), select, environment)


def _by_side(
    context: Context,
    left: Source,
    right: Source,
    side: str,
    on: tuple[Scalar, ...],
    select: exp.Expr,
    environment: Environment,
) -> Source:
    if not side:
        return _inner(left, right, on, select, environment)
    if left.domain or right.domain:
        left, right = with_domain(context, left, environment), with_domain(context, right, environment)
        on += _same_domain(left, right)
    scope = left.scope.beside(right.scope)
    match side:
        case "LEFT":
            source = Source(OuterJoin(left.node, right.node, on), scope, left.domain)
        case "RIGHT":
            source = Source(OuterJoin(right.node, left.node, on), scope, right.domain)
        case _:
            source = Source(OuterJoin(left.node, right.node, on, full=True), scope)
            if left.domain:
                source = replace(merged_domain(context, source.node, left.domain, right.domain), scope=scope)
    return seen_from(source, select, environment)


def _inner(left: Source, right: Source, on: tuple[Scalar, ...], select: exp.Expr, environment: Environment) -> Source:
    if left.domain and right.domain:
        on += _same_domain(left, right)
    node = inner_join((left.node, right.node), on)
    return seen_from(Source(node, left.scope.beside(right.scope), left.domain or right.domain), select, environment)


def _same_domain(left: Source, right: Source) -> tuple[Scalar, ...]:
    return tuple(null_safe_eq(col(one), col(other)) for one, other in zip(left.domain, right.domain, strict=True))


def _lateral(context: Context, left: Source, join: exp.Join, select: exp.Expr, environment: Environment) -> Source:
    """A relation that speaks of those before it."""
    lateral, on = join.this, join.args.get("on")
    query = lateral.this
    if is_generator(query):
        if on is None or on == exp.true():
            return seen_from(generated(context, left, lateral, outer=join.side == "LEFT"), select, environment)
        query = _rows_of(lateral)
    elif not isinstance(query, exp.Subquery):
        raise context.unsupported(join, f"LATERAL {query.sql()}")
    found = lower_subquery(context, query, left, environment)
    right = _of(replace(found.lowered, domain=()), lateral)
    both = left.scope.beside(right.scope)
    conditions = found.conditions
    if on is not None:
        seen = seen_from(replace(left, scope=both), select, environment)
        conditions += conjuncts(scalar(context, on, seen.scope))
    if join.side not in ("", "LEFT"):
        raise context.unsupported(join, f"{join.side} JOIN LATERAL")
    node = found.lowered.node
    if join.side == "LEFT":
        return replace(left, node=OuterJoin(left.node, node, conditions), scope=both)
    return replace(left, node=inner_join((left.node, node), conditions), scope=both)
