"""Aggregates kept by group with the sums they are made of: a refresh adds the change's sums to the stored ones.

Only where that is exact: counts, and sums and averages of integers and of decimals with headroom. A group whose
count of rows reaches zero is deleted; a negative count is a contradiction.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.aggregates import AggregateKind, sum_of
from engine.algebra.aggregates import aggregate as aggregate_of
from engine.algebra.nodes import WEIGHT, Aggregate, Aggregation, Filter, Node, OuterJoin, Output, Project
from engine.algebra.scalars import (
    Scalar,
    add,
    any_of,
    case,
    cast,
    coalesce,
    col,
    divide,
    eq,
    gt,
    is_null,
    lit,
    lt,
    ne,
    neg,
    not_null,
    null,
    null_safe_eq,
)
from engine.algebra.types import Decimal, is_integer, parse_decimal
from engine.compile.differentiate import Rule, delta
from engine.compile.keep.group_keys import ONE, GroupKeys, group_keys
from engine.compile.keep.kept import Kept, op, stored, stored_name
from engine.records import Column

STORED_SUMS = "by group, stored sums"

#: SUM adds 10 digits and the addition of the change one more; 38 is all a decimal has
MAX_EXACT_PRECISION = 27
#: …but addition never gives up the first six digits after the point. A wider decimal of at most that many is exact
#: too, and a sum that really needs more than 38 digits is an error in ANSI mode, never another number. Products of
#: prices and rates are declared this wide without being it.
MAX_EXACT_SCALE = 6
#: AVG as the quotient of two stored numbers is rounded twice, first to the 38 digits of a division. From here on down
#: that leaves 9 digits more than the result has, and only a group of more than 10^9 rows could come out differently.
MAX_AVERAGED_PRECISION = 15


@dataclass(frozen=True)
class Accumulator:
    """A stored number that changes by addition."""

    #: its column in the stored table
    name: str
    kind: AggregateKind
    argument: Scalar | None
    #: of the stored column
    type: str
    hidden: bool

    @property
    def change_name(self) -> str:
        return f"__d_{self.name}"

    @property
    def new_name(self) -> str:
        return f"__n_{self.name}"

    @property
    def zero(self) -> Scalar:
        return cast(lit(0), self.type)

    def change(self) -> Output:
        """One changed row's contribution, below the sum."""
        if self.argument is None:
            return Output(self.change_name, col(WEIGHT), "int")
        if self.kind is AggregateKind.COUNT:
            counted = case((is_null(self.argument), lit(0)), otherwise=col(WEIGHT))
            return Output(self.change_name, counted, "int")
        # Integers are added up as decimals: what came can overflow before what went is subtracted.
        wide = cast(self.argument, "decimal(20,0)") if self.type == "bigint" else self.argument
        signed = case((gt(col(WEIGHT), lit(0)), wide), otherwise=neg(wide))
        return Output(self.change_name, signed, "decimal(20,0)" if self.type == "bigint" else self.type)

    def summed(self) -> Aggregation:
        return Aggregation(self.change_name, sum_of(col(self.change_name)), "")

    def after(self) -> Output:
        """Stored plus change."""
        before = coalesce(col(stored_name(self.name)), self.zero)
        change = coalesce(col(self.change_name), lit(0) if self.type == "bigint" else self.zero)
        if self.kind is AggregateKind.SUM and self.type == "bigint":
            before = cast(before, "decimal(20,0)")
        return Output(self.new_name, cast(add(before, change), self.type), self.type)


def keep_group_sums(root: Node) -> Kept | None:
    match root:
        case Project(input=Aggregate() as aggregate) if _adds_up(aggregate):
            return _kept(root, aggregate)
        case _:
            return None


def _adds_up(aggregate: Aggregate) -> bool:
    """Is each aggregate of changed data the sum of the stored one and the change's?"""
    return all(is_exact(made.kind, aggregate.argument_type(made)) for made in aggregate.aggregations)


def is_exact(kind: AggregateKind, argument_type: str) -> bool:
    if kind is AggregateKind.OTHER:
        return False
    if kind in (AggregateKind.COUNT_ROWS, AggregateKind.COUNT):
        return True
    decimal = parse_decimal(argument_type)
    if decimal is None:
        return is_integer(argument_type)
    if kind is AggregateKind.AVG:
        return decimal.precision <= MAX_AVERAGED_PRECISION
    return decimal.precision <= MAX_EXACT_PRECISION or decimal.scale <= MAX_EXACT_SCALE


