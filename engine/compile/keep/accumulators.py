"""The numbers that are stored for a group: what one changed row brings to each, and how the two are merged."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.aggregates import AggregateKind, aggregate, merged, sum_of
from engine.algebra.nodes import WEIGHT, Aggregation, Output
from engine.algebra.scalars import Scalar, add, case, cast, coalesce, col, gt, is_null, lit, neg
from engine.compile.keep.kept import stored_name


@dataclass(frozen=True)
class Part:
    """An aggregate that others are made of: a number that is stored."""

    kind: AggregateKind
    #: over the columns below the aggregate
    argument: Scalar | None
    #: of the stored column
    type: str

    @property
    def key(self) -> tuple[AggregateKind, Scalar | None]:
        return self.kind, self.argument


@dataclass(frozen=True)
class Accumulator:
    """A part with its place."""

    #: its column in the stored table
    name: str
    part: Part
    hidden: bool

    @property
    def kind(self) -> AggregateKind:
        return self.part.kind

    @property
    def argument(self) -> Scalar | None:
        return self.part.argument

    @property
    def type(self) -> str:
        return self.part.type

    @property
    def is_added(self) -> bool:
        return self.kind in (AggregateKind.COUNT_ROWS, AggregateKind.COUNT, AggregateKind.SUM)

    @property
    def change_name(self) -> str:
        return f"__d_{self.name}"

    @property
    def new_name(self) -> str:
        return f"__n_{self.name}"

    @property
    def _zero(self) -> Scalar:
        return cast(lit(0), self.type)

    def computed(self) -> Aggregation:
        """Over all rows of the group."""
        return Aggregation(self.new_name, aggregate(self.kind, self.argument), self.type)

    def kept(self) -> Output:
        """As it is stored where no column of the query shows it."""
        value = coalesce(col(self.new_name), self._zero) if self.kind.takes_back else col(self.new_name)
        return Output(self.name, value, self.type)

    def change(self) -> Output:
        """One changed row's contribution, below the sum."""
        if self.argument is None:
            return Output(self.change_name, col(WEIGHT), "int")
        if self.kind is AggregateKind.COUNT:
            counted = case((is_null(self.argument), lit(0)), otherwise=col(WEIGHT))
            return Output(self.change_name, counted, "int")
        if self.kind is not AggregateKind.SUM:
            # a row that came and one that went change a XOR alike; the others are merged only when no row went
            return Output(self.change_name, self.argument, self.type)
        # Integers are added up as decimals: what came can overflow before what went is subtracted.
        wide = cast(self.argument, "decimal(20,0)") if self.type == "bigint" else self.argument
        signed = case((gt(col(WEIGHT), lit(0)), wide), otherwise=neg(wide))
        return Output(self.change_name, signed, "decimal(20,0)" if self.type == "bigint" else self.type)

    def summed(self) -> Aggregation:
        changed = col(self.change_name)
        return Aggregation(self.change_name, sum_of(changed) if self.is_added else aggregate(self.kind, changed), "")

    def after(self) -> Output:
        """Stored and change, merged."""
        before, change = col(stored_name(self.name)), col(self.change_name)
        if not self.is_added:
            return Output(self.new_name, merged(self.kind, before, change), self.type)
        before = coalesce(before, self._zero)
        change = coalesce(change, lit(0) if self.type == "bigint" else self._zero)
        if self.kind is AggregateKind.SUM and self.type == "bigint":
            before = cast(before, "decimal(20,0)")
        return Output(self.new_name, cast(add(before, change), self.type), self.type)
