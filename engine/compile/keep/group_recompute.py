"""Aggregates kept by group, where sums of changes would not be exact or cannot exist (HAVING, floating point).

The groups that the change touches are computed again from the new version of the sources and replace the stored
ones by key. What was stored is never recomputed: floats added up in another order would not match it.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    Aggregate,
    Filter,
    Node,
    OuterJoin,
    Output,
    Project,
    keep,
)
from engine.algebra.scalars import Scalar, all_of, any_of, col, is_null, lit, not_null, null_safe_eq
from engine.compile.differentiate import Rule
from engine.compile.differentiate.aggregate import of_groups, touched_groups
from engine.compile.differentiate.touched import key_name
from engine.compile.keep.group_keys import ONE, GroupKeys, group_keys
from engine.compile.keep.kept import Kept, op, stored, stored_name
from engine.records import Column

FOUND, WAS = "__found", "__was"


def keep_recomputed_groups(root: Node) -> Kept | None:
    match root:
        case Project(input=Aggregate() as aggregate):
            predicate = None
        case Project(input=Filter(input=Aggregate() as aggregate, predicate=predicate)) if aggregate.keys:
            pass
        case _:
            return None
    keys = group_keys(root, aggregate)
    touched, pairs = touched_groups(aggregate)

    def result(groups: Node) -> Node:
        kept_groups = groups if predicate is None else Filter(groups, predicate)
        return Project(kept_groups, (*root.outputs, *keys.hidden))

    after = result(of_groups(aggregate, aggregate.input, touched, pairs))
    columns = root.columns + tuple(Column(each.name, each.type) for each in keys.hidden)
    return Kept(
        rule=Rule("by group, recomputed", _why(aggregate, predicate)),
        full=result(aggregate),
        first=None,
        change=_replace_by_key(after, touched, keys, aggregate, columns),
        append=None,
        identity=keys.identity,
        visible=root.columns,
        hidden=columns[len(root.columns) :],
    )


def _replace_by_key(
    after: Node, touched: Node, keys: GroupKeys, aggregate: Aggregate, columns: tuple[Column, ...]
) -> Node:
    """For each touched key: the row as it is now, beside the row as it is stored."""
    found = Project(
        after,
        (*(Output(f"__n_{c.name}", col(c.name), c.type) for c in columns), Output(FOUND, lit(1), "int")),
    )
    there = stored(columns)
    was = Project(there, (*keep(there.columns), Output(WAS, lit(1), "int")))
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


def _differs(columns: tuple[Column, ...]) -> Scalar:
    """Drops groups that are neither here nor there, and rows that stay as they are."""
    comparable = [column for column in columns if not column.type.startswith("map<")]
    same = all_of(null_safe_eq(col(f"__n_{c.name}"), col(stored_name(c.name))) for c in comparable)
    if len(comparable) < len(columns):
        return any_of((not_null(col(FOUND)), not_null(col(WAS))))
    both = all_of((not_null(col(FOUND)), not_null(col(WAS)), same))
    neither = all_of((is_null(col(FOUND)), is_null(col(WAS))))
    return Scalar(any_of((both, neither)).tree.copy().not_())


def _why(aggregate: Aggregate, predicate: Scalar | None) -> str:
    if predicate is not None:
        return "HAVING can bring a group back whose sums are not stored"
    inexact = ", ".join(str(each) for each in aggregate.aggregations)
    return f"{inexact}: a sum of changes would not be exact"
