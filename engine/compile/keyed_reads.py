"""Reads of a source that ask for nothing but the rows that have certain keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.algebra.nodes import Leaf, Node, Output, Role, Scan, SemiJoin

#: a source and the columns of it by which it is asked
Place = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class KeyedRead:
    node: SemiJoin
    scan: Scan
    #: the columns of the keys, under the names of the source
    by: tuple[str, ...]

    @property
    def place(self) -> Place:
        return self.scan.leaf.name, self.by

    @property
    def is_old(self) -> bool:
        return self.scan.leaf.role is Role.OLD

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the small side, in the order of `by`."""
        owns = own_names(self.scan)
        known = {owns[scalar.as_column or ""]: key for scalar, key in self.node.pairs}
        return tuple(known[name] for name in self.by)

    def by_fewest_columns(self, places: Iterable[Place]) -> KeyedRead:
        """Whoever asks by more columns than others do is served by what is read for these."""
        name, by = self.place
        served = [other for source, other in places if source == name and set(other) <= set(by)]
        return replace(self, by=min(served, key=len))


def keyed_read(node: Node, sources: frozenset[str]) -> KeyedRead | None:
    """What a node asks of one of these sources, where it asks by plain columns."""
    match node:
        case SemiJoin(input=Scan(leaf=Leaf(role=Role.NEW | Role.OLD, name=name)) as scan, pairs=pairs):
            owns = own_names(scan)
            by = [owns.get(scalar.as_column or "") for scalar, _ in pairs]
            if name not in sources or not by or None in by or len(set(by)) != len(by):
                return None
            return KeyedRead(node, scan, tuple(sorted(str(each) for each in by)))
        case _:
            return None


def own_names(scan: Scan) -> dict[str, str]:
    """Names of the source's own, by those of the tree."""
    return {name: own for name, own, _ in scan.fields}


def passed(outputs: tuple[Output, ...], names: tuple[str, ...]) -> tuple[str | None, ...]:
    """The columns below that these are, as they are."""
    below = {output.name: output.scalar.as_column for output in outputs}
    return tuple(below.get(name) for name in names)
