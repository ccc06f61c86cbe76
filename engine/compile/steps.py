"""A statement in steps: what it uses again and again is computed first, and once.

To Spark a common table expression is an abbreviation. It is written out wherever it is used, when the query is checked
and when it is optimized, so that a subtree used by three others, each used twice, is planned and run six times. A
query of a dozen operators over each other can grow beyond all memory in this way. A step is computed and kept, and
the statement reads its rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.algebra.nodes import Leaf, Node, Recursion, Role, Scan
from engine.algebra.trees import nodes_of

#: how many operators may be left of a statement, written out; a step costs a job, and planning grows with the square
OPERATORS_MAX = 60
#: subtrees smaller than this are not worth a step, however often they are used
_STEP_MIN = 4


@dataclass(frozen=True)
class Step:
    leaf: Leaf
    tree: Node


@dataclass(frozen=True)
class Steps:
    """In the order in which they run; each may read those before it."""

    before: tuple[Step, ...]
    last: Node


def in_steps(root: Node, operators_max: int = OPERATORS_MAX) -> Steps:
    """As few steps as keep every part below the maximum, or as many as there can be."""
    least = operators_max
    while True:
        steps = _cut(root, least)
        largest = max(written_out(part) for part in (*(step.tree for step in steps.before), steps.last))
        if largest <= operators_max or least <= _STEP_MIN:
            return steps
        least //= 2


def written_out(root: Node) -> int:
    """How many operators the tree has when what is shared stands wherever it is used."""
    counted: dict[int, int] = {}
    for node in nodes_of(root):
        counted[id(node)] = 1 + sum(counted[id(child)] for child in node.inputs)
    return counted[id(root)]


def _cut(root: Node, least: int) -> Steps:
    """Every shared subtree of at least so many operators becomes a step."""
    nodes = nodes_of(root)
    uses = Counter(id(child) for node in nodes for child in node.inputs)
    bound = _inside_recursions(nodes)
    steps: list[Step] = []
    seen_as: dict[int, Node] = {}
    counted: dict[int, int] = {}
    for node in nodes:
        seen = node.with_inputs(tuple(seen_as[id(child)] for child in node.inputs))
        count = 1 + sum(counted[id(child)] for child in node.inputs)
        if uses[id(node)] > 1 and count >= least and id(node) not in bound:
            leaf = Leaf(Role.STEP, str(len(steps) + 1))
            steps.append(Step(leaf, seen))
            seen = Scan(leaf, tuple((column.name, column.name, column.type) for column in node.columns))
            count = 1
        seen_as[id(node)], counted[id(node)] = seen, count
    return Steps(tuple(steps), seen_as[id(root)])


def _inside_recursions(nodes: tuple[Node, ...]) -> set[int]:
    """What reads the rows that a recursion around it has found so far cannot be computed before that."""
    awaited: dict[int, frozenset[str]] = {}
    for node in nodes:
        names = frozenset[str]().union(*(awaited[id(child)] for child in node.inputs))
        match node:
            case Scan(leaf=Leaf(role=Role.ITSELF, name=name)):
                names |= {name}
            case Recursion(name=name):
                names -= {name}
        awaited[id(node)] = names
    return {key for key, names in awaited.items() if names}
