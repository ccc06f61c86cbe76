"""Aggregates kept by group, where what is stored and the change do not make what is now: HAVING, floating point, lists.

The groups that the change touches are computed again from the new version of the sources and replace the stored
ones by key. What was stored is never recomputed: floats added up in another order would not match it.
"""

from __future__ import annotations

from engine.algebra.nodes import Aggregate, Filter, Node
from engine.compile.differentiate import Rule
from engine.compile.differentiate.aggregate import of_groups, touched_groups
from engine.compile.keep.composed import composed
from engine.compile.keep.grouped import Grouped, group_keys, grouped
from engine.compile.keep.kept import Kept
from engine.compile.keep.replace_groups import replace_groups


def keep_recomputed_groups(root: Node) -> Kept | None:
    found = grouped(root)
    if found is None:
        return None
    aggregate, keys = found.aggregate, group_keys(found)
    touched, pairs = touched_groups(aggregate)

    def result(groups: Node) -> Node:
        kept_groups = groups if found.having is None else Filter(groups, found.having)
        return found.over(kept_groups, {}, *keys.hidden)

    after = result(of_groups(aggregate, aggregate.input, touched, pairs))
    columns = root.columns + keys.hidden_columns
    return Kept(
        rule=Rule("by group, recomputed", _why(found)),
        full=result(aggregate),
        first=None,
        change=replace_groups(after, touched, keys, aggregate, columns),
        append=None,
        identity=keys.identity,
        visible=root.columns,
        hidden=keys.hidden_columns,
        groups=aggregate,
    )


def _why(found: Grouped) -> str:
    """One aggregate that has to be computed again takes all others of its groups with it, and is named."""
    if found.having is not None:
        return "HAVING can bring a group back whose sums are not stored"
    alone = [each for each in found.aggregate.aggregations if composed(found.aggregate, each) is None]
    others = len(found.aggregate.aggregations) - len(alone)
    if not alone:
        return f"{_named(found.aggregate)}: what goes cannot be taken out of it, and more rows may mean fewer here"
    with_it = ", and the rest of its group with it" if others else ""
    names = ", ".join(map(str, alone))
    return f"{names}: cannot be told from what is stored and the change, so it is computed again{with_it}"


def _named(aggregate: Aggregate) -> str:
    made = ((each, composed(aggregate, each)) for each in aggregate.aggregations)
    return ", ".join(str(each) for each, parts in made if parts and not all(p.kind.takes_back for p in parts.parts))
