"""Which columns a condition says to be equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from engine.algebra.scalars import Scalar
from engine.algebra.types import is_equal_the_same


def equal_columns(conditions: Iterable[Scalar], types: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs that are the same value wherever all conditions hold, both ways; of the columns whose types are given."""
    found = []
    for condition in conditions:
        tree = condition.tree
        if isinstance(tree, exp.EQ | exp.NullSafeEQ):
            one, other = Scalar(tree.this).as_column, Scalar(tree.expression).as_column
            if one is None or other is None or one not in types or types[one] != types.get(other):
                continue
            if is_equal_the_same(types[one]):
                found += [(one, other), (other, one)]
    return found
