"""Where sources are large: what meets a change is asked only for the keys that occur in it.

To find the few rows that have a partner in a large relation, Spark shuffles that relation, and an aggregate below a
join is computed for every group that there is. With the keys of the small side brought to the large one, which is a
broadcast, what is left of it is small, too, whatever stands between the join and the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
)
from engine.algebra.scalars import Scalar, col
from engine.algebra.trees import leaves, nodes_of, rewrite
from engine.compile.differentiate.touched import touched_values
from engine.compile.equalities import equal_columns
from engine.compile.few import follows_change, reads_any
from engine.compile.optimize.grow_from_change import grown
from engine.compile.optimize.push_touched_keys import pushed


def narrow(root: Node, large: frozenset[str], looked_up: frozenset[str]) -> Node:
    """The same rows. `large` are names of leaves, `looked_up` those that had better be asked for keys in any case."""
    root = rewrite(root, lambda node: _link_by_link(node, large))
    often = _read_often(root, large) | looked_up
    whole = _asked_for_whole(root, large, often)
    #: with the node itself, so that no other one gets its id
    done: dict[int, tuple[Node, Node]] = {}

    def visit(node: Node) -> Node:
        known = done.get(id(node))
        if known is None:
            joined = _link_by_link(grown(node), large) if isinstance(node, InnerJoin) else node
            joined = joined.with_inputs(_without_refused_groups(joined, large))
            inputs = list(joined.inputs)
            for index, keys in _narrowed_by(joined, large, often).items():
                if id(inputs[index]) not in whole:
                    inputs[index] = pushed(_with_keys(inputs[index], *keys))
            known = done[id(node)] = node, joined.with_inputs(tuple(visit(each) for each in inputs))
        return known[1]

    return visit(root)


#: the side that is small, and the columns of it and of the other one that have to be equal
Keys = tuple[Node, tuple[tuple[str, str], ...]]


def _narrowed_by(node: Node, large: frozenset[str], often: frozenset[str]) -> dict[int, Keys]:
    """By the places of inputs that are large: the keys that they are asked for."""
    match node:
        case Exists(input=one, other=other) if follows_change(one):
            # Spark can only broadcast the right side of these
            return _right_by_left(one, other, node.conditions, large)
        case OuterJoin(left=left, right=right, full=False) if follows_change(left):
            return _right_by_left(left, right, node.conditions, large)
        case SemiJoin(input=one, touched=other, pairs=asked) if _is_small_beside(one, other, large):
            plain = tuple((scalar.as_column, name) for scalar, name in asked)
            pairs = tuple((column, name) for column, name in plain if column is not None)
            return {1: (one, pairs)} if pairs else {}
        case Exists(input=one, other=other, negated=False) if _is_small_beside(other, one, large):
            # what is done to it is done to fewer rows: it may be a join
            pairs = _pairs(other, one, node.conditions)
            return {0: (other, pairs)} if pairs and _gains(one, often) else {}
        case InnerJoin(members=members, conditions=conditions):
            found = {}
            for index, member in enumerate(members):
                if not _gains(member, often):
                    continue
                beside = [each for each in members[:index] if _is_small_beside(each, member, large)]
                keys = [(each, _pairs(each, member, conditions)) for each in beside]
                best = max(keys, key=lambda each: len(each[1]), default=None)
                if best is not None and best[1]:
                    found[index] = best
            return found
        case _:
            return {}


def _without_refused_groups(node: Node, large: frozenset[str]) -> tuple[Node, ...]:
    """The inputs of a join. Groups that a filter on another input refuses need not be computed, before and after."""
    if not isinstance(node, InnerJoin):
        return node.inputs
    inputs = list(node.members)
    for index, member in enumerate(inputs):
        if _is_made_of_groups(member) and follows_change(member) and reads_any(member, large):
            for other in _filtered_sources(node.members):
                if pairs := _pairs(other, member, node.conditions):
                    inputs[index] = pushed(_with_keys(inputs[index], other, pairs))
    return tuple(inputs)


def _is_made_of_groups(node: Node) -> bool:
    match node:
        case Project() | Filter() | UnionAll():
            return all(map(_is_made_of_groups, node.inputs))
        case _:
            return isinstance(node, Aggregate)


def _filtered_sources(members: tuple[Node, ...]) -> Iterator[Node]:
    """Whatever else a join, or a join inside of it, says of single sources."""
    for member in members:
        if isinstance(member, InnerJoin):
            yield from _filtered_sources(member.members)
        elif isinstance(member, Filter) and _read_as_it_is(member) is not None and not follows_change(member):
            yield member


def _right_by_left(left: Node, right: Node, conditions: tuple[Scalar, ...], large: frozenset[str]) -> dict[int, Keys]:
    pairs = _pairs(left, right, conditions) if _is_small_beside(left, right, large) else ()
    return {1: (left, pairs)} if pairs else {}


def _gains(node: Node, often: frozenset[str]) -> bool:
    """Unless the small side is brought to a source anyway, that is read by nobody else."""
    source = _read_as_it_is(node)
    return source is None or source in often


def _is_small_beside(small: Node, other: Node, large: frozenset[str]) -> bool:
    return follows_change(small) and reads_any(other, large) and not follows_change(other)


def _read_as_it_is(node: Node) -> str | None:
    """The source that it is, but for what is done row by row."""
    while isinstance(node, Filter | Project):
        node = node.input
    return node.leaf.name if isinstance(node, Scan) else None


def _read_often(root: Node, large: frozenset[str]) -> frozenset[str]:
    """Sources that could be read once for several who ask."""
    scans = (scan.leaf for scan in leaves(root) if scan.leaf.role in (Role.NEW, Role.OLD))
    return frozenset(name for name, count in Counter(leaf.name for leaf in scans).items() if count > 1) & large


def _pairs(small: Node, other: Node, conditions: tuple[Scalar, ...]) -> tuple[tuple[str, str], ...]:
    types = small.types | other.types
    equal = equal_columns(conditions, types)
    return tuple(dict.fromkeys((one, two) for one, two in equal if one in small.names and two in other.names))


def _with_keys(other: Node, small: Node, pairs: tuple[tuple[str, str], ...]) -> SemiJoin:
    keys = {one: col(one) for one, _ in pairs}
    touched, compared = touched_values(small, keys, small.types)
    names = {scalar.as_column: name for scalar, name in compared}
    return SemiJoin(other, touched, tuple((col(two), names[one]) for one, two in pairs), only_saves=True)


def _asked_for_whole(root: Node, large: frozenset[str], often: frozenset[str]) -> frozenset[int]:
    """What somebody asks for everything: computed once, it serves those as well who would do with less."""
    found = {id(root)}
    for node in reversed(nodes_of(root)):
        narrowed = _narrowed_by(node, large, often)
        if id(node) in found:
            found |= {id(child) for index, child in enumerate(node.inputs) if index not in narrowed}
    return frozenset(found)


def _link_by_link(node: Node, large: frozenset[str]) -> Node:
    """A join that grows from a change meets one large relation at a time: what it has met so far is small again."""
    if isinstance(node, Project):
        return node.with_inputs((_link_by_link(node.input, large),))
    if not isinstance(node, InnerJoin) or not follows_change(node.members[0]):
        return node
    members: tuple[Node, ...] = ()
    conditions = node.conditions
    for member in node.members:
        if reads_any(member, large) and any(reads_any(each, large) for each in members):
            names = frozenset[str]().union(*(each.names for each in members))
            inside = tuple(each for each in conditions if each.columns <= names)
            if equal_columns(inside, node.types):
                members = (InnerJoin(members, inside),)
                conditions = tuple(each for each in conditions if each not in inside)
        members = (*members, member)
    return replace(node, members=members, conditions=conditions)
