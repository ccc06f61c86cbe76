"""Subqueries in HAVING, which may speak of the groups: by aggregates of the query around and by names of its outputs.

`HAVING EXISTS (SELECT 1 FROM u WHERE u.w < sum(t.v))` asks for each group with the group's own sum. So what such a
subquery says of the group becomes a column of the groups, which it speaks of as of any other column around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from engine.algebra.nodes import Output, Project, keep
from engine.compile.lower.context import Context, Source
from engine.compile.lower.expressions import aggregates_in, over, windows_in
from engine.compile.positions import placed_as
from engine.compile.scope import Visible

#: the relation that aggregates of the query around belong to, which nobody else can name
_GROUP = "__trickle_group"


def with_calls_named(having: exp.Expr | None) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
    """The condition with names for the aggregates of the query around, and these by their names.

    Where no aggregate of a subquery's own can stand, in its WHERE and ON, Spark allows those of the query around.
    """
    calls: dict[str, exp.Expr] = {}
    if having is None or having.find(exp.Query) is None:
        return having, calls
    changed = having.copy()
    for query in list(_queries_in(changed)):
        for call in [each for condition in _conditions_of(query) for each in aggregates_in(condition)]:
            name = next((name for name, each in calls.items() if each == call), f"call_{len(calls) + 1}")
            calls.setdefault(name, call.copy())
            call.replace(placed_as(exp.column(name, table=_GROUP), call))
    return changed, calls


def seen_from_having(
    context: Context,
    groups: Source,
    having: exp.Expr,
    calls: Mapping[str, exp.Expr],
    outputs: Mapping[str, exp.Expr],
) -> Source:
    """The groups with a column for each of those aggregates, and for each output that a subquery names."""
    named = {
        column.name.casefold()
        for query in _queries_in(having)
        for column in query.find_all(exp.Column)
        if not column.table and not groups.scope.find_here(column.name)
    }
    wanted = {(_GROUP, name): call for name, call in calls.items()}
    wanted |= {("", name): tree for name, tree in outputs.items() if name in named and _is_of_groups(tree)}
    if not wanted:
        return groups
    made: list[Output] = []
    visible: list[Visible] = []
    for (table, name), tree in wanted.items():
        made.append(Output(context.names.fresh("", tree.key if table else name), over(context, tree, groups), ""))
        visible.append(Visible(table, name, made[-1].name))
    node = context.typed(Project(groups.node, (*keep(groups.node.columns), *made)))
    return replace(groups, node=node, scope=replace(groups.scope, columns=(*groups.scope.columns, *visible)))


def _is_of_groups(tree: exp.Expr) -> bool:
    """Is it computed before HAVING is asked?"""
    return tree.find(exp.Query) is None and not any(windows_in(tree))


def _queries_in(tree: exp.Expr) -> Iterator[exp.Query]:
    """Those that are in no other."""
    for node in tree.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(node, exp.Query):
            yield node


def _conditions_of(query: exp.Expr) -> Iterator[exp.Expr]:
    """WHERE and ON of a query and of its derived tables; Spark lets no other query in it see so far."""
    if isinstance(query, exp.Subquery | exp.SetOperation):
        for part in (query.this, query.args.get("expression")):
            if part is not None:
                yield from _conditions_of(part)
    if not isinstance(query, exp.Select):
        return
    joins = query.args.get("joins") or []
    clauses = [query.args.get("where"), *(join.args.get("on") for join in joins)]
    yield from (each for each in clauses if each is not None)
    tables = [query.args.get("from_"), *joins]
    for table in tables:
        if table is not None:
            yield from _conditions_of(table.this)
