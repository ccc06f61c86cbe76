"""Conditions that say nothing but how columns and constants compare: who has the rows can judge them without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import reduce

from sqlglot import exp

from engine.algebra.nodes import WEIGHT
from engine.algebra.scalars import Scalar
from engine.algebra.types import is_integer, parse_decimal


class Comparison(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    #: NULL is the same as NULL
    SAME = "<=>"


@dataclass(frozen=True)
class Name:
    """Of a column."""

    name: str


@dataclass(frozen=True)
class Constant:
    value: int | str | date | Decimal


@dataclass(frozen=True)
class Compared:
    by: Comparison
    left: Name
    right: Name | Constant


@dataclass(frozen=True)
class IsNull:
    column: Name


@dataclass(frozen=True)
class Opposite:
    of: Condition


@dataclass(frozen=True)
class Both:
    left: Condition
    right: Condition


@dataclass(frozen=True)
class Either:
    left: Condition
    right: Condition


Condition = Compared | IsNull | Opposite | Both | Either

_COMPARISONS: Mapping[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQUAL,
    exp.NEQ: Comparison.NOT_EQUAL,
    exp.LT: Comparison.LESS,
    exp.LTE: Comparison.LESS_OR_EQUAL,
    exp.GT: Comparison.GREATER,
    exp.GTE: Comparison.GREATER_OR_EQUAL,
    exp.NullSafeEQ: Comparison.SAME,
}
#: with the sides exchanged
_TURNED = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_OR_EQUAL: Comparison.GREATER_OR_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_OR_EQUAL: Comparison.LESS_OR_EQUAL,
}
#: types of which equal values are the same, whoever compares them
_COMPARED_ALIKE = frozenset(("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"))


def is_compared_alike(type_: str) -> bool:
    """Not floating-point numbers: 0.0 is -0.0 to Spark, and NaN is NaN. Not strings by other rules than their bytes."""
    return is_integer(type_) or type_ in _COMPARED_ALIKE or parse_decimal(type_) is not None


def plain_condition(scalar: Scalar, types: Mapping[str, str]) -> Condition | None:
    """What it says; None where it says more than how columns and constants compare."""
    return _condition(scalar.tree, types)


@dataclass(frozen=True)
class Taken:
    """A column, so many times; or without a column that number."""

    column: str | None
    times: int = 1


def taken(scalar: Scalar, type_: str, types: Mapping[str, str]) -> Taken | None:
    """What a value of this type is made of; None where more is computed than the numbers by which rows are counted."""
    tree = scalar.tree
    match tree:
        case exp.Column() if types[tree.name] == type_:
            return Taken(tree.name)
        case exp.Literal(is_string=False) if is_integer(type_) and str(tree.this).isdecimal():
            return Taken(None, int(tree.this))
        case exp.Neg(this=exp.Column() as column) if column.name == WEIGHT and types[WEIGHT] == type_:
            return Taken(column.name, -1)
        case exp.Cast(this=exp.Column() as column) if type_ == "bigint" and is_integer(types[column.name]):
            return Taken(column.name) if tree.to.this == exp.DType.BIGINT else None
        case _:
            return None


def counts_copies(call: Scalar) -> bool:
    """Is it the sum of the numbers by which rows are counted? Other sums may be larger than their type."""
    return isinstance(call.tree, exp.Sum) and Scalar(call.tree.this).as_column == WEIGHT


def _condition(tree: exp.Expr, types: Mapping[str, str]) -> Condition | None:
    match tree:
        case exp.Paren():
            return _condition(tree.this, types)
        case exp.Not():
            inner = _condition(tree.this, types)
            return None if inner is None else Opposite(inner)
        case exp.And() | exp.Or():
            left, right = _condition(tree.left, types), _condition(tree.right, types)
            if left is None or right is None:
                return None
            return Both(left, right) if isinstance(tree, exp.And) else Either(left, right)
        case exp.Is(this=exp.Column() as column, expression=exp.Null()):
            return IsNull(Name(column.name))
        case exp.In(this=exp.Column() as column) if tree.expressions and not tree.args.get("query"):
            # one by one, since NULL is neither among them nor not among them
            among = [_compared(Comparison.EQUAL, column, each, types) for each in tree.expressions]
            found: list[Condition] = [each for each in among if each is not None]
            return reduce(Either, found) if len(found) == len(among) else None
        case exp.Between(this=exp.Column() as column):
            low = _compared(Comparison.GREATER_OR_EQUAL, column, tree.args["low"], types)
            high = _compared(Comparison.LESS_OR_EQUAL, column, tree.args["high"], types)
            return None if low is None or high is None else Both(low, high)
        case exp.Binary(this=exp.Column() as column, expression=other) if type(tree) in _COMPARISONS:
            return _compared(_COMPARISONS[type(tree)], column, other, types)
        case exp.Binary(this=other, expression=exp.Column() as column) if type(tree) in _COMPARISONS:
            by = _COMPARISONS[type(tree)]
            return _compared(_TURNED.get(by, by), column, other, types)
        case _:
            return None


def _compared(by: Comparison, column: exp.Column, other: exp.Expr, types: Mapping[str, str]) -> Compared | None:
    type_ = types[column.name]
    if not is_compared_alike(type_):
        return None
    if isinstance(other, exp.Column):
        return Compared(by, Name(column.name), Name(other.name)) if types[other.name] == type_ else None
    value = _constant(other, type_)
    return None if value is None else Compared(by, Name(column.name), Constant(value))


def _constant(tree: exp.Expr, type_: str) -> int | str | date | Decimal | None:
    """A value that a column of this type could have."""
    match tree:
        case exp.Paren():
            return _constant(tree.this, type_)
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return _number(f"-{number.this}", type_)
        case exp.Literal(is_string=False):
            return _number(tree.this, type_)
        case exp.Literal() if type_ == "string":
            return str(tree.this)
        case exp.Cast() | exp.Add() | exp.Sub() if type_ == "date":
            return _day(tree)
        case _:
            return None


def _number(written: str, type_: str) -> int | Decimal | None:
    if is_integer(type_):
        return int(written) if written.lstrip("-").isdecimal() and abs(int(written)) < 2**63 else None
    decimal = parse_decimal(type_)
    if decimal is None or not written.lstrip("-").replace(".", "", 1).isdecimal():
        return None
    whole, _, fraction = written.lstrip("-").partition(".")
    fits = len(fraction) <= decimal.scale and len(whole) <= decimal.precision - decimal.scale
    return Decimal(written) if fits else None


def _day(tree: exp.Expr) -> date | None:
    """DATE '2024-01-31', and so many days, months or years before or after such a day."""
    match tree:
        case exp.Cast(this=exp.Literal(is_string=True) as text, to=exp.DataType(this=exp.DType.DATE)):
            try:
                return date.fromisoformat(text.this) if len(text.this) == len("2024-01-31") else None
            except ValueError:
                return None  # Spark knows more spellings
        case exp.Add(expression=exp.Interval() as interval) | exp.Sub(expression=exp.Interval() as interval):
            day, count = _day(tree.this), interval.this
            if day is None or not isinstance(count, exp.Literal) or not str(count.this).isdecimal():
                return None
            return _moved(day, int(count.this) * (1 if isinstance(tree, exp.Add) else -1), str(interval.unit))
        case _:
            return None


def _moved(day: date, count: int, unit: str) -> date | None:
    try:
        match unit.upper():
            case "DAY":
                return day + timedelta(days=count)
            case "MONTH" | "YEAR":
                months = day.year * 12 + day.month - 1 + count * (12 if unit.upper() == "YEAR" else 1)
                year, month = divmod(months, 12)
                following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
                last = (following - timedelta(days=1)).day
                return date(year, month + 1, min(day.day, last))
            case _:
                return None
    except (ValueError, OverflowError):
        return None  # a day that Python does not know