def _kept(root: Project, aggregate: Aggregate) -> Kept:
    keys = group_keys(root, aggregate)
    accumulators = _accumulators(root, aggregate)
    rows = accumulators[(AggregateKind.COUNT_ROWS, None)]
    made = tuple(accumulators.values())
    hidden = tuple(Column(key.name, key.type) for key in keys.hidden)
    hidden += tuple(Column(each.name, each.type) for each in made if each.hidden)
    return Kept(
        rule=Rule(STORED_SUMS, "counts and exact sums change by addition"),
        full=_full(root, aggregate, keys, accumulators),
        first=None,
        change=_change(root, aggregate, keys, accumulators, rows),
        append=None,
        identity=keys.identity,
        visible=root.columns,
        hidden=hidden,
    )


def _accumulators(root: Project, aggregate: Aggregate) -> dict[tuple[AggregateKind, Scalar | None], Accumulator]:
    """The sums that are stored; one that the query itself puts out is not stored twice."""
    shown = {output.scalar.as_column: output.name for output in reversed(root.outputs)}
    summed = {each.argument for each in aggregate.aggregations if each.kind is AggregateKind.SUM}
    wanted: dict[tuple[AggregateKind, Scalar | None], _Wanted] = {
        (AggregateKind.COUNT_ROWS, None): _Wanted("bigint", None)
    }
    for each in aggregate.aggregations:
        key, visible = (each.kind, each.argument), shown.get(each.name)
        match each.kind:
            case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
                wanted[key] = _Wanted("bigint", each.argument, visible)
            case AggregateKind.SUM:
                wanted.setdefault((AggregateKind.COUNT, each.argument), _Wanted("bigint", each.argument))
                wanted[key] = _Wanted(_sum_type(aggregate.argument_type(each)), each.argument, visible)
            case AggregateKind.AVG:
                wanted.setdefault((AggregateKind.COUNT, each.argument), _Wanted("bigint", each.argument))
                if each.argument not in summed:
                    wanted[(AggregateKind.SUM, each.argument)] = _wanted_by_average(
                        each.argument, aggregate.argument_type(each)
                    )
    found = {}
    for number, ((kind, argument), want) in enumerate(wanted.items()):
        word = {AggregateKind.COUNT_ROWS: "rows", AggregateKind.COUNT: f"count_{number}"}.get(kind, f"sum_{number}")
        name = want.visible or f"__trickle_{word}"
        found[(kind, argument)] = Accumulator(name, kind, want.argument, want.type, hidden=want.visible is None)
    return found


@dataclass(frozen=True)
class _Wanted:
    type: str
    argument: Scalar | None
    #: the output that is this very number
    visible: str | None = None


def _wanted_by_average(argument: Scalar | None, argument_type: str) -> _Wanted:
    if argument_type == "bigint" and argument is not None:
        # An average exists also where the sum does not fit into a bigint.
        return _Wanted("decimal(30,0)", cast(argument, "decimal(20,0)"))
    return _Wanted(_sum_type(argument_type), argument)


def _sum_type(argument_type: str) -> str:
    decimal = parse_decimal(argument_type)
    return "bigint" if decimal is None else str(Decimal(min(decimal.precision + 10, 38), decimal.scale))


def _final(made: Aggregation, argument_type: str, count: Scalar, total: Scalar) -> Scalar:
    """The aggregate's value from its sums."""
    match made.kind:
        case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
            return count
        case AggregateKind.SUM:
            value = total if made.type == _sum_type(argument_type) else cast(total, made.type)
        case AggregateKind.AVG:
            decimal = parse_decimal(made.type)
            if decimal is None:
                value = divide(cast(total, "double"), cast(count, "double"))
            else:
                value = cast(divide(total, cast(count, "decimal(20,0)")), made.type)
    return case((eq(count, lit(0)), null()), otherwise=value)


def _finals(aggregate: Aggregate, value_of: dict[tuple[AggregateKind, Scalar | None], Scalar]) -> dict[str, Scalar]:
    finals = {}
    for made in aggregate.aggregations:
        count = value_of[(AggregateKind.COUNT_ROWS if made.argument is None else AggregateKind.COUNT, made.argument)]
        # Counts have no sum.
        finals[made.name] = _final(
            made, aggregate.argument_type(made), count, value_of.get((AggregateKind.SUM, made.argument), count)
        )
    return finals


