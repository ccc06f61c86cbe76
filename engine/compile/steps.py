"""A statement in steps: what it uses again and again is computed first, and once.

To Spark a common table expression is an abbreviation. It is written out wherever it is used, when the query is checked
and when it is optimized, so that a subtree used by three others, each used twice, is planned and run six times. A
query of a dozen operators over each other can grow beyond all memory in this way. A step is computed and kept, and
the statement reads its rows.

Where sources are large, two more kinds of subtrees become steps. What reads such a source is used once, not again and
again. And what follows from a change is small, which Spark cannot know of a join or an aggregate: it would shuffle the
large side of the next join to meet it. Of a step it knows, and broadcasts it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Recursion,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
)
from engine.algebra.trees import leaves, nodes_of, rewrite

#: how many operators may be left of a statement, written out; a step costs a job, and planning grows with the square
OPERATORS_MAX = 60
#: subtrees smaller than this are not worth a step, however often they are used
_STEP_MIN = 4


@dataclass(frozen=True)
class Step:
    leaf: Leaf
    tree: Node
    #: does it follow from a change, so that it has few rows, most likely?
    is_few: bool = False


@dataclass(frozen=True)
class Steps:
    """In the order in which they run; each may read those before it."""

    before: tuple[Step, ...]
    last: Node


def in_steps(root: Node, operators_max: int = OPERATORS_MAX, large: frozenset[str] = frozenset()) -> Steps:
    """As few steps as keep every part below the maximum, or as many as there can be. `large` are names of leaves."""
    root = rewrite(root, lambda node: _link_by_link(node, large)) if large else root
    least = operators_max
    while True:
        steps = _cut(root, least, large)
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


def _cut(root: Node, least: int, large: frozenset[str]) -> Steps:
    """Every shared subtree of at least so many operators becomes a step, and what sources that are large ask for."""
    nodes = nodes_of(root)
    uses = Counter(id(child) for node in nodes for child in node.inputs)
    bound = _inside_recursions(nodes)
    wanted = _wanted(nodes, uses, large) if large else frozenset[int]()
    steps: list[Step] = []
    seen_as: dict[int, Node] = {}
    counted: dict[int, int] = {}
    for node in nodes:
        seen = node.with_inputs(tuple(seen_as[id(child)] for child in node.inputs))
        count = 1 + sum(counted[id(child)] for child in node.inputs)
        is_step = id(node) in wanted or (uses[id(node)] > 1 and count >= least)
        if is_step and id(node) not in bound:
            leaf = Leaf(Role.STEP, str(len(steps) + 1))
            steps.append(Step(leaf, seen, id(node) in wanted and follows_change(node)))
            seen = Scan(leaf, tuple((column.name, column.name, column.type) for column in node.columns))
            count = 1
        seen_as[id(node)], counted[id(node)] = seen, count
    return Steps(tuple(steps), seen_as[id(root)])


def _wanted(nodes: tuple[Node, ...], uses: Counter[int], large: frozenset[str]) -> frozenset[int]:
    found = set()
    for node in nodes:
        if uses[id(node)] > 1 and _reads(node, large) and (follows_change(node) or isinstance(node, Aggregate)):
            found.add(id(node))
        for side in _brought_to_others(node):
            if _reads(side, large) and follows_change(side):
                found.add(id(side))
    return frozenset(found)


def _brought_to_others(node: Node) -> tuple[Node, ...]:
    """Inputs whose size decides how Spark brings them and the others together."""
    match node:
        case SemiJoin(touched=touched):
            return (touched,)
        case Exists(other=other):
            return (other,)
        case InnerJoin() | OuterJoin():
            return node.inputs
        case _:
            return ()


def follows_change(node: Node) -> bool:
    """Are its rows made of those of a change, or of such as have to do with one?"""
    known: bool | None = node.__dict__.get("_follows_change")
    if known is None:
        known = node.__dict__["_follows_change"] = _follows_change(node)
    return known


def _follows_change(node: Node) -> bool:
    match node:
        case Scan(leaf=Leaf(role=role)):
            return role in (Role.DELTA, Role.NET)
        case SemiJoin(touched=touched):
            return follows_change(touched)
        case Exists(input=source, other=other, negated=negated):
            return follows_change(source) or (not negated and follows_change(other))
        case InnerJoin(members=members):
            return any(map(follows_change, members))
        case OuterJoin(left=left, right=right, full=full):
            return follows_change(left) and (not full or follows_change(right))
        case UnionAll(members=members):
            return all(map(follows_change, members))
        case Values() | Recursion():
            return False
        case _:
            return bool(node.inputs) and all(map(follows_change, node.inputs))


def _reads(root: Node, large: frozenset[str]) -> bool:
    return any(scan.leaf.role in (Role.NEW, Role.OLD) and scan.leaf.name in large for scan in leaves(root))


def _link_by_link(node: Node, large: frozenset[str]) -> Node:
    """A join that grows from a change meets one large relation at a time: what it has met so far is small again."""
    if not isinstance(node, InnerJoin) or not follows_change(node.members[0]):
        return node
    members: tuple[Node, ...] = ()
    conditions = node.conditions
    for member in node.members:
        if _reads(member, large) and any(_reads(each, large) for each in members):
            names = frozenset[str]().union(*(each.names for each in members))
            inside = tuple(each for each in conditions if each.columns <= names)
            if inside:
                members = (InnerJoin(members, inside),)
                conditions = tuple(each for each in conditions if each not in inside)
        members = (*members, member)
    return replace(node, members=members, conditions=conditions)


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
