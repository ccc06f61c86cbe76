"""Rows that have a partner, and rows that have none (EXISTS, IN, NOT IN, semi and anti joins), under any condition.

A row that came or went is looked at once, against the other side as it is now. A row that stayed can only have
changed sides if a row that came to or went from the other side is a partner of it: just those are looked at twice,
against the other side as it is and as it was.

    Δ(L ⋉ R)  =  ΔL ⋉ R_new  ∪  S ⋉ R_new  −  S ⋉ R_old      where S = L_old ⋉ ΔR

This needs no key and no equality: NOT IN, with all it says of NULLs, is a condition like any other.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.nodes import Exists, Node, UnionAll
from engine.algebra.trees import at_frontier, weighted
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of


@change_of.register
def _(node: Exists) -> Node:
    came_or_went = replace(node, input=delta(node.input))
    stayed = Exists(at_frontier(node.input), delta(node.other), node.conditions)
    now = replace(node, input=stayed)
    before = replace(node, input=stayed, other=at_frontier(node.other))
    return UnionAll((came_or_went, weighted(now, 1), weighted(before, -1)))


@rule_of.register
def _(node: Exists) -> Rule:
    what = "partners of what changed on the other side" if node.conditions else "all rows, when the other side changes"
    return Rule("Δ ∪ touched rows", f"looks again at {what}, before and after")
