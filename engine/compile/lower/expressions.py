"""Scalar expressions of the text to scalars of the tree: names resolved, operations checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from sqlglot import exp

from engine.algebra.scalars import Scalar, col, field
from engine.compile import functions
from engine.compile.lower.alike import alike
from engine.compile.lower.context import Context, Source
from engine.compile.positions import placed_as
from engine.compile.scope import Scope

_AGGREGATE = functions.Kind.AGGREGATE
#: marks a column reference that has its name in the tree already
OWN = "own"
#: marks a call of an aggregate function that somebody made
OWN_AGGREGATE = "own aggregate"
#: what stands around a call and belongs to it
AROUND_CALLS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def scalar(context: Context, tree: exp.Expr, scope: Scope) -> Scalar:
    found = next(aggregates_in(tree), None)
    if found is not None:
        raise context.misread(tree, "an aggregate is not allowed here")
    over_window = next(windows_in(tree), None)
    if over_window is not None:
        raise context.misread(over_window, "a window function is not allowed here")
    return Scalar(resolved(context, tree, scope))


def resolved(context: Context, tree: exp.Expr, scope: Scope) -> exp.Expr:
    """A copy in which every column has its name in the tree and only known operations occur."""
    _check(context, tree)

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return node if is_own(node) else placed_as(_column(context, node, scope), node)
        return node

    return tree.transform(visit)


def is_own(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and bool(node.this.meta.get(OWN))


def over(context: Context, tree: exp.Expr, source: Source) -> Scalar:
    """An expression in terms of a source's columns, of which some stand for what the text spells out."""
    if not source.known:
        return Scalar(resolved(context, tree, source.scope))
    scalar_ = Scalar(_with_known(resolved(context, tree, source.scope), source.known))
    stray = source.scope.names_of(scalar_.columns - source.node.names)
    if stray or scalar_.columns - source.node.names:
        raise context.misread(tree, f"{stray[0] if stray else tree.sql()} is neither grouped nor aggregated")
    return scalar_


def _with_known(tree: exp.Expr, known: Mapping[exp.Expr, Scalar]) -> exp.Expr:
    def visit(node: exp.Expr) -> exp.Expr:
        value = known.get(alike(node))
        return node if value is None or _is_window_function(node) else placed_as(value.tree.copy(), node)

    # a window is known over what its aggregates are known as: what is inside comes first
    before, tree = None, tree.transform(visit)
    while tree != before:
        before, tree = tree, tree.transform(visit)
    return tree


def _is_window_function(node: exp.Expr) -> bool:
    """sum(x) OVER (…) has nothing to do with the group's sum(x)."""
    while isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def own(name: str) -> exp.Expr:
    """A column under its name in the tree, marked as resolved."""
    tree = col(name).tree
    tree.this.meta[OWN] = True
    return tree


def column_named(context: Context, scope: Scope, name: str, node: exp.Expr, table: str | None = None) -> str:
    """The name in the tree of what the author calls `name`."""
    found = scope.find(name, table)
    owns = {each.own for each in found}
    if len(owns) == 1:
        return owns.pop()
    if found:
        tables = " and of ".join(sorted(each.table for each in found))
        raise context.misread(node, f"{name} is a column of {tables}")
    if table is None and name.lower() in functions.LITERAL_FUNCTIONS:
        raise context.unsupported(node, f"{name.lower()} without parentheses")
    raise context.misread(node, f"there is no column {table + '.' if table else ''}{name}")


def _column(context: Context, node: exp.Column, scope: Scope) -> exp.Expr:
    """A column reference; `a.b` may also be the field b of a column a."""
    parts = [part.name for part in node.parts]
    if len(parts) >= 2 and scope.has_table(parts[0]):
        value = Scalar(own(column_named(context, scope, parts[1], node, parts[0])))
        fields = parts[2:]
    else:
        if len(parts) == 1 and not node.this.quoted and functions.is_clock(parts[0]) and not _is_named(context, node):
            return exp.Anonymous(this=parts[0])  # a call that needs no parentheses where there is no such column
        value = Scalar(own(column_named(context, scope, parts[0], node)))
        fields = parts[1:]
    for name in fields:
        value = field(value, name)
    return value.tree


def _is_named(context: Context, column: exp.Column) -> bool:
    """Does anything that the query reads or makes have a column of that name?"""
    read = (each.name for _, columns in context.relations.values() for each in columns)
    made = (name for query in context.query.texts for name in functions.names_given(query.tree))
    return column.name.casefold() in map(str.casefold, chain(read, made))


