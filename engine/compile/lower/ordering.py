"""ORDER BY … LIMIT … OFFSET: the rows that come first, with ties broken by everything that is put out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.comparable import comparable
from engine.algebra.nodes import Filter, Node, Output, Project, Window, Windowed
from engine.algebra.scalars import Scalar, all_of, col, gt, le, lit
from engine.compile.exactness import inexact_columns
from engine.compile.lower.context import Context, Lowered, Source
from engine.compile.lower.expressions import in_place, is_own, over, replaced
from engine.compile.positions import clause_position
from engine.compile.scope import Visible
from engine.errors import QueryParseError

#: what to order by, over columns of the tree: `desc` and `nulls_first` as sqlglot has them
Keys = tuple[exp.Ordered, ...]


def limit_of(tree: exp.Expr) -> exp.Expr | None:
    """LIMIT ALL says nothing."""
    limit: exp.Expr | None = tree.args.get("limit")
    return None if limit is not None and limit.expression.unnest().sql().upper() == "ALL" else limit


def refuse_limit_without_order(context: Context, tree: exp.Expr) -> None:
    if tree.args.get("order") is None:
        clause = limit_of(tree) or tree.args.get("offset") or tree
        word = "OFFSET" if isinstance(clause, exp.Offset) else "LIMIT"
        raise QueryParseError(
            f"{word} without ORDER BY does not say which rows it keeps",
            position=clause_position(clause, context.query.text),
            hint="add ORDER BY",
        )


def keeps_first(limit: exp.Expr | None, offset: exp.Expr | None) -> bool:
    """LIMIT of one row or more, behind none."""
    number = limit.expression.unnest() if isinstance(limit, exp.Limit) else None
    return offset is None and isinstance(number, exp.Literal) and number.is_int and int(number.name) > 0


def order_of(context: Context, order: exp.Expr | None, source: Source, visible: Sequence[Visible]) -> Keys:
    """What ORDER BY says, by place, by name of an output or by expression."""
    aliases = {each.name.casefold(): exp.column(exp.to_identifier(each.own)) for each in visible}
    keys: list[exp.Ordered] = []
    for item in order.expressions if order is not None else ():
        tree = item.this
        if isinstance(tree, exp.Var) and tree.name.upper() == "ALL" and "all" not in aliases:
            descending, first = bool(item.args.get("desc")), nulls_first(item)
            keys += (ordered(col(each.own), descending=descending, nulls_first=first) for each in visible)
            continue
        if isinstance(tree, exp.Literal) and tree.is_int:
            if not 1 <= int(tree.name) <= len(visible):
                raise context.misread(tree, f"ORDER BY {tree.name} names no output: there are {len(visible)}")
            value = col(visible[int(tree.name) - 1].own)
        elif isinstance(tree, exp.Column) and not tree.table and tree.name.casefold() in aliases:
            value = col(aliases[tree.name.casefold()].name)
        else:
            value = over(context, tree, source)
        keys.append(ordered(value, descending=bool(item.args.get("desc")), nulls_first=nulls_first(item)))
    return tuple(keys)


def with_outputs(order: exp.Expr, outputs: Mapping[str, exp.Expr]) -> exp.Expr:
    """ORDER BY, where expressions name outputs: these come before the columns of the sources, unlike anywhere else."""

    def named(node: exp.Expr) -> exp.Expr | None:
        is_name = isinstance(node, exp.Column) and not node.table and not is_own(node)
        output = outputs.get(node.name.casefold()) if is_name else None
        return in_place(output) if output is not None else None

    changed = order.copy()
    for item in changed.expressions:
        if not isinstance(item.this, exp.Column | exp.Literal):
            item.set("this", replaced(item.this, named))
    return changed


def nulls_first(item: exp.Ordered) -> bool:
    """NULL is least in Spark, unless it is said."""
    given = item.args.get("nulls_first")
    return bool(given) if given is not None else not item.args.get("desc")


def ordered(value: Scalar, *, descending: bool = False, nulls_first: bool = True) -> exp.Ordered:
    return exp.Ordered(this=value.tree.copy(), desc=descending or None, nulls_first=nulls_first)


def ties_broken(node: Node, names: Sequence[str], already: Sequence[exp.Ordered] = ()) -> Keys:
    """Further keys by which rows that differ at all are in one order."""
    known = {each.this.name for each in already if isinstance(each.this, exp.Column)}
    inexact = inexact_columns(node)
    rest = [name for name in dict.fromkeys(names) if name not in known and name not in inexact]
    values = (comparable(col(name), node.types[name]) for name in rest)
    return tuple(ordered(value[0]) for value in values if value is not None)


def told_apart_by(context: Context, ties: Keys) -> str:
    """In the words of people: two tables may have columns of one name."""
    names = (name for each in ties for name in sorted(Scalar(each.this).columns))
    return ", ".join(dict.fromkeys(context.names.known_as.get(name, name) for name in names))


def limited(context: Context, lowered: Lowered, keys: Keys, limit: exp.Expr | None, offset: exp.Expr | None) -> Lowered:
    """`keys` are over columns of `lowered.node`, which may have more than are put out."""
    first, skipped = _number(context, limit, "LIMIT"), _number(context, offset, "OFFSET") or 0
    node = lowered.node
    shown = [each.own for each in lowered.visible]
    ties = ties_broken(node, shown, keys)
    if ties:
        context.made_unique.append(f"where rows tie, LIMIT tells them apart by {told_apart_by(context, ties)}")
    order = exp.Order(expressions=[*keys, *ties])
    place = context.names.fresh("", "place")
    over_all = exp.Window(
        this=exp.RowNumber(), partition_by=[col(name).tree for name in lowered.domain] or None, order=order
    )
    numbered = Window(node, lowered.domain, (Windowed(place, Scalar(over_all), "int"),))
    conditions = [gt(col(place), lit(skipped))] if skipped else []
    if first is not None:
        conditions.append(le(col(place), lit(skipped + first)))
    kept: Node = Filter(numbered, all_of(conditions)) if conditions else numbered
    names = [*shown, *lowered.domain]
    result = Project(kept, tuple(Output(name, col(name), node.types[name]) for name in names))
    return replace(
        lowered, node=result, one_row=False, at_most_one_row=lowered.at_most_one_row or first in (0, 1), when_missing={}
    )


def _number(context: Context, clause: exp.Expr | None, word: str) -> int | None:
    if clause is None:
        return None
    value = clause.expression.unnest()
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.name)
    raise context.unsupported(clause, f"{word} that is not a number")
