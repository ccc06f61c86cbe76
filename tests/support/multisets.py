"""Rows as multisets: equal to the last digit, but for floating point, which may differ by rounding."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.support.view_test import Row, write_row

FLOAT_TOLERANCE = 1e-9
#: what rounding leaves where a sum of floats is nothing: a covariance of 1e-17
FLOAT_NOTHING = 1e-12


def hashable_row(row: Row) -> Row:
    return tuple(map(_hashable, row))


def _hashable(value: object) -> object:
    """Structs and maps as what they hold, under names or keys; lists as tuples."""
    if isinstance(value, dict):
        return tuple(sorted(((key, _hashable(each)) for key, each in value.items()), key=repr))
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def same_rows(one: Sequence[Row], other: Sequence[Row]) -> bool:
    one, other = list(map(hashable_row, one)), list(map(hashable_row, other))
    if Counter(one) == Counter(other):
        return True
    if len(one) != len(other) or not any(isinstance(value, float) for row in (*one, *other) for value in row):
        return False
    pairs = zip(sorted(one, key=_order), sorted(other, key=_order), strict=True)
    return all(_same_row(mine, theirs) for mine, theirs in pairs)


def net_change(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[int, Row]]:
    """What came and went, netted; rows that went first."""
    net = Counter(map(hashable_row, after))
    net.subtract(Counter(map(hashable_row, before)))
    return sorted(((n, row) for row, n in net.items() if n), key=lambda each: (each[0] > 0, _order(each[1])))


def same_change(one: Iterable[tuple[int, Row]], other: Iterable[tuple[int, Row]]) -> bool:
    return same_rows(_spread(one), _spread(other))


def _spread(change: Iterable[tuple[int, Row]]) -> list[Row]:
    return [(1 if weight > 0 else -1, *row) for weight, row in change for _ in range(abs(weight))]


def written(rows: Iterable[Row]) -> str:
    return "\n".join(f"    {write_row(row)}" for row in sorted(rows, key=_order)) or "    (none)"


def written_change(change: Iterable[tuple[int, Row]]) -> str:
    return "\n".join(f"    {weight:+d} | {write_row(row)}" for weight, row in change) or "    (none)"


def _order(row: Row) -> tuple[tuple[bool, str, float], ...]:
    """Exact columns before floats, so that noise in a float does not change who stands beside whom."""
    exact = tuple((value is None, str(value), 0.0) for value in row if not isinstance(value, float))
    return exact + tuple(_order_of_float(value) for value in row if isinstance(value, float))


def _order_of_float(value: float) -> tuple[bool, str, float]:
    """NaN is neither more nor less than anything, and would leave the others in any order."""
    return (True, "", 0.0) if math.isnan(value) else (False, "", value)


def _same_row(one: Row, other: Row) -> bool:
    return all(_same(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_NOTHING) or (
            math.isnan(one) and math.isnan(other)
        )
    return one == other
