"""The change set of groups that are computed again: each touched key as it is now, beside the row as it is stored."""

from __future__ import annotations

from engine.algebra.comparable import comparable
from engine.algebra.nodes import Aggregate, Filter, Node, OuterJoin, Output, Project, keep
from engine.algebra.scalars import Scalar, all_of, any_of, col, is_null, lit, not_null, null_safe_eq
from engine.compile.differentiate.touched import key_name
from engine.compile.keep.grouped import ONE, GroupKeys
from engine.compile.keep.kept import op, stored, stored_name
from engine.records import Column

FOUND, WAS = "__found", "__was"


def replace_groups(
    after: Node, touched: Node, keys: GroupKeys, aggregate: Aggregate, columns: tuple[Column, ...]
) -> Node:
    """`after` are the touched groups with all columns of the stored table."""
    found = Project(
        after,
        (*(Output(f"__n_{c.name}", col(c.name), c.type) for c in columns), Output(FOUND, lit(1), "int")),
    )
    was = there(columns)
    if not aggregate.keys:
        joined: Node = OuterJoin(found, was, (null_safe_eq(col(f"__n_{ONE}"), col(stored_name(ONE))),))
        identity = {ONE: col(f"__n_{ONE}")}
    else:
        pairs = list(zip((key_name(key.name) for key in aggregate.keys), keys.identity, strict=True))
        joined = OuterJoin(touched, found, tuple(null_safe_eq(col(key), col(f"__n_{name}")) for key, name in pairs))
        joined = OuterJoin(joined, was, tuple(null_safe_eq(col(key), col(stored_name(name))) for key, name in pairs))
        identity = {name: col(key) for key, name in pairs}
    differs = Filter(joined, _differs(columns))
    outputs = tuple(Output(c.name, identity.get(c.name, col(f"__n_{c.name}")), c.type) for c in columns)
    ops = op((is_null(col(FOUND)), "D"), (is_null(col(WAS)), "I"), otherwise="U")
    return Project(differs, (ops, *outputs))


def there(columns: tuple[Column, ...]) -> Node:
    """Stored rows, and beside them that they are there: a row of NULLs looks like none after an outer join."""
    rows = stored(columns)
    return Project(rows, (*keep(rows.columns), Output(WAS, lit(1), "int")))


def _same(column: Column) -> Scalar | None:
    """None of values that cannot be compared."""
    now, then = (comparable(col(name), column.type) for name in (f"__n_{column.name}", stored_name(column.name)))
    return None if now is None or then is None else null_safe_eq(now[0], then[0])


def _differs(columns: tuple[Column, ...]) -> Scalar:
    """Drops groups that are neither here nor there, and rows that stay as they are."""
    same = [_same(column) for column in columns]
    if None in same:
        return any_of((not_null(col(FOUND)), not_null(col(WAS))))
    both = all_of((not_null(col(FOUND)), not_null(col(WAS)), *(each for each in same if each is not None)))
    neither = all_of((is_null(col(FOUND)), is_null(col(WAS))))
    return Scalar(any_of((both, neither)).tree.copy().not_())
