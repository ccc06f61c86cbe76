"""Results without a proven key: each stored row has an id of its own, and equal rows are copies.

The first statement nets the change by value. Of its result, what came is inserted; for what went, as many stored
copies as needed are found by comparing all columns, NULL equal to NULL, and deleted by their id. Fewer copies than
needed is a contradiction. Two statements, because the net change is used three times and is worth computing once.
"""

from __future__ import annotations

from sqlglot import exp

from engine.algebra.aggregates import count_rows
from engine.algebra.comparable import comparable
from engine.algebra.nodes import (
    WEIGHT,
    Filter,
    Node,
    OuterJoin,
    Output,
    Project,
    Recursion,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Window,
    Windowed,
    keep,
)
from engine.algebra.scalars import Scalar, any_of, cast, col, gt, is_null, le, lit, lt, neg, null, null_safe_eq
from engine.algebra.trees import consolidate
from engine.compile.differentiate import Rule, delta, only_grows
from engine.compile.differentiate.recursive import found_more
from engine.compile.keep.kept import NET, OP, POSITION, SEQUENCE, STORED, Kept, op, stored, stored_name
from engine.errors import UnsupportedOperator
from engine.records import Column

ROW_ID = (Column(SEQUENCE, "bigint"), Column(POSITION, "bigint"))
NEEDED, COPY, COPIES, COMPARED = "__needed", "__copy", "__copies", "__compared"


def keep_rows(root: Node) -> Kept:
    change = delta(root)
    grown = _grown(root, change)
    return Kept(
        rule=Rule("by row", "no key is proven, so every stored row carries an id of its own"),
        full=root,
        first=consolidate(change),
        change=change_of_rows(root),
        append=_as_inserts(grown, root) if grown is not None else None,
        identity=(SEQUENCE, POSITION),
        visible=root.columns,
        hidden=ROW_ID,
    )


def change_of_rows(root: Node) -> Node:
    """The second statement: rows to insert and rows to delete, from the net change of all columns of `root`."""
    net = Scan(NET, tuple((c.name, c.name, c.type) for c in (*root.columns, Column(WEIGHT, "bigint"))))
    return UnionAll((_inserts(net, root), _deletes(net, root)))


def _grown(root: Node, change: Node) -> Node | None:
    """The rows that come when the sources only grow, where none goes then."""
    match root:
        case Project(input=Recursion() as recursion, outputs=outputs):
            stored_under = {output.scalar.as_column: output.name for output in reversed(outputs)}
            names = {name: stored_under[name] for name in recursion.names if name in stored_under}
            more = found_more(recursion, STORED, names) if len(names) == len(recursion.names) else None
            return Project(more, outputs) if more is not None else None
        case _:
            return change if only_grows(root) else None


def _inserts(net: Node, root: Node) -> Node:
    came = Filter(net, gt(col(WEIGHT), lit(0)))
    return _as_inserts(Repeat(came, WEIGHT), root)


def _as_inserts(rows: Node, root: Node) -> Node:
    """New rows. Their ids are assigned by the commit."""
    unset = tuple(Output(column.name, cast(null(), "bigint"), "bigint") for column in ROW_ID)
    return Project(rows, (Output(OP, lit("I"), "string"), *keep(root.columns), *unset))


def _deletes(net: Node, root: Node) -> Node:
    compared, was_compared = _compared(root.columns), _compared(stored(root.columns).columns)
    gone = Project(
        Filter(net, lt(col(WEIGHT), lit(0))),
        (*keep(root.columns), *_made(compared, root.columns), Output(NEEDED, neg(col(WEIGHT)), "bigint")),
    )
    was: Node = stored(root.columns + ROW_ID)
    if made := _made(was_compared, was.columns):
        was = Project(was, (*keep(was.columns), *made))
    names = [(then.name, now.name) for then, now in zip(was_compared, compared, strict=True)]
    candidates = SemiJoin(was, gone, tuple((col(then), now) for then, now in names))
    numbered = _numbered(candidates, tuple(then for then, _ in names))
    same_row = [null_safe_eq(col(now), col(then)) for then, now in names]
    matched = OuterJoin(gone, numbered, (*same_row, le(col(COPY), col(NEEDED))))
    contradiction = any_of((is_null(col(COPIES)), lt(col(COPIES), col(NEEDED))))
    ids = tuple(Output(column.name, col(stored_name(column.name)), "bigint") for column in ROW_ID)
    return Project(matched, (op((contradiction, "X"), otherwise="D"), *keep(root.columns), *ids))


def _compared(columns: tuple[Column, ...]) -> tuple[Output, ...]:
    """What stands for each column where rows are compared: mostly the column itself."""
    found = []
    for column in columns:
        stands_for_it = comparable(col(column.name), column.type)
        if stands_for_it is None:
            raise UnsupportedOperator(
                f"{column.name} is a {column.type}, whose values cannot be compared",
                hint="use to_json(…), or refresh_mode = 'FULL'",
            )
        value, type_ = stands_for_it
        found.append(Output(value.as_column or f"{COMPARED}_{column.name}", value, type_))
    return tuple(found)


def _made(compared: tuple[Output, ...], columns: tuple[Column, ...]) -> tuple[Output, ...]:
    there = {column.name for column in columns}
    return tuple(each for each in compared if each.name not in there)


def _numbered(candidates: Node, copies_agree_in: tuple[str, ...]) -> Node:
    """The copies of each row are numbered from 1, in the order of their ids, and counted."""
    partition = [col(name).tree for name in copies_agree_in]
    order = exp.Order(expressions=[exp.Ordered(this=col(stored_name(name)).tree) for name in (SEQUENCE, POSITION)])
    number = exp.Window(this=exp.RowNumber(), partition_by=partition, order=order)
    count = exp.Window(this=count_rows().tree, partition_by=[each.copy() for each in partition])
    functions = (Windowed(COPY, Scalar(number), "int"), Windowed(COPIES, Scalar(count), "bigint"))
    return Window(candidates, copies_agree_in, functions)
