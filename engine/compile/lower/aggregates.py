"""Aggregate functions in canonical form: plain arguments, no FILTER, one answer in whatever order rows come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.comparable import comparable, restored
from engine.algebra.scalars import Scalar, all_of, case, cast, col, lit, not_null, null, struct
from engine.algebra.types import is_orderable
from engine.compile import functions
from engine.compile.lower.below import Below
from engine.compile.lower.context import Context
from engine.compile.lower.expressions import AROUND_CALLS, aggregates_in, without_null_words, written_name
from engine.compile.lower.ordering import ordered
from engine.compile.positions import fragment, placed_as
from engine.errors import UnsupportedOperator, VolatileFunction

#: turns an expression of the text into one of the tree
Resolve = Callable[[exp.Expr], Scalar]

_FIRST, _LAST = (exp.First, exp.FirstValue, exp.AnyValue), (exp.Last, exp.LastValue)
_COLLECTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
#: of the functions that depend on the order of rows, those that are given one here
_PUT_IN_ORDER = (*_COLLECTS, exp.GroupConcat, exp.ArgMax, exp.ArgMin, exp.Mode)

#: what has one answer, and is re-aggregated, beside what keeps a sample of the rows as they come
_EXACT_PERCENTILE = "percentile(value, share) and percentile_disc(share) WITHIN GROUP (ORDER BY value) are exact"
_INSTEAD = {
    "approx_percentile": _EXACT_PERCENTILE,
    "percentile_approx": _EXACT_PERCENTILE,
    "histogram_numeric": "count the values by width_bucket(…), or take percentile(value, array(…))",
    "approx_top_k": "GROUP BY the value, with ORDER BY count(*) DESC LIMIT k around it",
    "hll_sketch_agg": "approx_count_distinct(value), or theta_sketch_agg(value)",
    "hll_union_agg": "theta_union_agg(sketch)",
}
_UNORDERED = "min, max, max_by(value, order) and percentile do not"


@dataclass(frozen=True)
class Made:
    call: Scalar
    #: for the name of its column
    hint: str


def canonical_call(context: Context, written: exp.Expr, resolve: Resolve, below: Below) -> Made:
    call, condition, order = written, None, None
    if isinstance(call, exp.Filter):
        condition, call = resolve(call.expression.this), call.this
    if isinstance(call, exp.WithinGroup):
        order, call = call.expression, call.this
    call = _one_for_any(context, call)
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        raise context.unsupported(call, f"{functions.name_of(call.this)} that is told what to do with NULLs")
    _refuse_unordered(context, call)
    nested = next((each for part in call.iter_expressions() for each in aggregates_in(part)), None)
    if nested is not None:
        raise context.misread(nested, "an aggregate is not allowed here")
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Star | exp.Literal) and not call.expressions:
        if condition is None:
            return Made(Scalar(exp.Count(this=exp.Star(), big_int=True)), "")
        chosen = case((condition, lit(1)))
        return Made(Scalar(exp.Count(this=col(below.column(chosen, "counted")).tree, big_int=True)), "if")
    if isinstance(call, exp.Count) and call.expressions:
        # of several columns it counts the rows in which none is NULL
        there = [not_null(resolve(each)) for each in (call.this, *call.expressions)]
        chosen = case((all_of(there if condition is None else (condition, *there)), lit(1)))
        return Made(Scalar(exp.Count(this=col(below.column(chosen, "counted")).tree, big_int=True)), "all")
    made = _Arguments(resolve, below.column, condition, 0 if condition is None else _silencing(context, call))
    if isinstance(call, _PUT_IN_ORDER):
        context.made_unique.append(f"{functions.name_of(call)} goes by its values, where the order is not determined")
    if isinstance(call, exp.GroupConcat):
        return _joined_text(call, made)
    tree = call.copy()
    if order is not None:
        # what it is about stands behind ORDER BY; its own arguments are constants
        keys = [_key(each, made, first=index == 0) for index, each in enumerate(order.expressions)]
        hint = keys[0].this.name
        return Made(Scalar(exp.WithinGroup(this=tree, expression=exp.Order(expressions=keys))), hint)
    hint = made.into(tree)
    if isinstance(tree, _COLLECTS):
        return Made(_in_order(tree, below.type_of(hint)), hint)
    if isinstance(tree, exp.ArgMax | exp.ArgMin):
        return Made(_with_ties_broken(tree, below.type_of(tree.this.name)), hint)
    if isinstance(tree, exp.Mode) and tree.this is not None:
        tree.set("deterministic", exp.true())  # the least of those that are most frequent
    return Made(Scalar(tree), hint)


@dataclass
class _Arguments:
    """Arguments become plain columns. FILTER becomes NULL in the one that makes the function pass over a row."""

    resolve: Resolve
    computed: Callable[[Scalar, str], str]
    condition: Scalar | None
    #: the place of that argument
    silencing: int

    def into(self, call: exp.Expr) -> str:
        inner = call.this if isinstance(call.this, exp.Distinct) else call
        parts = list(inner.iter_expressions())
        hint = ""
        for index, part in enumerate(parts):
            silencing = index == self.silencing
            if index > 0 and part.find(exp.Column) is None and not (silencing and self.condition is not None):
                continue  # a constant, which some functions insist on
            name = self.column(part, call.key, silencing=silencing)
            hint = hint or name
            part.replace(col(name).tree)
        return hint

    def column(self, part: exp.Expr, hint: str, *, silencing: bool) -> str:
        value = self.resolve(part)
        if silencing and self.condition is not None:
            value = case((self.condition, value))
        return self.computed(value, hint)


def _silencing(context: Context, call: exp.Expr) -> int:
    """Which argument's NULL makes a row as good as not there."""
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        return 1  # the greatest order may belong to a NULL
    known = functions.AGGREGATES.get(functions.name_of(call))
    if known is None or not known.skips_nulls:
        raise context.unsupported(call, f"{written_name(context, call)}, which may count NULLs, with FILTER")
    return 0


