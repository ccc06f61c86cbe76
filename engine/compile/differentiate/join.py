"""Inner joins of any number of inputs, by telescoping.

With inputs A, B, C the change is  ΔA ⋈ B_old ⋈ C_old  ∪  A_new ⋈ ΔB ⋈ C_old  ∪  A_new ⋈ B_new ⋈ ΔC:
each term moves one input from its old to its new state, so a row and its partner that change in the same refresh
are counted once. Every term has exactly one change in it, hence weights stay +1 and −1.
"""

from __future__ import annotations

from engine.algebra.nodes import InnerJoin, Node, Project, UnionAll, keep
from engine.algebra.trees import at_frontier
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.compile.differentiate.linear import PASS_WEIGHT


@change_of.register
def _(node: InnerJoin) -> Node:
    outputs = (*keep(node.columns), PASS_WEIGHT)
    terms = []
    for index, member in enumerate(node.members):
        before = node.members[:index]
        after = tuple(at_frontier(each) for each in node.members[index + 1 :])
        term = InnerJoin((*before, delta(member), *after), node.conditions)
        terms.append(Project(term, outputs))
    return terms[0] if len(terms) == 1 else UnionAll(tuple(terms))


@rule_of.register
def _(node: InnerJoin) -> Rule:
    return Rule(
        "Δ ⋈ old ∪ new ⋈ Δ" if len(node.members) == 2 else f"telescoping, {len(node.members)} terms",
        "one term for each input: those before it at the new version, those after it at the frontier",
    )
