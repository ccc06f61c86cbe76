"""Recursive queries: computed again, before and after, when anything that they read has changed.

Where the sources only grew and what was found is stored, nothing of it has to be found again. A step is linear in what
it starts from, so with R for what was found, B for the base and S(R, E) for the step over the sources E,

    ΔR  =  ΔB  ∪  S(R, ΔE)  ∪  S(ΔR, E_new)

which is a recursion of its own. (With rows that went this holds too, but need not come to an end: what comes by the new
ways and what goes by the old ones cancel only in sum.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.algebra.nodes import WEIGHT, Leaf, Node, Output, Project, Recursion, Role, Scan, SemiJoin, UnionAll, keep
from engine.algebra.scalars import col
from engine.algebra.trees import at_frontier, leaves, nodes_of, rewrite, weighted
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.compile.differentiate.growing import only_grows


@change_of.register
def _(node: Recursion) -> Node:
    changes = tuple(
        Project(delta(scan), (Output("__k", col(WEIGHT), "int"),))
        for scan in leaves(node)
        if scan.leaf.role is Role.NEW
    )
    if not changes:
        return delta(node.base)
    touched = UnionAll(changes) if len(changes) > 1 else changes[0]
    now = SemiJoin(node, touched, ())
    before = SemiJoin(at_frontier(node), touched, ())
    return UnionAll((weighted(now, 1), weighted(before, -1)))


def found_more(node: Recursion, found: Leaf, names: Mapping[str, str]) -> Recursion | None:
    """What a recursion finds more when its sources grew. `found` holds what it found, under `names` of the base's."""
    itself = [each for each in nodes_of(node.step) if isinstance(each, Scan) and each.leaf.role is Role.ITSELF]
    if len(itself) != 1 or not (only_grows(node.base) and only_grows(node.step)):
        return None
    stored = dict(zip(node.inner_names, (names[column.name] for column in node.base.columns), strict=True))

    def from_found(each: Node) -> Node:
        if each is not itself[0]:
            return each
        return Scan(found, tuple((name, stored[inner], type_) for name, inner, type_ in itself[0].fields))

    once_more = delta(rewrite(node.step, from_found))
    began = UnionAll((_rows(delta(node.base), node.base), _rows(once_more, node.step)))
    return replace(node, base=Project(began, keep(node.base.columns)))


def _rows(change: Node, of: Node) -> Node:
    """A change in which every row came."""
    return Project(change, keep(of.columns))


@rule_of.register
def _(node: Recursion) -> Rule:
    return Rule("recomputed", "computed again, before and after, by any change of what it reads")
