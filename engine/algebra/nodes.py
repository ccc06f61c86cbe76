"""The relational operators: frozen, typed, checked when they are made.

Every column has one name in the whole tree. Trees of *changes* are ordinary trees whose rows carry a weight in
the column `__w`: +1 for a row that came, −1 for one that went.

The first five are what users write; the others appear only in maintenance statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from engine.algebra import scalars
from engine.algebra.scalars import Scalar, col
from engine.errors import InternalError
from engine.records import Column

WEIGHT = "__w"


class Role(StrEnum):
    """Which state of a relation a leaf stands for."""

    NEW = "new"  # the source at the chosen version
    OLD = "old"  # the source at the frontier
    DELTA = "delta"  # what changed between the two, weighted
    STORED = "stored"  # the stream table itself, as pinned
    NET = "net"  # the result of the refresh's first statement: the change, netted by value


@dataclass(frozen=True)
class Leaf:
    role: Role
    name: str

    def __str__(self) -> str:
        return self.role if self.role in (Role.STORED, Role.NET) else f"{self.role}_{self.name}"


@dataclass(frozen=True)
class Output:
    """A named, typed column that an operator computes."""

    name: str
    scalar: Scalar
    type: str

    def __str__(self) -> str:
        text = str(self.scalar)
        return text if text == self.name else f"{text} AS {self.name}"


def keep(columns: tuple[Column, ...]) -> tuple[Output, ...]:
    """Columns passed on as they are."""
    return tuple(Output(column.name, col(column.name), column.type) for column in columns)


@dataclass(frozen=True)
class Node:
    """An operator. Subclasses name their inputs in `input_fields`."""

    input_fields: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        raise InternalError(f"{type(self).__name__} does not say its columns")

    @property
    def inputs(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for name in self.input_fields:
            value = getattr(self, name)
            found.extend(value if isinstance(value, tuple) else (value,))
        return tuple(found)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        """The same operator over other inputs (in the order of `inputs`)."""
        if all(mine is other for mine, other in zip(self.inputs, inputs, strict=True)):
            return self
        rest = list(inputs)
        changed: dict[str, Node | tuple[Node, ...]] = {}
        for name in self.input_fields:
            value = getattr(self, name)
            if isinstance(value, tuple):
                changed[name] = tuple(rest[: len(value)])
                del rest[: len(value)]
            else:
                changed[name] = rest.pop(0)
        return replace(self, **changed)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns)

    @property
    def weighted(self) -> bool:
        return WEIGHT in self.names

    def _require(self, scalar: Scalar, names: frozenset[str]) -> None:
        missing = scalar.columns - names
        if missing:
            raise InternalError(f"{type(self).__name__} reads {sorted(missing)}, which its input lacks")


@dataclass(frozen=True)
class Scan(Node):
    """A leaf: some columns of a relation, renamed to names that are unique in the tree."""

    leaf: Leaf
    #: (name in the tree, name in the relation, type)
    fields: tuple[tuple[str, str, str], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, type_) for name, _, type_ in self.fields)


@dataclass(frozen=True)
class Filter(Node):
    input_fields = ("input",)
    input: Node
    predicate: Scalar

    def __post_init__(self) -> None:
        self._require(self.predicate, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Project(Node):
    input_fields = ("input",)
    input: Node
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        for output in self.outputs:
            self._require(output.scalar, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(output.name, output.type) for output in self.outputs)


@dataclass(frozen=True)
class InnerJoin(Node):
    """Any number of inputs and the conditions between them; without conditions a cross product."""

    input_fields = ("members",)
    members: tuple[Node, ...]
    conditions: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        for condition in self.conditions:
            self._require(condition, self.names)
        if len({column.name for column in self.columns}) != len(self.columns):
            raise InternalError("two inputs of a join have a column of the same name")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for member in self.members for column in member.columns)


class AggregateKind(StrEnum):
    COUNT_ROWS = "count(*)"
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True)
class Aggregation:
    name: str
    kind: AggregateKind
    argument: Scalar | None
    argument_type: str
    type: str

    def __str__(self) -> str:
        return "count(*)" if self.argument is None else f"{self.kind}({self.argument})"


@dataclass(frozen=True)
class Aggregate(Node):
    """Groups by its keys; without keys it is one row, also over nothing. Without aggregations: DISTINCT."""

    input_fields = ("input",)
    input: Node
    keys: tuple[Output, ...]
    aggregations: tuple[Aggregation, ...]

    def __post_init__(self) -> None:
        for key in self.keys:
            self._require(key.scalar, self.input.names)
        for aggregation in self.aggregations:
            if aggregation.argument is not None:
                self._require(aggregation.argument, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        keys = tuple(Column(key.name, key.type) for key in self.keys)
        return keys + tuple(Column(made.name, made.type) for made in self.aggregations)


# ------------------------------------------------------------------ only in maintenance statements


@dataclass(frozen=True)
class Empty(Node):
    """No rows: what is left of a branch whose sources did not change."""

    fields: tuple[Column, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.fields


@dataclass(frozen=True)
class UnionAll(Node):
    """Columns by position; named as in the first input."""

    input_fields = ("members",)
    members: tuple[Node, ...]

    def __post_init__(self) -> None:
        if len({len(member.columns) for member in self.members}) != 1:
            raise InternalError("the inputs of a union differ in their number of columns")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.members[0].columns


@dataclass(frozen=True)
class LeftJoin(Node):
    """Each left row at least once, beside its partners on the right or NULLs."""

    input_fields = ("left", "right")
    left: Node
    right: Node
    conditions: tuple[Scalar, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns


@dataclass(frozen=True)
class SemiJoin(Node):
    """The rows of `input` whose keys are among `touched`, NULL equal to NULL."""

    input_fields = ("input", "touched")
    input: Node
    touched: Node
    #: (scalar over input, column of touched)
    pairs: tuple[tuple[Scalar, str], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Numbered(Node):
    """Numbers the rows of each partition from 1 and says how many there are."""

    input_fields = ("input",)
    input: Node
    partition: tuple[str, ...]
    order: tuple[str, ...]
    number: str
    count: str

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, Column(self.number, "int"), Column(self.count, "bigint"))


@dataclass(frozen=True)
class Repeat(Node):
    """Each row as many times as its column `times` says."""

    input_fields = ("input",)
    input: Node
    times: str

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.input.columns if column.name != self.times)


def rewrite(root: Node, change: Callable[[Node], Node]) -> Node:
    """Applies `change` to every operator, inputs first. What was shared stays shared."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            inputs = tuple(visit(child) for child in node.inputs)
            done[id(node)] = change(node.with_inputs(inputs))
        return done[id(node)]

    return visit(root)


