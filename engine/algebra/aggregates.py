"""Aggregate functions whose results can be merged: what is stored, and what the change brings, make what is now."""

from __future__ import annotations

from enum import StrEnum

from sqlglot import exp

from engine.algebra.scalars import Scalar


class AggregateKind(StrEnum):
    COUNT_ROWS = "count(*)"
    COUNT = "count"
    SUM = "sum"
    XOR = "bit_xor"
    # what went cannot be taken out of these again
    MIN = "min"
    MAX = "max"
    AND = "bit_and"
    OR = "bit_or"

    @property
    def takes_back(self) -> bool:
        """Is it exact also where rows went, and not only where rows came?"""
        return self in _TAKING_BACK


_TAKING_BACK = frozenset((AggregateKind.COUNT_ROWS, AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.XOR))

_FUNCTIONS: dict[AggregateKind, type[exp.AggFunc]] = {
    AggregateKind.SUM: exp.Sum,
    AggregateKind.XOR: exp.BitwiseXorAgg,
    AggregateKind.MIN: exp.Min,
    AggregateKind.MAX: exp.Max,
    AggregateKind.AND: exp.BitwiseAndAgg,
    AggregateKind.OR: exp.BitwiseOrAgg,
}


def count_rows() -> Scalar:
    return Scalar(exp.Count(this=exp.Star(), big_int=True))


def count_of(argument: Scalar) -> Scalar:
    return Scalar(exp.Count(this=argument.tree.copy(), big_int=True))


def sum_of(argument: Scalar) -> Scalar:
    return Scalar(exp.Sum(this=argument.tree.copy()))


def any_of_them(argument: Scalar) -> Scalar:
    """Whichever comes first: for values that are equal to each other."""
    return Scalar(exp.AnyValue(this=argument.tree.copy()))


def aggregate(kind: AggregateKind, argument: Scalar | None) -> Scalar:
    if kind is AggregateKind.COUNT_ROWS or argument is None:
        return count_rows()
    if kind is AggregateKind.COUNT:
        return count_of(argument)
    return Scalar(_FUNCTIONS[kind](this=argument.tree.copy()))


def merged(kind: AggregateKind, one: Scalar, other: Scalar) -> Scalar:
    """Of two results of one function, both perhaps NULL, the result over the rows of both; not for sums and counts."""
    match kind:
        case AggregateKind.MIN:
            made: exp.Expr = exp.Least(this=one.tree.copy(), expressions=[other.tree.copy()], ignore_nulls=True)
        case AggregateKind.MAX:
            made = exp.Greatest(this=one.tree.copy(), expressions=[other.tree.copy()], ignore_nulls=True)
        case _:
            bits = {AggregateKind.XOR: exp.BitwiseXor, AggregateKind.AND: exp.BitwiseAnd}.get(kind, exp.BitwiseOr)
            both = bits(this=one.tree.copy(), expression=other.tree.copy())
            made = exp.Coalesce(this=both, expressions=[one.tree.copy(), other.tree.copy()])
    return Scalar(made)
