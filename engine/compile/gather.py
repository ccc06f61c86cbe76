"""Where sources are large: what is asked of one for some keys is read once, for all of these keys.

A statement asks a source for the keys of several changes, as it is now and as it was, once for each term of a join. All
these rows are among those that have any of the keys; and what it was is what it is, without what came and with what
went. So one reading serves them all, where they ask by the same columns.

Keys may be computed of rows that are themselves to be read by them. Then they are traced to where they come from, in
the end to a change: the lines of changed orders have the keys of changed orders. That may be more of them than are
asked for, and everybody still takes only what he asks for. Who asks for keys that cannot be traced is served by a later
reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from engine.algebra.comparable import comparable
from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Output,
    Project,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
    Window,
    keep,
)
from engine.algebra.scalars import cast, col, gt, lit, neg
from engine.algebra.trees import consolidate, is_lost_in_keys, nodes_of, rewrite
from engine.compile.differentiate.touched import touched_values
from engine.compile.equalities import equal_columns
from engine.compile.few import follows_change
from engine.compile.keyed_reads import KeyedRead, Place, keyed_read, own_names, passed
from engine.compile.origins import Origin, of_change, without_contained


def gather(root: Node, large: frozenset[str], looked_up: frozenset[str]) -> Node:
    """The same rows. `large` are names of leaves, `looked_up` those that are asked for keys in any case."""
    asked = [each for node in nodes_of(root) if (each := _asked(node, large)) is not None]
    return rewrite(_Gathering(asked).of(root), lambda node: _without_idle_keys(node, looked_up)) if asked else root


@dataclass(eq=False)
class _Reading:
    """What serves all who ask a source by the same columns."""

    place: Place
    asked: list[KeyedRead] = field(default_factory=list)
    #: None as long as nobody knows the keys
    now: SemiJoin | None = None
    before: Node | None = None

    @property
    def saves(self) -> bool:
        return len(self.asked) > 1

    @property
    def types(self) -> dict[str, str]:
        """All that is asked for, with types."""
        return {name: type_ for each in self.asked for _, name, type_ in each.scan.fields}

    def of_keys(self, keys: Node) -> SemiJoin:
        """The source as it is, under its own names."""
        name, by = self.place
        touched, pairs = touched_values(keys, {own: col(own) for own in by}, self.types)
        scan = Scan(Leaf(Role.NEW, name), tuple((own, own, type_) for own, type_ in self.types.items()))
        return SemiJoin(scan, touched, pairs)

    def as_it_was(self, now: SemiJoin) -> Node:
        """Without what came, and with what went: the columns that anybody asks for as they were.

        Values are told apart by their text, too, where equal ones need not be the same: 0.0 and -0.0.
        """
        name, _ = self.place
        asked = {own for each in self.asked if each.is_old for _, own, _ in each.scan.fields}
        columns = tuple(column for column in now.columns if column.name in asked)
        fields = ((column.name, column.name, column.type) for column in now.columns)
        change = Scan(Leaf(Role.DELTA, name), (*fields, (WEIGHT, WEIGHT, "int")))
        texts = tuple(
            Output(f"__text_{column.name}", cast(col(column.name), "string"), "string")
            for column in columns
            if is_lost_in_keys(column.type)
        )
        there = Project(now, (*keep(columns), *texts, Output(WEIGHT, lit(1), "int")))
        taken_back = Output(WEIGHT, neg(col(WEIGHT)), "int")
        undone = Project(SemiJoin(change, now.touched, now.pairs), (*keep(columns), *texts, taken_back))
        left = Filter(consolidate(UnionAll((there, undone))), gt(col(WEIGHT), lit(0)))
        times = Output(WEIGHT, cast(col(WEIGHT), "bigint"), "bigint")
        return Repeat(Project(left, (*keep(columns), times)), WEIGHT)


def _asked(node: Node, large: frozenset[str]) -> KeyedRead | None:
    found = keyed_read(node, large)
    if found is not None and found.is_old and not all(_can_be_netted(type_) for _, _, type_ in found.scan.fields):
        return None
    return found


def _can_be_netted(type_: str) -> bool:
    return comparable(col("x"), type_) is not None


class _Gathering:
    """Rebuilds a tree in which the sources that are asked several times are read once."""

    def __init__(self, asked: list[KeyedRead]) -> None:
        readings = {each.place: _Reading(each.place) for each in asked}
        alike = Counter(each.place for each in asked)
        served = [each if alike[each.place] > 1 else each.by_fewest_columns(readings) for each in asked]
        for each in served:
            readings[each.place].asked.append(each)
        self._asked = {id(each.node): each for each in served}
        self._serves = {id(each.node): readings[each.place] for each in served}
        #: those whose keys are looked for
        self._under_way: list[_Reading] = []
        #: what was made of a node, with the node itself, so that no other one gets its id
        self._done: dict[int, tuple[Node, Node]] = {}
        self._inside: dict[int, frozenset[int]] = {}

    def of(self, node: Node) -> Node:
        known = self._done.get(id(node))
        if known is None:
            asked = self._asked.get(id(node))
            rows = None if asked is None else self._rows(asked)
            if rows is not None and asked is not None and asked.node.only_saves:
                known = self._done[id(node)] = node, rows
                return rows
            made = node.with_inputs(tuple(self.of(each) for each in node.inputs))
            if rows is not None:
                made = made.with_inputs((rows, *made.inputs[1:]))
            known = self._done[id(node)] = node, made
        return known[1]

    def _rows(self, asked: KeyedRead) -> Node | None:
        """What is asked, and perhaps more, under the names of the tree. None: it is read by itself."""
        reading = self._reading(asked)
        if reading is None or reading.now is None:
            return None
        rows: Node = reading.now
        if asked.is_old:
            rows = reading.before = reading.before or reading.as_it_was(reading.now)
        return Project(rows, tuple(Output(name, col(own), type_) for name, own, type_ in asked.scan.fields))

    def _reading(self, asked: KeyedRead) -> _Reading | None:
        """The one that serves it, once that is known."""
        reading = self._serves[id(asked.node)]
        if reading in self._under_way:
            return None
        if reading.now is None and reading.saves:
            self._find_keys(reading)
            return self._reading(asked)
        return reading if reading.saves else None

    def _find_keys(self, reading: _Reading) -> None:
        self._under_way.append(reading)
        found = [(each, self._origins(each.node.touched, each.keys)) for each in reading.asked]
        self._under_way.remove(reading)
        reading.asked = [each for each, origins in found if origins is not None]
        rest = [each for each, origins in found if origins is None]
        # each reading serves somebody, so that this has an end
        later = [_Reading(reading.place, rest)] if reading.asked else [_Reading(reading.place, [each]) for each in rest]
        for other in later:
            self._serves.update((id(each.node), other) for each in other.asked)
        if reading.saves:
            reading.now = reading.of_keys(self._together(reading, chain.from_iterable(o or () for _, o in found)))

    def _together(self, reading: _Reading, origins: Iterable[Origin]) -> Node:
        _, by = reading.place
        parts = []
        for node, names in without_contained(origins):
            pairs = zip(by, names, strict=True)
            parts.append(Project(node, tuple(Output(own, col(name), reading.types[own]) for own, name in pairs)))
        return UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]

    def _origins(self, node: Node, names: tuple[str, ...]) -> list[Origin] | None:
        """What has all values of these columns, and can be computed first. None where that would be too many."""
        if isinstance(node, Scan) and node.leaf.role is Role.DELTA:
            return [(node, names)]
        if not follows_change(node):
            return None
        if self._is_free(node):
            return [(self.of(node), names)]
        match node:
            case SemiJoin(touched=touched, pairs=pairs):
                keys = {scalar.as_column: key for scalar, key in pairs}
                if all(name in keys for name in names):
                    return self._below(touched, tuple(keys[name] for name in names))
                asked = self._asked.get(id(node))
                return self._below(node.input, names) if asked is None else self._of_asked(asked, names)
            case Project(input=below, outputs=outputs):
                return self._below(below, passed(outputs, names))
            case Aggregate(input=below, keys=keys):
                return self._below(below, passed(keys, names))
            case Filter() | Exists() | Repeat() | Explode() | Window() | OuterJoin(full=False):
                return self._below(node.inputs[0], names)
            case UnionAll(members=members):
                at = [[c.name for c in node.columns].index(name) for name in names]
                found = [self._origins(each, tuple(each.columns[place].name for place in at)) for each in members]
                return None if None in found else [origin for part in found for origin in part or ()]
            case InnerJoin(members=members):
                equal = equal_columns(node.conditions, node.types)
                for member in members:
                    own = {one: two for one, two in equal if two in member.names} | {n: n for n in member.names}
                    if (origins := self._below(member, tuple(own.get(name) for name in names))) is not None:
                        return origins
        return None

    def _below(self, below: Node, names: tuple[str | None, ...]) -> list[Origin] | None:
        there = tuple(name for name in names if name in below.names)
        return self._origins(below, there) if len(there) == len(names) else None

    def _of_asked(self, asked: KeyedRead, names: tuple[str, ...]) -> list[Origin] | None:
        """Other columns than the keys, of what is read by these."""
        reading = self._reading(asked)
        if reading is None or reading.now is None:
            return None
        owns = tuple(own_names(asked.scan)[name] for name in names)
        if not asked.is_old:
            return [(reading.now, owns)]
        return [(reading.now, owns), of_change(Leaf(Role.DELTA, asked.scan.leaf.name), owns, reading.now)]

    def _is_free(self, node: Node) -> bool:
        """Can it be computed without what is under way?"""
        waiting, seen = [node], set[_Reading]()
        while waiting:
            for each in self._asked_inside(waiting.pop()):
                reading = self._serves[each]
                if reading in self._under_way:
                    return False
                if reading.now is None and reading not in seen:
                    seen.add(reading)
                    waiting += [asked.node.touched for asked in reading.asked]
        return True

    def _asked_inside(self, node: Node) -> frozenset[int]:
        """Whoever asks in this subtree."""
        known = self._inside.get(id(node))
        if known is None:
            own = frozenset((id(node),)) if id(node) in self._asked else frozenset[int]()
            known = self._inside[id(node)] = own.union(*map(self._asked_inside, node.inputs))
        return known


def _without_idle_keys(node: Node, looked_up: frozenset[str]) -> Node:
    """Where nobody shared the reading of a join's input, the join itself brings the keys to it."""
    if not isinstance(node, InnerJoin):
        return node
    return node.with_inputs(tuple(_without_keys_of(each, looked_up) for each in node.members))


def _without_keys_of(node: Node, looked_up: frozenset[str]) -> Node:
    match node:
        case Filter() | Project():
            return node.with_inputs((_without_keys_of(node.inputs[0], looked_up),))
        case SemiJoin(input=Scan(leaf=leaf) as scan, only_saves=True) if leaf.name not in looked_up:
            return scan
        case _:
            return node