def _check(context: Context, tree: exp.Expr) -> None:
    for node in tree.walk():
        match node:
            case exp.Query() | exp.Exists():
                raise context.unsupported(node, "a subquery here")
            case exp.Star() if not is_star_alone(node):
                raise context.unsupported(node, "* inside of a function, here,")
            case exp.Parameter() | exp.Placeholder():
                raise context.misread(node, "a stream table has no parameters")
            case exp.Func() | exp.Anonymous():
                _check_function(context, node)
            case _:
                pass


def is_star_alone(star: exp.Expr) -> bool:
    """count(*) counts rows, and asks for no column."""
    return isinstance(star, exp.Star) and isinstance(star.parent, exp.Count) and not star.parent.expressions


def _check_function(context: Context, node: exp.Expr) -> None:
    name = functions.name_of(node)
    if not name:
        return
    if name == "arrays_zip":
        raise context.unsupported(node, "arrays_zip, which names its fields after columns,")
    own = context.own_functions.get(name)
    kind = functions.kind(name) if own is None else own.kind
    makes_groups = kind is functions.Kind.GROUPING and not isinstance(node, exp.Grouping | exp.GroupingId)
    if own is not None and kind is functions.Kind.UNKNOWN:
        raise context.unsupported(node, f"the function {name}, of which Spark does not tell what it makes of its rows,")
    if makes_groups or kind in (functions.Kind.GENERATOR, functions.Kind.TABLE):
        raise context.unsupported(node, f"the {kind} function {name}, here,")


def refuse_odd_call(context: Context, node: exp.Expr) -> None:
    """What is known of aggregates (that they skip NULLs, what they are over a frame) is not known of these."""
    around = node.parent
    if isinstance(around, exp.Dot | exp.Filter | exp.Window | exp.WithinGroup) or node.find(exp.Distinct):
        what = "with its schema" if isinstance(around, exp.Dot) else "with more than its arguments"
        raise context.unsupported(node, f"the aggregate function {functions.name_of(node)}, called {what},")


def written_name(context: Context, call: exp.Expr) -> str:
    """The function as the author calls it: sqlglot knows collect_list as array_agg."""
    start = call.meta.get("start")
    word = re.match(r"\w+", context.query.text[start:]) if start is not None else None
    return word[0].lower() if word else functions.name_of(call) if isinstance(call, exp.Func) else call.key


def parts_of(tree: exp.Expr) -> Iterator[exp.Expr]:
    """All parts that belong to this SELECT; a query inside has its own."""
    yield from tree.walk(prune=lambda node: isinstance(node, exp.Query) and node is not tree)


def aggregates_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Aggregate functions, together with their FILTER and WITHIN GROUP; those over windows are none."""
    if isinstance(tree, exp.Window):
        inside: list[exp.Expr] = [each for each in tree.iter_expressions() if each is not tree.this]
        function = tree.this
        while isinstance(function, AROUND_CALLS):
            inside += [each for each in function.iter_expressions() if each is not function.this]
            function = function.this
        for each in (*function.iter_expressions(), *inside):
            yield from aggregates_in(each)
        return
    if isinstance(tree, AROUND_CALLS) or is_aggregate(tree):
        yield tree
        return
    if isinstance(tree, exp.Query):
        return
    for part in tree.iter_expressions():
        yield from aggregates_in(part)


def is_aggregate(call: exp.Expr) -> bool:
    return bool(call.meta.get(OWN_AGGREGATE)) or functions.kind(functions.name_of(call)) is _AGGREGATE


def windows_in(tree: exp.Expr) -> Iterator[exp.Window]:
    for node in parts_of(tree):
        if isinstance(node, exp.Window):
            yield node


def without_null_words(function: exp.Expr) -> exp.Expr:
    """IGNORE NULLS and RESPECT NULLS stand around the function that they are said of."""
    return function.this if isinstance(function, exp.IgnoreNulls | exp.RespectNulls) else function


def with_aliases(tree: exp.Expr, aliases: Mapping[str, exp.Expr], scope: Scope) -> exp.Expr:
    """HAVING, QUALIFY and later outputs may name outputs of the SELECT list; columns of the sources come first."""

    def named(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Column) and not node.table and not is_own(node) and not scope.find_here(node.name):
            output = aliases.get(node.name.casefold())
            return in_place(output) if output is not None else None
        return None

    return replaced(tree, named)


def replaced(tree: exp.Expr, value: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy with other parts, where `value` gives some. In a query inside, the same words may mean something else."""
    changed = tree.copy()
    for node in list(changed.walk(prune=lambda each: isinstance(each, exp.Query))):
        made = value(node)
        if made is not None and node is changed:
            return made
        if made is not None:
            node.replace(made)
    return changed


def in_place(tree: exp.Expr) -> exp.Expr:
    """An expression where a name stood."""
    return tree.copy() if isinstance(tree, exp.Column) else exp.paren(tree)
