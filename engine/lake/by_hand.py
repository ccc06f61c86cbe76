"""Rows that are only chosen: what the driver does with rows that it has, instead of a job of Spark's.

Which keys a change has, or what some rows were before a change, is nothing that is computed: rows are chosen and
matched, columns renamed, copies counted. For a few thousand rows a job of Spark's takes 40 to 150 ms for it, and Arrow
one or two. What is computed of rows is computed by Spark; here is only what cannot differ: no floating-point number is
compared, no expression is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Exists,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    Project,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
)
from engine.algebra.plain import (
    Both,
    Compared,
    Comparison,
    Condition,
    Constant,
    Either,
    IsNull,
    Name,
    Opposite,
    Taken,
    counts_copies,
    is_compared_alike,
    plain_condition,
    taken,
)
from engine.algebra.scalars import Scalar
from engine.algebra.trees import leaves, nodes_of
from engine.algebra.types import is_float, is_integer
from engine.records import Column

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: what has more rows is Spark's
ROWS_MAX = 250_000


#: what is made of the rows of the inputs; None where it becomes too much
Way = Callable[[Sequence["pa.Table"]], "pa.Table | None"]


@dataclass(frozen=True)
class ByHand:
    """A tree whose rows are only chosen, among those that these views show."""

    tree: Node
    views: Mapping[Leaf, str]
    #: what is done at each node, by its id
    ways: Mapping[int, Way] = field(compare=False, repr=False)


def by_hand(tree: Node, view_of: Callable[[Leaf], str]) -> ByHand | None:
    """None where anything has to be computed, or read that the driver cannot have."""
    ways: dict[int, Way] = {}
    for node in nodes_of(tree):
        way = _way(node) if all(map(_can_have, node.columns)) and node.columns else None
        if way is None:
            return None
        ways[id(node)] = way
    return ByHand(tree, {scan.leaf: view_of(scan.leaf) for scan in leaves(tree)}, ways)


def rows(asked: ByHand, behind: Callable[[str], pa.Table | None]) -> pa.Table | None:
    """`behind`: the rows of a view. None where the driver lacks any of them, or they become too many."""
    found: dict[int, pa.Table] = {}
    for node in nodes_of(asked.tree):
        if isinstance(node, Scan):
            shown = behind(asked.views[node.leaf])
            inputs = [] if shown is None else [shown]
        else:
            inputs = [found[id(each)] for each in node.inputs]
        made = asked.ways[id(node)](inputs) if inputs else None
        if made is None or made.num_rows > ROWS_MAX:
            return None
        found[id(node)] = made
    return found[id(asked.tree)]


# ------------------------------------------------------------------ what can be done


def _can_have(column: Column) -> bool:
    return is_compared_alike(column.type) or is_float(column.type)


def _way(node: Node) -> Way | None:
    match node:
        case Scan(leaf=Leaf(role=Role.DELTA | Role.STEP)):
            return partial(_renamed, scan=node)
        case Filter(input=below, predicate=predicate):
            condition = plain_condition(predicate, below.types)
            return None if condition is None else partial(_where, condition=condition)
        case Project(input=below, outputs=outputs):
            values = _present(taken(each.scalar, each.type, below.types) for each in outputs)
            return None if values is None else partial(_projected, made=list(zip(node.columns, values, strict=True)))
        case Aggregate():
            return _way_to_group(node)
        case UnionAll(members=members):
            types = [column.type for column in node.columns]
            return _united if all([c.type for c in each.columns] == types for each in members) else None
        case SemiJoin() | Exists():
            pairs, negated = _pairs(node), isinstance(node, Exists) and node.negated
            return partial(_matched, pairs=pairs, negated=negated) if pairs else None
        case InnerJoin():
            order = _order(node)
            return None if order is None else partial(_joined, order=order, names=[c.name for c in node.columns])
        case Repeat(input=below, times=times) if is_integer(below.types[times]):
            return partial(_repeated, times=times)
        case _:
            return None


def _present(values: Iterable[T | None]) -> list[T] | None:
    """All of them, or none."""
    found = list(values)
    there = [each for each in found if each is not None]
    return there if len(there) == len(found) else None


def _way_to_group(node: Aggregate) -> Way | None:
    keys = _present(key.scalar.as_column for key in node.keys)
    if not keys or not all(is_compared_alike(node.input.types[name]) for name in keys):
        return None
    if not all(counts_copies(made.call) for made in node.aggregations):
        return None
    return partial(_grouped, keys=keys, counted=len(node.aggregations), names=[column.name for column in node.columns])


@dataclass(frozen=True)
class _Pair:
    """Columns of two sides that have to be equal."""

    left: str
    right: str
    nulls_too: bool


def _pairs(node: SemiJoin | Exists) -> list[_Pair]:
    """None at all where anything else is asked."""
    left, right = node.inputs
    if isinstance(node, SemiJoin):
        found = [_Pair(scalar.as_column or "", key, nulls_too=True) for scalar, key in node.pairs]
        fits = (left.types.get(each.left) == right.types[each.right] for each in found)
        return found if all(fits) and all(is_compared_alike(right.types[each.right]) for each in found) else []
    types = {**left.types, **right.types}
    return _present(_between(each, left.names, right.names, types) for each in node.conditions) or []


def _between(condition: Scalar, left: frozenset[str], right: frozenset[str], types: Mapping[str, str]) -> _Pair | None:
    match plain_condition(condition, types):
        case Compared(by=Comparison.EQUAL | Comparison.SAME as by, left=one, right=Name() as other):
            if one.name in left and other.name in right:
                return _Pair(one.name, other.name, by is Comparison.SAME)
            if one.name in right and other.name in left:
                return _Pair(other.name, one.name, by is Comparison.SAME)
    return None


@dataclass(frozen=True)
class _Order:
    """Of the members of a join: each but the first meets those before it."""

    #: the place of each, and by what it meets them
    members: tuple[tuple[int, tuple[_Pair, ...]], ...]
    #: what has to hold besides
    rest: tuple[Condition, ...]


def _order(node: InnerJoin) -> _Order | None:
    """None where a member meets nothing before it, or anything is asked that is not plain."""
    asked = dict(enumerate(node.conditions))
    ordered: list[tuple[int, tuple[_Pair, ...]]] = [(0, ())]
    left = dict(enumerate(node.members[1:], start=1))
    while left:
        there = frozenset[str]().union(*(node.members[place].names for place, _ in ordered))
        ways = {place: _by(asked, there, member.names, node.types) for place, member in left.items()}
        place = next((place for place, pairs in ways.items() if pairs), None)
        if place is None:
            return None
        ordered.append((place, tuple(ways[place].values())))
        asked = {at: each for at, each in asked.items() if at not in ways[place]}
        del left[place]
    rest: list[Condition] | None = _present(plain_condition(each, node.types) for each in asked.values())
    return None if rest is None else _Order(tuple(ordered), tuple(rest))


def _by(
    asked: Mapping[int, Scalar], left: frozenset[str], right: frozenset[str], types: Mapping[str, str]
) -> dict[int, _Pair]:
    found = {at: _between(each, left, right, types) for at, each in asked.items()}
    return {at: pair for at, pair in found.items() if pair is not None}


# ------------------------------------------------------------------ doing it


def _renamed(inputs: Sequence[pa.Table], scan: Scan) -> pa.Table:
    return inputs[0].select([own for _, own, _ in scan.fields]).rename_columns([name for name, _, _ in scan.fields])


def _where(inputs: Sequence[pa.Table], condition: Condition) -> pa.Table:
    return inputs[0].filter(_holds(condition, inputs[0]))


def _holds(condition: Condition, rows: pa.Table) -> pa.ChunkedArray:
    """True, false or NULL for each row."""
    import pyarrow.compute as pc

    match condition:
        case Both(left=left, right=right):
            return pc.and_kleene(_holds(left, rows), _holds(right, rows))
        case Either(left=left, right=right):
            return pc.or_kleene(_holds(left, rows), _holds(right, rows))
        case Opposite(of=inner):
            return pc.invert(_holds(inner, rows))
        case IsNull(column=column):
            return pc.is_null(rows.column(column.name))
        case Compared(by=by, left=left, right=right):
            return _compared(by, rows.column(left.name), right, rows)


def _compared(by: Comparison, one: pa.ChunkedArray, right: Name | Constant, rows: pa.Table) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(one.type):
        one = one.cast(pa.int64())
    other = rows.column(right.name).cast(one.type) if isinstance(right, Name) else pa.scalar(right.value, one.type)
    if by is Comparison.SAME:
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        return pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
    return pc.call_function(_FUNCTIONS[by], [one, other])


_FUNCTIONS = {
    Comparison.EQUAL: "equal",
    Comparison.NOT_EQUAL: "not_equal",
    Comparison.LESS: "less",
    Comparison.LESS_OR_EQUAL: "less_equal",
    Comparison.GREATER: "greater",
    Comparison.GREATER_OR_EQUAL: "greater_equal",
}


def _projected(inputs: Sequence[pa.Table], made: Sequence[tuple[Column, Taken]]) -> pa.Table:
    import pyarrow as pa

    return pa.table([_value(inputs[0], *each) for each in made], names=[column.name for column, _ in made])


def _value(rows: pa.Table, column: Column, value: Taken) -> pa.ChunkedArray | pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if value.column is None:
        return pa.repeat(pa.scalar(value.times, _integer(column.type)), rows.num_rows)
    found = rows.column(value.column)
    if is_integer(column.type):
        found = found.cast(_integer(column.type))
    return found if value.times == 1 else pc.negate_checked(found)


def _integer(type_: str) -> pa.DataType:
    import pyarrow as pa

    return {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}[type_]


def _grouped(inputs: Sequence[pa.Table], keys: Sequence[str], counted: int, names: Sequence[str]) -> pa.Table:
    """By position: a name may be that of a key and of a sum."""
    import pyarrow as pa

    rows = inputs[0]
    by = {f"k{at}": rows.column(name) for at, name in enumerate(keys)}
    weights = {f"w{at}": rows.column(WEIGHT) for at in range(counted)}
    grouped = pa.table({**by, **weights}).group_by(list(by)).aggregate([(name, "sum") for name in weights])
    return pa.table([grouped.column(name) for name in (*by, *(f"{name}_sum" for name in weights))], names=list(names))


def _united(inputs: Sequence[pa.Table]) -> pa.Table:
    """What Spark gives one type may be told apart by Arrow: a moment by the name of its zone."""
    import pyarrow as pa

    schema = inputs[0].schema
    return pa.concat_tables([each.rename_columns(schema.names).cast(schema) for each in inputs])


def _matched(inputs: Sequence[pa.Table], pairs: Sequence[_Pair], negated: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    left, right = inputs
    if len(pairs) == 1:
        column = left.column(pairs[0].left)
        among = right.column(pairs[0].right).cast(column.type).combine_chunks()
        found = pc.is_in(column, value_set=among)
        if not pairs[0].nulls_too:
            found = pc.and_(found, pc.is_valid(column))
        return left.filter(pc.invert(found) if negated else found)
    one, other, names = _met(left, right, pairs)
    whole = pa.table([*left.columns, *one.columns], names=[*left.column_names, *names])
    kept = whole.join(other, names, join_type="left anti" if negated else "left semi")
    return kept.select(left.column_names)


def _joined(inputs: Sequence[pa.Table], order: _Order, names: Sequence[str]) -> pa.Table | None:
    import pyarrow as pa

    rows = inputs[0]
    for place, pairs in order.members[1:]:
        member = inputs[place]
        one, other, by = _met(rows, member, pairs)
        if _counted(one, other, by) > ROWS_MAX:
            return None
        left = pa.table([*rows.columns, *one.columns], names=[*rows.column_names, *by])
        right = pa.table([*member.columns, *other.columns], names=[*member.column_names, *by])
        rows = left.join(right, by, join_type="inner").drop_columns(by)
    for condition in order.rest:
        rows = _where([rows], condition)
    return rows.select(names)


def _met(left: pa.Table, right: pa.Table, pairs: Sequence[_Pair]) -> tuple[pa.Table, pa.Table, list[str]]:
    """What two sides meet by, under the same names, of the same types. Arrow lets no NULL meet another: a flag does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    one, other = {}, {}
    for at, pair in enumerate(pairs):
        mine = left.column(pair.left)
        theirs = right.column(pair.right).cast(mine.type)
        if pair.nulls_too and (mine.null_count or theirs.null_count):
            one[f"__null_{at}"], other[f"__null_{at}"] = pc.is_null(mine), pc.is_null(theirs)
            value = next((each for side in (mine, theirs) for each in side.drop_null()[:1]), None)
            if value is None:
                continue
            mine, theirs = pc.fill_null(mine, value), pc.fill_null(theirs, value)
        one[f"__key_{at}"], other[f"__key_{at}"] = mine, theirs
    return pa.table(one), pa.table(other), list(one)


def _counted(one: pa.Table, other: pa.Table, names: list[str]) -> int:
    """So many rows come of it; too many are noticed before they are made."""
    import pyarrow.compute as pc

    if one.num_rows * other.num_rows <= ROWS_MAX:
        return 0
    counts = [side.group_by(names).aggregate([([], "count_all")]) for side in (one, other)]
    met = counts[0].join(counts[1], names, join_type="inner", right_suffix="_other")
    return pc.sum(pc.multiply(met.column("count_all"), met.column("count_all_other"))).as_py() or 0


def _repeated(inputs: Sequence[pa.Table], times: str) -> pa.Table:
    import pyarrow as pa

    counts = inputs[0].column(times).to_pylist()
    rows = inputs[0].drop_columns([times])
    if all(count == 1 for count in counts):
        return rows
    return rows.take(pa.array([at for at, count in enumerate(counts) for _ in range(count or 0)], pa.int64()))
