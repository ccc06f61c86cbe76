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
from dataclasses import dataclass

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Project,
    Recursion,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
)
from engine.algebra.trees import nodes_of
from engine.compile.few import follows_change, reads_any
from engine.compile.gather import gather
from engine.compile.keyed_reads import KeyedRead, keyed_read
from engine.compile.narrow import narrow

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
    #: where it is nothing but the rows of a source that have certain keys, and that can be looked up
    lookup: KeyedRead | None = None


@dataclass(frozen=True)
class Steps:
    """In the order in which they run; each may read those before it."""

    before: tuple[Step, ...]
    last: Node
    #: all of it, before it was cut
    whole: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (*(step.tree for step in self.before), self.last)


def in_steps(
    root: Node,
    operators_max: int = OPERATORS_MAX,
    large: frozenset[str] = frozenset(),
    looked_up: frozenset[str] = frozenset(),
) -> Steps:
    """As few steps as keep every part below the maximum, or as many as there can be.

    `large` are names of leaves, `looked_up` those of them in which keys can be looked up without Spark.
    """
    root = gather(narrow(root, large, looked_up), large, looked_up) if large else root
    chosen: frozenset[int] = frozenset()
    while True:
        steps, came_from = _cut(root, chosen, large, looked_up)
        too_large = (part for part in steps.parts if written_out(part) > operators_max)
        found = (came_from[id(each)] for part in too_large if (each := _saves_most(part, operators_max)) is not None)
        more = frozenset(found) - chosen
        if not more:
            return steps
        chosen |= more


def _saves_most(part: Node, operators_max: int) -> Node | None:
    """Of what is used several times: that without which the part is smallest, written out."""
    nodes = nodes_of(part)
    sizes, times = _sizes(nodes), Counter({id(part): 1})
    for node in reversed(nodes):
        for child in node.inputs:
            times[id(child)] += times[id(node)]
    uses = Counter(id(child) for node in nodes for child in node.inputs)
    bound = _inside_recursions(nodes)
    shared = [node for node in nodes if uses[id(node)] > 1 and sizes[id(node)] >= _STEP_MIN and id(node) not in bound]
    # what is too large itself becomes smaller first
    fitting = [node for node in shared if sizes[id(node)] <= operators_max] or shared
    return max(fitting, key=lambda node: (times[id(node)] - 1) * (sizes[id(node)] - 1), default=None)


def written_out(root: Node) -> int:
    """How many operators the tree has when what is shared stands wherever it is used."""
    return _sizes(nodes_of(root))[id(root)]


def _sizes(nodes: tuple[Node, ...]) -> dict[int, int]:
    counted: dict[int, int] = {}
    for node in nodes:
        counted[id(node)] = 1 + sum(counted[id(child)] for child in node.inputs)
    return counted


def _cut(
    root: Node, chosen: frozenset[int], large: frozenset[str], looked_up: frozenset[str]
) -> tuple[Steps, dict[int, int]]:
    """What was chosen becomes a step, and what sources that are large ask for.

    Also tells which operator of the tree each one of the parts was.
    """
    nodes = nodes_of(root)
    uses = Counter(id(child) for node in nodes for child in node.inputs)
    brought = {id(side) for node in nodes for side in _brought_to_large(node, large)}
    bound = _inside_recursions(nodes)
    steps: list[Step] = []
    seen_as: dict[int, Node] = {}
    came_from: dict[int, int] = {}
    for node in nodes:
        seen = node.with_inputs(tuple(seen_as[id(child)] for child in node.inputs))
        came_from[id(seen)] = id(node)
        # what reads nothing large itself is no more than was read before it
        is_few = bool(large) and (follows_change(node) or not reads_any(seen, large))
        # what is left of it once the steps so far are computed
        asks_much = reads_any(seen, large)
        again = uses[id(node)] > 1 and (is_few or isinstance(node, Aggregate))
        pays = asks_much and (again or (is_few and id(node) in brought))
        lookup = keyed_read(seen, looked_up)
        if (pays or lookup or id(node) in chosen) and id(node) not in bound:
            leaf = Leaf(Role.STEP, str(len(steps) + 1))
            steps.append(Step(leaf, seen, is_few, lookup))
            seen = Scan(leaf, tuple((column.name, column.name, column.type) for column in node.columns))
        seen_as[id(node)] = seen
    return Steps(tuple(steps), seen_as[id(root)], root), came_from


def _has_known_size(seen: Node, few: frozenset[Leaf]) -> bool:
    """Does Spark know by itself that it is small? It does of rows that came from the driver, and of less than these.

    Of a join it takes the product of both sizes.
    """
    match seen:
        case Scan(leaf=leaf):
            return leaf in few or leaf.role in (Role.DELTA, Role.NET)
        case SemiJoin(input=source) | Exists(input=source):
            return _has_known_size(source, few)
        case Project() | Filter() | Aggregate() | Repeat() | UnionAll():
            return all(_has_known_size(each, few) for each in seen.inputs)
        case _:
            return False


def _brought_to_large(node: Node, large: frozenset[str]) -> tuple[Node, ...]:
    """Inputs whose size decides how Spark brings them and what is large together."""
    match node:
        case SemiJoin(input=source, touched=touched):
            return (touched,) if _is_large(source, large) else ()
        case Exists(input=source, other=other):
            return (other,) if _is_large(source, large) else ()
        case InnerJoin() | OuterJoin():
            return node.inputs if any(_is_large(each, large) for each in node.inputs) else ()
        case _:
            return ()


def _is_large(node: Node, large: frozenset[str]) -> bool:
    return reads_any(node, large) and not follows_change(node)


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
