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
    Empty,
    Exists,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Recursion,
    Role,
    Scan,
    SemiJoin,
)
from engine.algebra.trees import nodes_of, rewrite
from engine.compile.few import follows_change, reads_any
from engine.compile.gather import gather
from engine.compile.keyed_reads import KeyedRead, keyed_read
from engine.compile.narrow import narrow
from engine.compile.optimize.prune_empty import prune_empty

#: how many operators may be left of a statement, written out; a step costs a job, and planning grows with the square
OPERATORS_MAX = 60
#: so many subtrees are chosen at a time
_AT_ONCE = 6
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

    def given_empty(self, name: str) -> Steps:
        """What is left to do once this step came out without a row. What nobody reads any more is not."""
        empty, left = frozenset((name,)), list[Step]()
        for step in self.before:
            tree = _without_rows(step.tree, empty)
            if isinstance(tree, Empty):
                empty |= {step.leaf.name}
            elif tree is step.tree:
                left.append(step)
            else:
                asked = None if step.lookup is None else keyed_read(tree, frozenset((step.lookup.scan.leaf.name,)))
                left.append(replace(step, tree=tree, lookup=asked))
        last = _without_rows(self.last, empty)
        needed = _step_names(last)
        for step in reversed(left):
            if step.leaf.name in needed:
                needed |= _step_names(step.tree)
        return Steps(tuple(step for step in left if step.leaf.name in needed), last, self.whole)


def _without_rows(tree: Node, steps: frozenset[str]) -> Node:
    if not _step_names(tree) & steps:
        return tree
    return prune_empty(rewrite(tree, lambda node: Empty(node.columns) if _step_name(node) in steps else node))


def _step_names(tree: Node) -> frozenset[str]:
    return frozenset(name for node in nodes_of(tree) if (name := _step_name(node)) is not None)


def _step_name(node: Node) -> str | None:
    match node:
        case Scan(leaf=Leaf(role=Role.STEP, name=name)):
            return name
        case _:
            return None


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
    whole, chosen = _Whole.of(root, large, looked_up), frozenset[int]()
    while True:
        steps, came_from = _cut(whole, chosen)
        more = (
            frozenset(came_from[id(each)] for part in steps.parts for each in _save_most(part, operators_max)) - chosen
        )
        if not more:
            return steps
        chosen |= more


@dataclass(frozen=True)
class _Whole:
    """What does not depend on which steps were chosen so far."""

    root: Node
    nodes: tuple[Node, ...]
    large: frozenset[str]
    looked_up: frozenset[str]
    uses: Counter[int]
    brought: frozenset[int]
    #: read the rows of a recursion around them
    bound: frozenset[int]

    @staticmethod
    def of(root: Node, large: frozenset[str], looked_up: frozenset[str]) -> _Whole:
        nodes = nodes_of(root)
        uses = Counter(id(child) for node in nodes for child in node.inputs)
        brought = frozenset(id(side) for node in nodes for side in _brought_to_large(node, large))
        return _Whole(root, nodes, large, looked_up, uses, brought, frozenset(_inside_recursions(nodes)))


def _save_most(part: Node, operators_max: int) -> list[Node]:
    """Of what is used several times: that without which the part is smallest, written out. Nothing if it is small.

    Of a part that is many times too large several are taken at once: each look at a large tree takes its time.
    """
    nodes = nodes_of(part)
    sizes, times = _sizes(nodes), Counter({id(part): 1})
    if sizes[id(part)] <= operators_max:
        return []
    for node in reversed(nodes):
        for child in node.inputs:
            times[id(child)] += times[id(node)]
    uses = Counter(id(child) for node in nodes for child in node.inputs)
    bound = _inside_recursions(nodes)
    shared = [node for node in nodes if uses[id(node)] > 1 and sizes[id(node)] >= _STEP_MIN and id(node) not in bound]
    # what is too large itself becomes smaller first
    fitting = [node for node in shared if sizes[id(node)] <= operators_max] or shared
    fitting.sort(key=lambda node: (times[id(node)] - 1) * (sizes[id(node)] - 1), reverse=True)
    taken: list[Node] = []
    for node in fitting:
        if not any(_stands_in(node, other) or _stands_in(other, node) for other in taken):
            taken.append(node)
        if len(taken) >= min(_AT_ONCE, sizes[id(part)] // operators_max // 16 + 1):
            break
    return taken


def _stands_in(one: Node, other: Node) -> bool:
    return any(one is each for each in nodes_of(other))


def written_out(root: Node) -> int:
    """How many operators the tree has when what is shared stands wherever it is used."""
    return _sizes(nodes_of(root))[id(root)]


def _sizes(nodes: tuple[Node, ...]) -> dict[int, int]:
    counted: dict[int, int] = {}
    for node in nodes:
        counted[id(node)] = 1 + sum(counted[id(child)] for child in node.inputs)
    return counted


def _cut(whole: _Whole, chosen: frozenset[int]) -> tuple[Steps, dict[int, int]]:
    """What was chosen becomes a step, and what sources that are large ask for.

    Also tells which operator of the tree each one of the parts was.
    """
    large = whole.large
    steps: list[Step] = []
    seen_as: dict[int, Node] = {}
    came_from: dict[int, int] = {}
    for node in whole.nodes:
        seen = node.with_inputs(tuple(seen_as[id(child)] for child in node.inputs))
        came_from[id(seen)] = id(node)
        # what is left of it once the steps so far are computed
        asks_much = reads_any(seen, large)
        # what reads nothing large itself is no more than was read before it
        is_few = bool(large) and (follows_change(node) or not asks_much)
        again = whole.uses[id(node)] > 1 and (is_few or isinstance(node, Aggregate))
        pays = asks_much and (again or (is_few and id(node) in whole.brought))
        lookup = keyed_read(seen, whole.looked_up)
        if (pays or lookup or id(node) in chosen) and id(node) not in whole.bound:
            leaf = Leaf(Role.STEP, str(len(steps) + 1))
            steps.append(Step(leaf, seen, is_few, lookup))
            seen = Scan(leaf, tuple((column.name, column.name, column.type) for column in node.columns))
        seen_as[id(node)] = seen
    return Steps(tuple(steps), seen_as[id(whole.root)], whole.root), came_from


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
