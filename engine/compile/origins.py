"""Where keys come from: columns of a tree that together have all values in question."""

from __future__ import annotations

from collections.abc import Iterable

from engine.algebra.nodes import Aggregate, Filter, InnerJoin, Leaf, Node, Project, Role, Scan, SemiJoin
from engine.compile.keyed_reads import own_names, passed

Origin = tuple[Node, tuple[str, ...]]


def without_contained(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    """All of their values together, each as simply as can be; what is among the values of another is left out."""
    plain = {_known_by(*found): found for each in origins for found in (_plainest(*each),)}
    return tuple(found for known, found in plain.items() if not (_containing(*found) & (plain.keys() - {known})))


def _plainest(node: Node, names: tuple[str, ...]) -> Origin:
    """Without what only renames the values, or leaves copies of them out."""
    match node:
        case Scan(leaf=Leaf(role=Role.DELTA) as leaf):
            owns = own_names(node)
            return of_change(leaf, tuple(owns[name] for name in names), node)
        case Project(input=below, outputs=outputs):
            there = passed(outputs, names)
        case Aggregate(input=below, keys=keys, aggregations=()):
            there = passed(keys, names)
        case _:
            return node, names
    return (node, names) if None in there else _plainest(below, tuple(map(str, there)))


def _containing(node: Node, names: tuple[str, ...]) -> set[object]:
    """Whatever has all of the values, too, of what is joined or filtered to give them."""
    found: set[object] = set()
    waiting: list[Origin] = [(node, names)]
    while waiting:
        below, there = waiting.pop()
        plain = _plainest(below, there)
        found.add(_known_by(*plain))
        match plain[0]:
            case Filter(input=inner) | SemiJoin(input=inner):
                waiting.append((inner, plain[1]))
            case InnerJoin(members=members):
                waiting += [(each, plain[1]) for each in members if each.names.issuperset(plain[1])]
    return found


def of_change(leaf: Leaf, owns: tuple[str, ...], typed: Node) -> Origin:
    """Under the source's own names, so that what is asked twice is known to be the same."""
    types = {own: type_ for _, own, type_ in typed.fields} if isinstance(typed, Scan) else typed.types
    return Scan(leaf, tuple((own, own, types[own]) for own in owns)), owns


def _known_by(node: Node, names: tuple[str, ...]) -> object:
    return node if isinstance(node, Scan) else id(node), names
