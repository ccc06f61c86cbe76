"""The first rows of an order: mostly told by those that are stored and those that came and went.

Stored are the first k rows. A row that is not among them comes after the last of them, the *border*. So what is up to
the border is known without looking: what is stored, with what came and without what went; of groups, the rest of what
is stored and the touched ones as they are now. If that is k rows or more, the first k of them are the answer. If not,
nobody knows which rows move up, and the result is computed anew. Fewer rows than k have no border: they were all there
is.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Exists,
    Filter,
    Node,
    Output,
    Project,
    Repeat,
    UnionAll,
    Window,
    Windowed,
    keep,
)
from engine.algebra.scalars import Scalar, all_of, cast, col, eq, gt, le, lit, null, null_safe_eq
from engine.algebra.trees import consolidate, weighted
from engine.compile.differentiate import Rule, delta
from engine.compile.differentiate.aggregate import of_groups, touched_groups
from engine.compile.differentiate.touched import key_name
from engine.compile.exactness import inexact_columns
from engine.compile.keep.by_partition import keep_partitions
from engine.compile.keep.kept import Kept, stored, stored_name

#: of the row that stands for the border, among others; and its place there
IS_BORDER, PLACE = "__is_border", "__place"


def keep_top_k(root: Node) -> Kept | None:
    match root:
        case Project(input=Filter(input=Window(partition=(), functions=(first,)) as window, predicate=predicate)):
            most = _first_rows(first, predicate)
        case _:
            return None
    names = _needed(root, window)
    if any(first.name in output.scalar.columns for output in root.outputs):
        return None  # the place itself is put out: most stored rows change with any
    if most is None or inexact_columns(window.input) & names.keys():
        return None
    shown = _called(root.outputs)
    hidden = tuple(
        Output(f"__trickle_order_{number}", col(name), type_)
        for number, (name, type_) in enumerate(((n, t) for n, t in names.items() if n not in shown), start=1)
    )
    wide = Project(root.input, (*root.outputs, *hidden))
    kept = keep_partitions(wide)
    if kept is None:
        return None
    stored_as = _called(wide.outputs)
    return replace(
        kept,
        rule=Rule("top-k", "the first rows of what is stored and what came, without what went; if they are enough"),
        shortcut=_net_change(wide, window, most, {name: stored_as[name] for name in names}),
        visible=root.columns,
        hidden=(*wide.columns[len(root.columns) :], *kept.hidden),
    )


def _first_rows(function: Windowed, predicate: Scalar) -> int | None:
    """How many rows are kept, where nothing but the first ones in an order are."""
    tree = function.call.tree
    match predicate.tree:
        case exp.LTE(this=exp.Column() as place, expression=exp.Literal() as most) if place.name == function.name:
            is_number = isinstance(tree, exp.Window) and isinstance(tree.this, exp.RowNumber)
            return int(most.name) if is_number and tree.args.get("order") and int(most.name) > 0 else None
        case _:
            return None


def _needed(root: Project, window: Window) -> dict[str, str]:
    """The columns from which a row of the result and its place follow, with their types."""
    read = window.functions[0].call.columns.union(*(output.scalar.columns for output in root.outputs))
    return {column.name: column.type for column in window.input.columns if column.name in read}


def _net_change(wide: Project, window: Window, most: int, stored_as: dict[str, str]) -> Node:
    """The change of the stored rows; one row more, without a weight, where they are not enough to tell it."""
    columns = tuple(column for column in window.input.columns if column.name in stored_as)
    there = stored(wide.columns)
    were = Project(there, tuple(Output(c.name, col(stored_name(stored_as[c.name])), c.type) for c in columns))
    known = _groups_replaced(were, window.input) or _copies_counted(were, window.input)
    border = Filter(_placed(were, window, ()), eq(col(PLACE), lit(most)))
    both = UnionAll((_marked(Project(known, keep(columns)), 0), _marked(Project(border, keep(columns)), 1)))
    placed = _placed(both, window, (IS_BORDER,))
    chosen = Filter(placed, all_of((le(col(PLACE), lit(most)), eq(col(IS_BORDER), lit(0)))))
    now = Project(chosen, wide.outputs)
    was = Project(there, tuple(Output(c.name, col(stored_name(c.name)), c.type) for c in wide.columns))
    too_few = Filter(placed, all_of((le(col(PLACE), lit(most)), eq(col(IS_BORDER), lit(1)))))
    unknown = tuple(Output(c.name, cast(null(), c.type), c.type) for c in wide.columns)
    doubt = Project(too_few, (*unknown, Output(WEIGHT, cast(null(), "bigint"), "bigint")))
    return UnionAll((consolidate(UnionAll((weighted(now, 1), weighted(was, -1)))), doubt))


def _copies_counted(were: Node, rows: Node) -> Node:
    """What was stored, with what came and without what went."""
    changed = Project(delta(rows), (*keep(were.columns), Output(WEIGHT, col(WEIGHT), "int")))
    counted = consolidate(UnionAll((weighted(were, 1), changed)))
    copies = Project(counted, (*keep(were.columns), Output(WEIGHT, cast(col(WEIGHT), "bigint"), "bigint")))
    return Repeat(Filter(copies, gt(col(WEIGHT), lit(0))), WEIGHT)


def _groups_replaced(were: Node, rows: Node) -> Node | None:
    """The same of groups that can be told by their keys: those that the change touches, as they are now, and the rest
    of what was stored. What they were needs not be computed again.
    """
    found = _groups_below(rows)
    if found is None:
        return None
    aggregate, keys = found
    are_there = aggregate.keys and all(keys.get(key.name) in were.names for key in aggregate.keys)
    if not are_there:
        return None
    touched, pairs = touched_groups(aggregate)
    now = _over(rows, of_groups(aggregate, aggregate.input, touched, pairs))
    same = tuple(null_safe_eq(col(keys[key.name]), col(key_name(key.name))) for key in aggregate.keys)
    return UnionAll((Exists(were, touched, same, negated=True), Project(now, keep(were.columns))))


def _groups_below(node: Node) -> tuple[Aggregate, dict[str, str]] | None:
    """Groups of which each row is one, some left out perhaps; and what their keys are called now."""
    match node:
        case Aggregate():
            return node, {key.name: key.name for key in node.keys}
        case Filter():
            return _groups_below(node.input)
        case Project() if found := _groups_below(node.input):
            aggregate, keys = found
            called = _called(node.outputs)
            return aggregate, {key: called[name] for key, name in keys.items() if name in called}
        case _:
            return None


def _called(outputs: tuple[Output, ...]) -> dict[str | None, str]:
    """What columns below are called now; by the first name where there are several."""
    return {output.scalar.as_column: output.name for output in reversed(outputs)}


def _over(node: Node, groups: Node) -> Node:
    """The same of other groups."""
    return groups if isinstance(node, Aggregate) else node.with_inputs((_over(node.inputs[0], groups),))


def _marked(rows: Node, is_border: int) -> Node:
    return Project(rows, (*keep(rows.columns), Output(IS_BORDER, lit(is_border), "int")))


def _placed(rows: Node, window: Window, after: tuple[str, ...]) -> Window:
    """With the place that the query's order gives them; rows that are equal go by the columns `after`."""
    call = window.functions[0].call.tree.copy()
    for name in after:
        call.args["order"].append("expressions", exp.Ordered(this=col(name).tree))
    return Window(rows, (), (Windowed(PLACE, Scalar(call), "int"),))
