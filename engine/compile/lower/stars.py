"""`*` inside of a function: hash(*), struct(t.*). It stands for columns of the text, not of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from engine.compile.lower.context import Context
from engine.compile.lower.expressions import is_star_alone, parts_of

#: columns by name, as a `*` stands for them
Columns = Callable[[exp.Expr], Sequence[tuple[str, exp.Expr]]]


def with_stars_spelled(context: Context, select: exp.Select, columns: Columns) -> exp.Select:
    if not any(_stars(select)):
        return select
    select = select.copy()
    for call, star in list(_stars(select)):
        _replace(context, call, star, columns(star))
    return select


def _stars(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Each with the call that it is in."""
    for node in parts_of(select):
        if isinstance(node, exp.Star):
            star = node.parent if isinstance(node.parent, exp.Column) else node
            call = star.parent
            if isinstance(call, exp.Func | exp.Distinct) and not is_star_alone(star):
                yield call, star


def _replace(context: Context, call: exp.Expr, star: exp.Expr, columns: Sequence[tuple[str, exp.Expr]]) -> None:
    key = star.arg_key
    made: list[exp.Expr] = [tree for _, tree in columns]
    if isinstance(call, exp.Struct):
        made = [exp.PropertyEQ(this=exp.to_identifier(name), expression=tree) for name, tree in columns]
    if key == "expressions":
        place = next(place for place, each in enumerate(call.expressions) if each is star)
        call.set("expressions", [*call.expressions[:place], *made, *call.expressions[place + 1 :]])
    elif key == "this" and "expressions" in call.arg_types:
        call.set("this", made[0])
        call.set("expressions", [*made[1:], *call.expressions])
    else:
        raise context.unsupported(call, "* in the place of one argument")
