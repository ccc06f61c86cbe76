"""The relational operators: frozen, typed, checked when they are made.

Every column has one name in the whole tree. Trees of *changes* are ordinary trees whose rows carry a weight in
the column `__w`: +1 for a row that came, −1 for one that went.

First what users write, then what appears only in maintenance statements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

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
    ITSELF = "itself"  # what a recursion has found so far, inside of its step
    NET = "net"  # the result of the refresh's first statement: the change, netted by value
    STEP = "step"  # what a statement computes before the rest of it


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


@dataclass(frozen=True, repr=False)
class Node:
    """An operator. Subclasses name their inputs in `input_fields`."""

    input_fields: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        """Short: with its inputs, what is shared would stand in it again and again. `display.show` shows trees."""
        return f"<{type(self).__name__} {', '.join(column.name for column in self.columns)}>"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        raise InternalError(f"{type(self).__name__} does not say its columns")

    @cached_property
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

    @cached_property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}

    @property
    def weighted(self) -> bool:
        return WEIGHT in self.names

    def _require(self, scalar: Scalar, names: frozenset[str]) -> None:
        missing = scalar.columns - names
        if missing:
            raise InternalError(f"{type(self).__name__} reads {sorted(missing)}, which its input lacks")

    def _require_distinct_names(self, *inputs: Node) -> None:
        if len(frozenset().union(*(each.names for each in inputs))) != sum(len(each.columns) for each in inputs):
            raise InternalError("two inputs of a join have a column of the same name")


@dataclass(frozen=True, repr=False)
class Scan(Node):
    """A leaf: some columns of a relation, renamed to names that are unique in the tree."""

    leaf: Leaf
    #: (name in the tree, name in the relation, type)
    fields: tuple[tuple[str, str, str], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, type_) for name, _, type_ in self.fields)


@dataclass(frozen=True, repr=False)
class Values(Node):
    """Rows that stand in the query itself. One row without columns is what a SELECT without FROM reads."""

    fields: tuple[Column, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    def __post_init__(self) -> None:
        if not self.rows or any(len(row) != len(self.fields) for row in self.rows):
            raise InternalError("rows of VALUES differ in their number of columns")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.fields


ONE_ROW = Values((), ((),))


@dataclass(frozen=True, repr=False)
class Filter(Node):
    input_fields = ("input",)
    input: Node
    predicate: Scalar

    def __post_init__(self) -> None:
        self._require(self.predicate, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class InnerJoin(Node):
    """Any number of inputs and the conditions between them; without conditions a cross product."""

    input_fields = ("members",)
    members: tuple[Node, ...]
    conditions: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        for condition in self.conditions:
            self._require(condition, self.names)
        self._require_distinct_names(*self.members)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for member in self.members for column in member.columns)


@dataclass(frozen=True, repr=False)
class OuterJoin(Node):
    """Each left row at least once, beside its partners on the right or NULLs; `full`: each right row too."""

    input_fields = ("left", "right")
    left: Node
    right: Node
    conditions: tuple[Scalar, ...]
    full: bool = False

    def __post_init__(self) -> None:
        for condition in self.conditions:
            self._require(condition, self.names)
        self._require_distinct_names(self.left, self.right)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns


@dataclass(frozen=True, repr=False)
class Exists(Node):
    """The rows of `input` that have a partner in `other`, or, negated, that have none."""

    input_fields = ("input", "other")
    input: Node
    other: Node
    conditions: tuple[Scalar, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        for condition in self.conditions:
            self._require(condition, self.input.names | self.other.names)
        if condition_names := frozenset().union(*(each.columns for each in self.conditions)):
            both = self.input.names & self.other.names & condition_names
            if both:
                raise InternalError(f"both sides of a condition have {sorted(both)}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Aggregation:
    """An aggregate function over plain columns and literals, perhaps inside of an expression."""

    name: str
    call: Scalar
    type: str

    def __str__(self) -> str:
        return str(self.call)


@dataclass(frozen=True, repr=False)
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
            self._require(aggregation.call, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        keys = tuple(Column(key.name, key.type) for key in self.keys)
        return keys + tuple(Column(made.name, made.type) for made in self.aggregations)


@dataclass(frozen=True)
class Windowed:
    """A function over a window of plain columns: `tree` of the call is the whole OVER expression."""

    name: str
    call: Scalar
    type: str

    @property
    def partition(self) -> frozenset[str]:
        return self.call.partition


@dataclass(frozen=True, repr=False)
class Window(Node):
    """Functions over windows that never reach across the borders of `partition`."""

    input_fields = ("input",)
    input: Node
    partition: tuple[str, ...]
    functions: tuple[Windowed, ...]

    def __post_init__(self) -> None:
        for function in self.functions:
            self._require(function.call, self.input.names)
            if not frozenset(self.partition) <= function.partition:
                raise InternalError(f"{function.call} reaches across {self.partition}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(Column(each.name, each.type) for each in self.functions)


@dataclass(frozen=True, repr=False)
class Explode(Node):
    """Each row beside the rows that a function makes of it; `outer`: at least once."""

    input_fields = ("input",)
    input: Node
    call: Scalar
    fields: tuple[Column, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        self._require(self.call, self.input.names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + self.fields


@dataclass(frozen=True, repr=False)
class Repeat(Node):
    """Each row as many times as its column `times` says."""

    input_fields = ("input",)
    input: Node
    times: str

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.input.columns if column.name != self.times)


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class Recursion(Node):
    """What `base` gives, what `step` makes of that, what it makes of that in turn, until nothing more comes."""

    input_fields = ("base", "step")
    #: what the leaf in `step` is called that stands for the rows of the round before
    name: str
    base: Node
    step: Node
    #: under which that leaf knows them
    inner_names: tuple[str, ...]
    #: more rounds are an error; None: as many as Spark's setting allows
    max_level: str | None = None

    def __post_init__(self) -> None:
        if not len(self.base.columns) == len(self.step.columns) == len(self.inner_names):
            raise InternalError("base and step of a recursion differ in their number of columns")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.base.columns


# ------------------------------------------------------------------ only in maintenance statements


@dataclass(frozen=True, repr=False)
class Empty(Node):
    """No rows: what is left of a branch whose sources did not change."""

    fields: tuple[Column, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.fields


@dataclass(frozen=True, repr=False)
class SemiJoin(Node):
    """The rows of `input` whose keys are among `touched`, NULL equal to NULL."""

    input_fields = ("input", "touched")
    input: Node
    touched: Node
    #: (scalar over input, column of touched)
    pairs: tuple[tuple[Scalar, str], ...]
    #: the other rows would make no difference: it only saves reading them
    only_saves: bool = False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns
