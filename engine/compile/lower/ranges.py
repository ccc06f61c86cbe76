"""range(…) in FROM: numbers in a row, which are rows of one row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.algebra.nodes import ONE_ROW, Filter
from engine.algebra.scalars import cast, false, lit
from engine.compile import functions
from engine.compile.lower.context import Context, Source
from engine.compile.lower.generators import exploded
from engine.compile.scope import Scope

#: beyond that an array of them is larger than a partition should be
_MOST = 10_000_000


def is_range(tree: exp.Table) -> bool:
    return functions.name_of(tree.this) == "range"


def numbers(context: Context, tree: exp.Table) -> Source:
    """`range(end)`, `range(start, end)`, `range(start, end, step)`; into how many parts does not matter."""
    found = range(*_arguments(context, tree, tree.this.expressions[:3]))
    alias = tree.args.get("alias")
    table = alias.name if alias else ""
    names = [each.name for each in alias.args.get("columns") or []] if alias else []
    name = names[0] if names else "id"
    if len(found) > _MOST:
        raise context.unsupported(tree, f"a range of more than {_MOST:,} numbers")
    row = ONE_ROW if found else Filter(ONE_ROW, false())
    first, last = (found[0], found[-1]) if found else (0, 0)
    start, end, step = (cast(lit(each), "bigint").tree for each in (first, last, found.step if found else 1))
    call = exp.Explode(this=exp.GenerateSeries(start=start, end=end, step=step))
    made, visible = exploded(context, Source(row, Scope()), call, [name], table, outer=False)
    return Source(made.node, Scope(visible))


def _arguments(context: Context, tree: exp.Table, written: Sequence[exp.Expr]) -> list[int]:
    values = [each.this if isinstance(each, exp.Neg) else each for each in written]
    if not written or not all(isinstance(each, exp.Literal) and each.is_int for each in values):
        raise context.unsupported(tree, "a range whose ends are no numbers")
    given = [int(each.sql()) for each in written]
    if len(given) == 3 and given[2] == 0:
        raise context.misread(tree, "a range by steps of 0 has no end")
    return given