def leaves(root: Node) -> tuple[Scan, ...]:
    """Every scan of a tree, left to right."""
    if isinstance(root, Scan):
        return (root,)
    return tuple(leaf for child in root.inputs for leaf in leaves(child))


def columns_by_leaf(*roots: Node) -> dict[Leaf, tuple[Column, ...]]:
    """What is read of each leaf, under the leaf's own names, wherever it is read."""
    found: dict[Leaf, dict[str, Column]] = {}
    for root in roots:
        for scan in leaves(root):
            found.setdefault(scan.leaf, {}).update((name, Column(name, type_)) for _, name, type_ in scan.fields)
    return {leaf: tuple(columns.values()) for leaf, columns in found.items()}


def at_frontier(root: Node) -> Node:
    """The same query over the sources as they were at the frontier."""

    def to_old(node: Node) -> Node:
        if isinstance(node, Scan) and node.leaf.role is Role.NEW:
            return replace(node, leaf=replace(node.leaf, role=Role.OLD))
        return node

    return rewrite(root, to_old)


def consolidate(changes: Node) -> Node:
    """Changes with one row for each distinct value, weighted by the net of what came and went."""
    value_columns = tuple(column for column in changes.columns if column.name != WEIGHT)
    net = Aggregation(WEIGHT, AggregateKind.SUM, col(WEIGHT), "int", "bigint")
    grouped = Aggregate(changes, keep(value_columns), (net,))
    return Filter(grouped, scalars.ne(col(WEIGHT), scalars.lit(0)))
