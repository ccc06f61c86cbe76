"""One SELECT, clause by clause, in the order in which SQL evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.nodes import ONE_ROW, Output, Project
from engine.algebra.scalars import Scalar, col, data_type, field
from engine.algebra.trees import distinct, has_one_row
from engine.compile.lower.context import Context, Environment, Lowered, Source
from engine.compile.lower.correlation import seen_from, without_domain
from engine.compile.lower.expressions import aggregates_in, in_place, is_own, own, replaced, with_aliases
from engine.compile.lower.expressions import over as over_source
from engine.compile.lower.generators import exploded, is_generator, lateral_views
from engine.compile.lower.grouping import grouped, keys_of, with_grouping_id
from engine.compile.lower.having import seen_from_having, with_calls_named
from engine.compile.lower.ordering import (
    Keys,
    keeps_first,
    limit_of,
    limited,
    order_of,
    refuse_limit_without_order,
    with_outputs,
)
from engine.compile.lower.relations import from_clause
from engine.compile.lower.stars import with_stars_spelled
from engine.compile.lower.subqueries import filtered, with_values
from engine.compile.lower.time_windows import time_windowed
from engine.compile.lower.windows import windowed, with_windows_spelled
from engine.compile.scope import Scope


@dataclass(frozen=True)
class Item:
    """One output, as written."""

    name: str
    tree: exp.Expr
    #: did the author give it that name?
    is_alias: bool = False


def lower_select(context: Context, tree: exp.Select, environment: Environment) -> Lowered:
    as_value, environment = environment.as_value, replace(environment, as_value=False)
    _note_order(context, tree)
    source = _from(context, tree, environment)
    where = tree.args.get("where")
    if where is not None:
        source = filtered(context, source, where.this, environment)
    source = without_domain(context, source, tree, environment)
    tree = with_stars_spelled(context, tree, lambda star: items_of(_starred(context, star, source)))
    tree, source = time_windowed(context, tree, source)
    tree = with_grouping_id(tree, source.scope)
    items = _items(context, tree, source)
    aliases = {item.name.casefold(): item.tree for item in items if item.name}
    clauses = _Clauses.of(tree, aliases, source.scope)
    is_global = False
    when_missing: Mapping[exp.Expr, Scalar] = {}
    if clauses.is_aggregated(items):
        source, tree, items, clauses = _with_subqueries_below(context, tree, source, items, clauses, environment)
        is_global = not _has_keys(tree)
        plain_global = is_global and as_value and clauses.having is None and clauses.qualify is None
        having, calls = with_calls_named(clauses.having)
        clauses = replace(clauses, having=having)
        trees = [*(item.tree for item in items), *clauses.over_groups, *calls.values()]
        source, when_missing = grouped(
            context, tree, source, items_of(items), trees, environment, may_miss=plain_global
        )
        if clauses.having is not None:
            seen = seen_from_having(context, source, clauses.having, calls, aliases)
            source = replace(filtered(context, seen, clauses.having, environment), scope=source.scope)
    source, items, clauses = _with_subqueries(context, source, items, clauses, environment)
    source = windowed(context, source, [*(item.tree for item in items), *clauses.over_windows])
    if clauses.qualify is not None:
        source = filtered(context, source, clauses.qualify, environment)
    is_global = is_global and not any(is_generator(item.tree) for item in items)
    source, items = _generated(context, source, items)
    if clauses.limits and clauses.order is None:
        if not has_one_row(source.node) or not keeps_first(clauses.limit, clauses.offset):
            refuse_limit_without_order(context, tree)
        clauses = replace(clauses, limit=None, offset=None)
    lowered = _outputs(context, source, items, clauses, bool(tree.args.get("distinct")))
    missing = _missing(lowered, items, context, source, when_missing)
    only_row = is_global and clauses.having is None and clauses.qualify is None and not clauses.limits
    return replace(
        lowered, one_row=only_row, at_most_one_row=lowered.at_most_one_row or is_global, when_missing=missing
    )


def items_of(items: Sequence[Item]) -> list[tuple[str, exp.Expr]]:
    return [(item.name, item.tree) for item in items]


@dataclass(frozen=True)
class _Clauses:
    """What comes behind GROUP BY, with names of outputs spelled out."""

    having: exp.Expr | None
    qualify: exp.Expr | None
    order: exp.Expr | None
    limit: exp.Expr | None
    offset: exp.Expr | None
    has_group: bool

    @staticmethod
    def of(tree: exp.Select, aliases: Mapping[str, exp.Expr], scope: Scope) -> _Clauses:
        def spelled(name: str) -> exp.Expr | None:
            clause = tree.args.get(name)
            if not clause:
                return None
            condition = _as_condition(clause)
            if name == "having":
                condition = _with_outputs_of_groups(tree, condition, aliases)
            return with_windows_spelled(tree, with_aliases(condition, aliases, scope))

        limit, offset = limit_of(tree), tree.args.get("offset")
        order = tree.args.get("order") if limit is not None or offset is not None else None
        if order is not None and not tree.args.get("distinct"):
            order = with_outputs(order, aliases)
        return _Clauses(
            spelled("having"),
            spelled("qualify"),
            with_windows_spelled(tree, order) if order is not None else None,
            limit,
            offset,
            tree.args.get("group") is not None,
        )

    def each(self, changed: Callable[[exp.Expr], exp.Expr]) -> _Clauses:
        having, qualify, order = (part and changed(part) for part in (self.having, self.qualify, self.order))
        return replace(self, having=having, qualify=qualify, order=order)

    @property
    def limits(self) -> bool:
        return self.limit is not None or self.offset is not None

    def is_aggregated(self, items: Sequence[Item]) -> bool:
        parts = [item.tree for item in items] + list(self.over_groups)
        return self.has_group or self.having is not None or any(any(aggregates_in(part)) for part in parts)

    @property
    def over_groups(self) -> tuple[exp.Expr, ...]:
        return tuple(each for each in (self.having, self.qualify, self.order) if each is not None)

    @property
    def over_windows(self) -> tuple[exp.Expr, ...]:
        return tuple(each for each in (self.qualify, self.order) if each is not None)


def _as_condition(clause: exp.Expr) -> exp.Expr:
    """HAVING takes what is no condition for one, as a cast does; QUALIFY does not."""
    condition: exp.Expr = clause.this
    plain = condition
    while isinstance(plain, exp.Paren):
        plain = plain.this
    if isinstance(clause, exp.Qualify) or isinstance(plain, exp.Predicate | exp.Connector | exp.Not):
        return condition
    return exp.Cast(this=condition.copy(), to=data_type("boolean"))


def _with_outputs_of_groups(tree: exp.Select, having: exp.Expr, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    """Among groups only keys and aggregates are known: any other name in HAVING is that of an output."""
    group = tree.args.get("group")
    if group is not None and group.args.get("all"):
        return having
    keys = {column.name.casefold() for column in group.find_all(exp.Column)} if group is not None else set()
    for place in group.expressions if group is not None else ():
        if place.is_int and 0 < int(place.name) <= len(tree.expressions):
            keys |= {column.name.casefold() for column in tree.expressions[int(place.name) - 1].find_all(exp.Column)}
    changed = having.copy()
    outside = changed.walk(prune=lambda node: isinstance(node, exp.Query) or next(aggregates_in(node), None) is node)
    for column in [each for each in outside if isinstance(each, exp.Column)]:
        name = column.name.casefold()
        named = aliases.get(name)
        if named is not None and any(aggregates_in(named)) and not (column.table or is_own(column) or name in keys):
            column.replace(in_place(named))
    return changed


#: how Spark spreads and sorts the rows of a result, which no table keeps
_SPREAD = {"sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY"}


def _note_order(context: Context, tree: exp.Select) -> None:
    order = tree.args.get("order")
    if order is not None and limit_of(tree) is None and tree.args.get("offset") is None:
        context.ignore_order(order)
    for name, words in _SPREAD.items():
        clause = tree.args.get(name)
        if clause is not None:
            context.ignore_order(clause, words)


def _from(context: Context, tree: exp.Select, environment: Environment) -> Source:
    source = from_clause(context, tree, environment)
    if source is None:
        source = Source(ONE_ROW, Scope())
        if environment.outer is not None and environment.outer.is_used_by(tree):
            source = seen_from(environment.outer.instance(context), tree, environment)
    return lateral_views(context, source, tree.args.get("laterals") or ())


def _has_keys(tree: exp.Select) -> bool:
    return tree.args.get("group") is not None


# ------------------------------------------------------------------ SELECT list


def _items(context: Context, tree: exp.Select, source: Source) -> list[Item]:
    items: list[Item] = []
    for expression in tree.expressions:
        if isinstance(expression, exp.Star) or (
            isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
        ):
            items.extend(_starred(context, expression, source))
        elif isinstance(expression, exp.Alias):
            items.append(Item(expression.alias, expression.this, is_alias=True))
        else:
            name = expression.name if isinstance(expression, exp.Column | exp.Dot) else ""
            items.append(Item(name, expression))
    return _with_earlier(tree, items, source.scope)


def _starred(context: Context, expression: exp.Expr, source: Source) -> list[Item]:
    star = expression if isinstance(expression, exp.Star) else expression.this
    if star.args.get("replace") or star.args.get("rename"):
        raise context.unsupported(expression, "* with REPLACE or RENAME")
    table = expression.table if isinstance(expression, exp.Column) else None
    excepted = star.args.get("except_") or ()
    columns = source.scope.all_of(table or None)
    values = [Item(each.name, own(each.own)) for each in columns] or _fields(expression, source)
    if not values:
        raise context.misread(expression, f"{table}.* names no relation of this SELECT")
    names = {each.name.casefold() for each in excepted if not each.text("table")}
    qualified = [each for each in excepted if each.text("table")]
    trees = {tree for each in qualified for tree in _columns_named(context, each, source)}
    return [each for each in values if each.name.casefold() not in names and each.tree not in trees]


def _columns_named(context: Context, excepted: exp.Expr, source: Source) -> list[exp.Expr]:
    """`t.a` in EXCEPT: a column of t, or a field of the column t, which leaves the rest of it."""
    columns = source.scope.find(excepted.name, excepted.text("table"))
    if not columns or excepted.text("db"):
        raise context.unsupported(excepted, "EXCEPT of a field")
    return [own(each.own) for each in columns]


def _fields(expression: exp.Expr, source: Source) -> list[Item]:
    """`item.*` of a column that is a struct: its fields."""
    struct = source.scope.find(expression.text("table"), expression.text("db") or None)
    if len(struct) != 1 or not source.node.types.get(struct[0].own, "").startswith("struct<"):
        return []
    column = struct[0].own
    fields = (each.this for each in data_type(source.node.types[column]).expressions)
    return [Item(each.name, field(Scalar(own(column)), each.name).tree) for each in fields]


def _with_earlier(tree: exp.Select, items: list[Item], scope: Scope) -> list[Item]:
    """An output may name the outputs before it, where no column of the sources has that name."""
    aliases: dict[str, exp.Expr] = {}
    found: list[Item] = []
    for item in items:
        spelled = with_windows_spelled(tree, with_aliases(item.tree, aliases, scope) if aliases else item.tree)
        found.append(replace(item, tree=spelled))
        if item.is_alias:
            aliases.setdefault(item.name.casefold(), spelled)
    return found


def _with_subqueries_below(
    context: Context, tree: exp.Select, source: Source, items: list[Item], clauses: _Clauses, environment: Environment
) -> tuple[Source, exp.Select, list[Item], _Clauses]:
    """Subqueries in keys of groups and in what is aggregated become columns of the rows that are grouped."""
    parts = [*(item.tree for item in items), *clauses.over_groups]
    calls = [call for part in parts for call in aggregates_in(part)]
    changed: dict[exp.Expr, exp.Expr] = {}
    for each in (*keys_of(context, tree, items_of(items), source), *calls):
        if each not in changed and each.find(exp.Query) is not None:
            source, changed[each] = with_values(context, source, each, environment)
    if not changed:
        return source, tree, items, clauses

    def swapped(part: exp.Expr) -> exp.Expr:
        return replaced(part, lambda node: changed[node].copy() if node in changed else None)

    group = tree.args.get("group")
    if group is not None:
        tree = tree.copy()
        tree.set("group", swapped(group))
    items = [replace(item, tree=swapped(item.tree)) for item in items]
    return source, tree, items, clauses.each(swapped)


def _with_subqueries(
    context: Context, source: Source, items: list[Item], clauses: _Clauses, environment: Environment
) -> tuple[Source, list[Item], _Clauses]:
    """Subqueries that are values become columns of the source."""
    found: list[Item] = []
    for item in items:
        source, tree = with_values(context, source, item.tree, environment)
        found.append(replace(item, tree=tree))
    order = clauses.order
    if order is not None:
        source, changed = with_values(context, source, order, environment)
        order = changed
    return source, found, replace(clauses, order=order)


def _generated(context: Context, source: Source, items: list[Item]) -> tuple[Source, list[Item]]:
    """A function in the SELECT list that makes rows, and perhaps several columns."""
    found: list[Item] = []
    for item in items:
        names: list[str] = [item.name] if item.name else []
        tree = item.tree
        if isinstance(tree, exp.Aliases):
            names, tree = [each.name for each in tree.expressions], tree.this
        if not is_generator(tree):
            if isinstance(item.tree, exp.Aliases):
                raise context.unsupported(item.tree, "one expression with several aliases")
            found.append(item)
            continue
        source, visible = exploded(context, source, tree, names, "", outer=False)
        found += [Item(each.name, own(each.own)) for each in visible]
    return source, found


def _outputs(context: Context, source: Source, items: list[Item], clauses: _Clauses, is_distinct: bool) -> Lowered:
    outputs = [(item.name, over_source(context, item.tree, source)) for item in items]
    if not clauses.limits:
        lowered = context.project(source.node, outputs, source.domain)
        return _distinct(lowered) if is_distinct else lowered
    if is_distinct:
        lowered = _distinct(context.project(source.node, outputs, source.domain))
        plain = Source(lowered.node, Scope(lowered.visible), lowered.domain)
        keys = order_of(context, clauses.order, plain, lowered.visible)
        return limited(context, lowered, keys, clauses.limit, clauses.offset)
    lowered, keys = _with_order(context, source, outputs, clauses.order)
    return limited(context, lowered, keys, clauses.limit, clauses.offset)


def _distinct(lowered: Lowered) -> Lowered:
    return replace(lowered, node=distinct(lowered.node))


def _with_order(
    context: Context, source: Source, outputs: list[tuple[str, Scalar]], order: exp.Expr | None
) -> tuple[Lowered, Keys]:
    """The outputs, and beside them what they are ordered by and do not show."""
    lowered = context.project(source.node, outputs, source.domain)
    by_name = {visible.own: scalar for visible, (_, scalar) in zip(lowered.visible, outputs, strict=True)}
    keys: list[exp.Ordered] = []
    hidden: list[Output] = []
    for key in order_of(context, order, source, lowered.visible):
        scalar = Scalar(key.this)
        shown = next((name for name, value in by_name.items() if value == scalar or scalar.as_column == name), None)
        if shown is None:
            shown = context.names.fresh("", "order")
            hidden.append(Output(shown, scalar, ""))
        keys.append(
            exp.Ordered(this=col(shown).tree, desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first"))
        )
    if hidden:
        node = lowered.node
        outputs_now = node.outputs if isinstance(node, Project) else ()
        lowered = replace(lowered, node=context.typed(Project(source.node, (*outputs_now, *hidden))))
    return lowered, tuple(keys)


def _missing(
    lowered: Lowered, items: Sequence[Item], context: Context, source: Source, empty: Mapping[exp.Expr, Scalar]
) -> dict[str, Scalar]:
    """What the outputs are where there is no group, if that may be something else than NULL."""
    if not empty:
        return {}
    found: dict[str, Scalar] = {}
    nothing = replace(source, known={**source.known, **empty})
    for visible, item in zip(lowered.visible, items, strict=True):
        found[visible.own] = over_source(context, item.tree, nothing)
    return found