def _one_for_any(context: Context, call: exp.Expr) -> exp.Expr:
    """Whichever row comes first is one of the group's, and so is the one with the least value."""
    inner = without_null_words(call)
    least, greatest = isinstance(inner, _FIRST), isinstance(inner, _LAST)
    if not (least or greatest):
        return call
    place = "least" if least else "greatest"
    context.made_unique.append(
        f"{written_name(context, inner)} takes the {place} value, as rows of a table have no order"
    )
    made = exp.Min(this=inner.this.copy()) if least else exp.Max(this=inner.this.copy())
    return placed_as(made, call)


def _refuse_unordered(context: Context, call: exp.Expr) -> None:
    known = functions.AGGREGATES.get(functions.name_of(call))
    if known is None or isinstance(call, _PUT_IN_ORDER) or known.order is not functions.Order.ROWS:
        return
    name = written_name(context, call)
    raise VolatileFunction(
        f"{name} depends on the order of rows, which no table has",
        position=context.position(call),
        fragment=fragment(call, context.query.text),
        hint=f"{_INSTEAD.get(name, _UNORDERED)}; refresh_mode = 'FULL' takes whatever comes out",
    )


def _joined_text(call: exp.GroupConcat, made: _Arguments) -> Made:
    """Ordered by what is said, and then by the text itself."""
    order = call.this if isinstance(call.this, exp.Order) else None
    value = order.this if order is not None else call.this
    only_once = isinstance(value, exp.Distinct)
    written = value.expressions[0] if only_once else value
    name = made.column(written, "text", silencing=True)
    keys = [_key(each, made) for each in (order.expressions if order is not None else ())]
    if not any(key.this.name == name for key in keys):
        keys.append(ordered(col(name)))
    tree: exp.Expr = col(name).tree
    tree = exp.Distinct(expressions=[tree]) if only_once else tree
    separator = call.args.get("separator") or exp.Literal.string("")
    joined = exp.GroupConcat(this=exp.Order(this=tree, expressions=keys), separator=separator.copy())
    return Made(Scalar(joined), name)


def _key(item: exp.Ordered, made: _Arguments, *, first: bool = False) -> exp.Ordered:
    descending, given = bool(item.args.get("desc")), item.args.get("nulls_first")
    nulls_first = bool(given) if given is not None else not descending
    name = made.column(item.this, "order", silencing=first)
    return ordered(col(name), descending=descending, nulls_first=nulls_first)


def _with_ties_broken(call: exp.ArgMax | exp.ArgMin, type_: str) -> Scalar:
    """Of several rows with the greatest order, the one with the greatest value; with the least, the least."""
    value, order = call.this, call.expression
    told_apart = comparable(Scalar(value), type_)
    # rows without an order are not looked at
    both = struct({"first": Scalar(order), "second": told_apart[0] if told_apart else Scalar(value)}).tree
    ranked = exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Is(this=order.copy(), expression=exp.null())), true=both)])
    count = call.args.get("count")
    return Scalar(type(call)(this=value.copy(), expression=ranked, count=count and count.copy()))


def _in_order(collected: exp.Expr, type_: str) -> Scalar:
    """A list has an order, so it gets the one that its values have, or what they are compared by."""
    compared = comparable(Scalar(collected.this), type_)
    if compared is None or is_orderable(type_):
        return Scalar(exp.ArraySort(this=collected, nulls_first=exp.true()))
    collected.set("this", compared[0].tree.copy())
    sorted_ = Scalar(exp.ArraySort(this=collected, nulls_first=exp.true()))
    return restored(sorted_, f"array<{type_}>")


def empty_value(call: exp.Expr, type_: str) -> Scalar:
    """What the function gives over no rows at all."""
    inner = call
    while isinstance(inner, AROUND_CALLS):
        inner = inner.this
    known = functions.AGGREGATES.get(functions.name_of(inner))
    match known.empty if known is not None else "":
        case "NULL":
            value = null()
        case "0":
            value = lit(0)
        case "array()":
            value = Scalar(exp.Array(expressions=[]))
        case _:
            raise UnsupportedOperator(f"{inner.key} for rows that have nothing to aggregate")
    return cast(value, type_) if type_ else value
