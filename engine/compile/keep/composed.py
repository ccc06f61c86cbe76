"""Which aggregates are made of numbers that can be stored and merged exactly, and how.

Counts; sums and averages of integers and of decimals with headroom; what can be told from counts (COUNT_IF, BOOL_AND);
bits; and extremes, which can be merged but of which nothing can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.aggregates import AggregateKind
from engine.algebra.nodes import Aggregate, Aggregation
from engine.algebra.scalars import Scalar, case, cast, col, divide, eq, gt, lit, negation, null
from engine.algebra.types import Decimal, is_integer, is_orderable, parse_decimal
from engine.compile.exactness import inexact_columns
from engine.compile.keep.accumulators import Part

#: SUM adds 10 digits and the addition of the change one more; 38 is all a decimal has
MAX_EXACT_PRECISION = 27
#: …but addition never gives up the first six digits after the point. A wider decimal of at most that many is exact
#: too, and a sum that really needs more than 38 digits is an error in ANSI mode, never another number. Products of
#: prices and rates are declared this wide without being it.
MAX_EXACT_SCALE = 6
#: AVG as the quotient of two stored numbers is rounded twice, first to the 38 digits of a division. From here on down
#: that leaves 9 digits more than the result has, and only a group of more than 10^9 rows could come out differently.
MAX_AVERAGED_PRECISION = 15

ROWS = Part(AggregateKind.COUNT_ROWS, None, "bigint")

Values = Mapping[Part, Scalar]


@dataclass(frozen=True)
class Composed:
    """An aggregate by its parts."""

    parts: tuple[Part, ...]
    value: Callable[[Values], Scalar]
    #: the part that the aggregate itself is, where there is anything to aggregate
    shows: Part | None = None


def composed(aggregate: Aggregate, made: Aggregation) -> Composed | None:
    """None where it has to be computed again from all rows of its group."""
    tree = made.call.tree
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Star):
        return _itself(ROWS)
    name = tree.this.name if isinstance(tree.this, exp.Column) else None
    # What may come out differently may have been counted in before by another value than it would be taken out by.
    if name is None or name in inexact_columns(aggregate.input):
        return None
    is_summed = any(each.call.tree == exp.Sum(this=tree.this) for each in aggregate.aggregations)
    return _of_column(tree, col(name), aggregate.input.types[name], made.type, is_summed=is_summed)


def _of_column(tree: exp.Expr, argument: Scalar, type_: str, made_type: str, *, is_summed: bool) -> Composed | None:
    count = Part(AggregateKind.COUNT, argument, "bigint")
    match tree:
        case exp.Count():
            return _itself(count)
        case exp.CountIf():
            true = _counted(argument)
            return _itself(true)
        case exp.LogicalAnd() if type_ == "boolean":
            false = _counted(negation(argument))
            return Composed((count, false), _unless_none(count, lambda values: eq(values[false], lit(0))))
        case exp.LogicalOr() if type_ == "boolean":
            true = _counted(argument)
            return Composed((count, true), _unless_none(count, lambda values: gt(values[true], lit(0))))
        case exp.Sum() if is_exact_sum(type_):
            total = Part(AggregateKind.SUM, argument, sum_type(type_))
            if made_type != total.type:
                return Composed((count, total), _unless_none(count, lambda values: cast(values[total], made_type)))
            return Composed((count, total), _unless_none(count, lambda values: values[total]), total)
        case exp.Avg() if _is_exact_average(type_):
            total = _total_of_average(argument, type_, is_summed=is_summed)
            return Composed((count, total), _unless_none(count, lambda values: _mean(values, total, count, made_type)))
        case exp.BitwiseXorAgg() if is_integer(type_):
            bits = Part(AggregateKind.XOR, argument, type_)
            return Composed((count, bits), _unless_none(count, lambda values: values[bits]), bits)
        case exp.Min() | exp.Max() | exp.BitwiseAndAgg() | exp.BitwiseOrAgg() if is_orderable(type_):
            most = Part(_EXTREMES[type(tree)], argument, type_)
            return _itself(most)
        case _:
            return None


_EXTREMES: dict[type[exp.Expr], AggregateKind] = {
    exp.Min: AggregateKind.MIN,
    exp.Max: AggregateKind.MAX,
    exp.BitwiseAndAgg: AggregateKind.AND,
    exp.BitwiseOrAgg: AggregateKind.OR,
}


def _itself(part: Part) -> Composed:
    return Composed((part,), lambda values: values[part], part)


def _counted(condition: Scalar) -> Part:
    return Part(AggregateKind.COUNT, case((condition, lit(1))), "bigint")


def _unless_none(count: Part, value: Callable[[Values], Scalar]) -> Callable[[Values], Scalar]:
    """NULL where nothing was aggregated."""
    return lambda values: case((eq(values[count], lit(0)), null()), otherwise=value(values))


def is_exact_sum(type_: str) -> bool:
    decimal = parse_decimal(type_)
    if decimal is None:
        return is_integer(type_)
    return decimal.precision <= MAX_EXACT_PRECISION or decimal.scale <= MAX_EXACT_SCALE


def _is_exact_average(type_: str) -> bool:
    decimal = parse_decimal(type_)
    return is_integer(type_) if decimal is None else decimal.precision <= MAX_AVERAGED_PRECISION


def sum_type(type_: str) -> str:
    decimal = parse_decimal(type_)
    return "bigint" if decimal is None else str(Decimal(min(decimal.precision + 10, 38), decimal.scale))


def _total_of_average(argument: Scalar, type_: str, *, is_summed: bool) -> Part:
    if type_ == "bigint" and not is_summed:
        # An average exists also where the sum does not fit into a bigint.
        return Part(AggregateKind.SUM, cast(argument, "decimal(20,0)"), "decimal(30,0)")
    return Part(AggregateKind.SUM, argument, sum_type(type_))


def _mean(values: Values, total: Part, count: Part, made_type: str) -> Scalar:
    if parse_decimal(made_type) is None:
        return divide(cast(values[total], "double"), cast(values[count], "double"))
    return cast(divide(values[total], cast(values[count], "decimal(20,0)")), made_type)
