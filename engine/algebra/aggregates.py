"""Aggregate functions as trees: which of them change by addition, and how they are written."""

from __future__ import annotations

from enum import StrEnum

from sqlglot import exp

from engine.algebra.scalars import Scalar


class AggregateKind(StrEnum):
    COUNT_ROWS = "count(*)"
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    #: any other: known by its tree alone
    OTHER = "other"


_KINDS: dict[type[exp.Expr], AggregateKind] = {
    exp.Count: AggregateKind.COUNT,
    exp.Sum: AggregateKind.SUM,
    exp.Avg: AggregateKind.AVG,
}


def kind_of(call: Scalar) -> AggregateKind:
    kind = _KINDS.get(type(call.tree))
    if kind is AggregateKind.COUNT and isinstance(call.tree.this, exp.Star):
        return AggregateKind.COUNT_ROWS
    if kind is None or call.tree.expressions or not isinstance(call.tree.this, exp.Column):
        return AggregateKind.OTHER
    return kind


def argument_of(call: Scalar) -> Scalar | None:
    """The one plain column that a function of a known kind is about."""
    return Scalar(call.tree.this) if kind_of(call) not in (AggregateKind.COUNT_ROWS, AggregateKind.OTHER) else None


def count_rows() -> Scalar:
    return Scalar(exp.Count(this=exp.Star(), big_int=True))


def sum_of(argument: Scalar) -> Scalar:
    return Scalar(exp.Sum(this=argument.tree.copy()))


def aggregate(kind: AggregateKind, argument: Scalar | None) -> Scalar:
    match kind:
        case AggregateKind.COUNT if argument is not None:
            return Scalar(exp.Count(this=argument.tree.copy(), big_int=True))
        case AggregateKind.SUM if argument is not None:
            return sum_of(argument)
        case AggregateKind.AVG if argument is not None:
            return Scalar(exp.Avg(this=argument.tree.copy()))
        case _:
            return count_rows()
