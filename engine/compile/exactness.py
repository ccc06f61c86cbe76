"""Which columns may come out differently, in their last digits, when the same rows are computed again.

Floating-point numbers add up to something else in another order, and nobody knows the order. Such a column can be
stored, replaced and passed on. It cannot decide anything: a condition, a key or an order that hangs on a last digit
would make rows come and go that did not change.
"""

from __future__ import annotations

from functools import singledispatch

from sqlglot import exp

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    UnionAll,
    Window,
)
from engine.algebra.scalars import Scalar
from engine.algebra.trees import nodes_of
from engine.algebra.types import has_float
from engine.compile.functions import AGGREGATES, Kind, Order, kind, name_of
from engine.compile.positions import fragment, position
from engine.errors import UnsupportedOperator

Names = frozenset[str]

#: computed as a quotient of exact sums, where the sum is exact
_AVERAGES = frozenset(("avg", "mean", "try_avg"))


def inexact_columns(node: Node) -> Names:
    known: Names | None = node.__dict__.get("_inexact")
    if known is None:
        known = node.__dict__["_inexact"] = _inexact(node)
    return known


def refuse_inexact_decisions(root: Node, text: str) -> None:
    """Raises where a floating-point aggregate decides which rows there are. `text` is what the tree was made of."""
    for node in nodes_of(root):
        inexact = frozenset().union(*(inexact_columns(each) for each in node.inputs))
        if inexact:
            for what, scalar in _decisions(node):
                if scalar.columns & inexact:
                    written = _written(scalar, node)
                    raise UnsupportedOperator(
                        f"{what} on a floating-point aggregate cannot be maintained differentially",
                        position=position(written.tree, text),
                        fragment=fragment(written.tree, text),
                        detail=f"{scalar}: summed in another order it differs in its last digits",
                        hint="cast the argument of the aggregate to DECIMAL, or use refresh_mode = 'FULL'",
                    )


def _written(scalar: Scalar, node: Node) -> Scalar:
    """As the user wrote it: what has become a plain column is spelled out in a projection further down."""
    name = scalar.as_column
    while name is not None and "start" not in scalar.tree.meta:
        below = next((each for each in node.inputs if name in each.names), None)
        match below:
            case Project():
                scalar = next(each.scalar for each in below.outputs if each.name == name)
            case Aggregate():
                scalar = next((each.call for each in below.aggregations if each.name == name), scalar)
            case None:
                return scalar
        node, name = below, scalar.as_column
    return scalar


def is_order_sensitive(call: Scalar, types: dict[str, str], inexact: Names) -> bool:
    """Does an aggregate function depend on the order in which numbers are added up?"""
    return any(_adds_up_floats(part, types, inexact) for part in call.tree.walk())


def _adds_up_floats(part: exp.Expr, types: dict[str, str], inexact: Names) -> bool:
    name = name_of(part)
    function = AGGREGATES.get(name)
    if function is None:
        # of somebody's own aggregate nobody knows how it adds up
        return isinstance(part, exp.Anonymous) and kind(name) is Kind.UNKNOWN
    match function.order:
        case Order.DOUBLES if name not in _AVERAGES:
            return True
        case Order.DOUBLES | Order.FLOATS:
            columns = [column.name for column in part.find_all(exp.Column)]
            return any(each in inexact or has_float(types[each]) or types[each] == "string" for each in columns)
        case _:
            return False


@singledispatch
def _inexact(node: Node) -> Names:
    """Most operators pass on what they are given."""
    return frozenset().union(*(inexact_columns(each) for each in node.inputs)) & node.names


@_inexact.register
def _(node: Project) -> Names:
    below = inexact_columns(node.input)
    return frozenset(output.name for output in node.outputs if output.scalar.columns & below)


@_inexact.register
def _(node: UnionAll) -> Names:
    places = {
        index
        for member in node.members
        for index, column in enumerate(member.columns)
        if column.name in inexact_columns(member)
    }
    return frozenset(node.columns[index].name for index in places)


@_inexact.register
def _(node: Aggregate) -> Names:
    below = inexact_columns(node.input)
    made = (each for each in node.aggregations if _is_inexact(each.call, node.input, below))
    return frozenset(each.name for each in made)


@_inexact.register
def _(node: Window) -> Names:
    below = inexact_columns(node.input)
    made = (each for each in node.functions if _is_inexact(each.call, node.input, below))
    return below | frozenset(each.name for each in made)


@_inexact.register
def _(node: Explode) -> Names:
    below = inexact_columns(node.input)
    return below | (frozenset(each.name for each in node.fields) if node.call.columns & below else frozenset())


def _is_inexact(call: Scalar, source: Node, below: Names) -> bool:
    if is_order_sensitive(call, source.types, below):
        return True
    counts = isinstance(call.tree, exp.Count) and not call.tree.find(exp.Distinct)
    # how many there are is known, whatever they are
    return bool(call.columns & below) and not counts


@singledispatch
def _decisions(node: Node) -> tuple[tuple[str, Scalar], ...]:
    """What decides which rows there are, with a word for it."""
    return ()


@_decisions.register
def _(node: Filter) -> tuple[tuple[str, Scalar], ...]:
    return (("a condition", node.predicate),)


@_decisions.register(InnerJoin)
@_decisions.register(OuterJoin)
@_decisions.register(Exists)
def _(node: InnerJoin | OuterJoin | Exists) -> tuple[tuple[str, Scalar], ...]:
    return tuple(("a join", condition) for condition in node.conditions)


@_decisions.register
def _(node: Aggregate) -> tuple[tuple[str, Scalar], ...]:
    word = "GROUP BY" if node.aggregations else "DISTINCT"
    return tuple((word, key.scalar) for key in node.keys)


@_decisions.register
def _(node: Window) -> tuple[tuple[str, Scalar], ...]:
    found: list[tuple[str, Scalar]] = []
    for function in node.functions:
        tree = function.call.tree
        found += [("PARTITION BY", Scalar(each)) for each in tree.args.get("partition_by") or ()]
        order = tree.args.get("order")
        found += [("ORDER BY", Scalar(each.this)) for each in order.expressions] if order else []
    return tuple(found)
