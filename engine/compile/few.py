"""Which subtrees have few rows, because they follow from a change, and which read a large source."""

from __future__ import annotations

from engine.algebra.nodes import (
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
        case SemiJoin(input=source, touched=touched):
            return follows_change(source) or follows_change(touched)
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


def reads_any(node: Node, names: frozenset[str]) -> bool:
    """More of one of these sources than its change?"""
    return not names.isdisjoint(_sources_read(node))


def _sources_read(node: Node) -> frozenset[str]:
    known: frozenset[str] | None = node.__dict__.get("_sources_read")
    if known is None:
        match node:
            case Scan(leaf=Leaf(role=Role.NEW | Role.OLD, name=name)):
                known = frozenset((name,))
            case _:
                known = frozenset[str]().union(*map(_sources_read, node.inputs))
        node.__dict__["_sources_read"] = known
    return known