def _full(
    root: Project,
    aggregate: Aggregate,
    keys: GroupKeys,
    accumulators: dict[tuple[AggregateKind, Scalar | None], Accumulator],
) -> Node:
    """The whole result with the sums beside it, computed once."""
    made = tuple(accumulators.values())
    sums = Aggregate(
        aggregate.input,
        aggregate.keys,
        tuple(Aggregation(each.new_name, aggregate_of(each.kind, each.argument), each.type) for each in made),
    )
    finals = _finals(aggregate, {key: col(each.new_name) for key, each in accumulators.items()})
    visible = tuple(Output(o.name, o.scalar.substitute(finals), o.type) for o in root.outputs)
    hidden = tuple(
        Output(each.name, coalesce(col(each.new_name), each.zero), each.type) for each in made if each.hidden
    )
    return Project(sums, (*visible, *keys.hidden, *hidden))


def _change(
    root: Project,
    aggregate: Aggregate,
    keys: GroupKeys,
    accumulators: dict[tuple[AggregateKind, Scalar | None], Accumulator],
    rows: Accumulator,
) -> Node:
    made = tuple(accumulators.values())
    contributions = Project(delta(aggregate.input), (*aggregate.keys, *(each.change() for each in made)))
    grouped: Node = Aggregate(
        contributions,
        tuple(Output(key.name, col(key.name), key.type) for key in aggregate.keys),
        tuple(each.summed() for each in made),
    )
    key_names = [key.name for key in aggregate.keys]
    if not key_names:
        grouped = Project(grouped, (Output(ONE, lit(1), "int"), *_kept_names(made)))
        key_names = [ONE]
    moved = Filter(grouped, any_of(ne(coalesce(col(each.change_name), lit(0)), lit(0)) for each in made))
    identity_types = dict(zip(keys.identity, (key.type for key in aggregate.keys), strict=False))
    there = stored(
        tuple(Column(name, identity_types.get(name, "int")) for name in keys.identity)
        + tuple(Column(each.name, each.type) for each in made if each.name not in keys.identity)
    )
    same_group = tuple(
        null_safe_eq(col(key), col(stored_name(name))) for key, name in zip(key_names, keys.identity, strict=True)
    )
    joined = OuterJoin(moved, there, same_group)
    key_outputs = tuple(
        Output(key, col(key), identity_types.get(name, "int"))
        for key, name in zip(key_names, keys.identity, strict=True)
    )
    was = Output("__was", col(stored_name(rows.name)), "bigint")
    summed = Project(joined, (*key_outputs, *(each.after() for each in made), was))
    return _as_change_set(summed, root, aggregate, keys, accumulators, rows)


def _as_change_set(
    summed: Node,
    root: Project,
    aggregate: Aggregate,
    keys: GroupKeys,
    accumulators: dict[tuple[AggregateKind, Scalar | None], Accumulator],
    rows: Accumulator,
) -> Node:
    made = tuple(accumulators.values())
    is_new = is_null(col("__was"))
    gone = eq(col(rows.new_name), lit(0))
    counts = [each for each in made if each.kind is not AggregateKind.SUM]
    contradiction = any_of(
        [lt(col(each.new_name), lit(0)) for each in counts]
        + [gt(col(each.new_name), col(rows.new_name)) for each in counts if each is not rows]
    )
    if aggregate.keys:
        # A group that came and went within the change leaves nothing to do.
        summed = Filter(summed, any_of((ne(col(rows.new_name), lit(0)), not_null(col("__was")))))
        ops = op((contradiction, "X"), (gone, "D"), (is_new, "I"), otherwise="U")
    else:
        ops = op((any_of((contradiction, is_new)), "X"), otherwise="U")
    finals = _finals(aggregate, {key: col(each.new_name) for key, each in accumulators.items()})
    visible = tuple(Output(o.name, o.scalar.substitute(finals), o.type) for o in root.outputs)
    hidden_keys = keys.hidden if aggregate.keys else (Output(ONE, lit(1), "int"),)
    hidden = tuple(Output(each.name, col(each.new_name), each.type) for each in made if each.hidden)
    return Project(summed, (ops, *visible, *hidden_keys, *hidden))


def _kept_names(made: tuple[Accumulator, ...]) -> tuple[Output, ...]:
    return tuple(Output(each.change_name, col(each.change_name), "") for each in made)
