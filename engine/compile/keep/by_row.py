"""Results without a proven key: each stored row has an id of its own, and equal rows are copies.

The first statement nets the change by value. Of its result, what came is inserted; for what went, as many stored
copies as needed are found by comparing all columns, NULL equal to NULL, and deleted by their id. Fewer copies than
needed is a contradiction. Two statements, because the net change is used three times and is worth computing once.
"""

from __future__ import annotations

from engine.algebra.nodes import (
    WEIGHT,
    Filter,
    InnerJoin,
    LeftJoin,
    Node,
    Numbered,
    Output,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    consolidate,
    keep,
)
from engine.algebra.scalars import any_of, cast, col, gt, is_null, le, lit, lt, neg, null, null_safe_eq
from engine.compile.differentiate import Rule, delta
from engine.compile.keep.kept import NET, OP, POSITION, SEQUENCE, Kept, op, stored, stored_name
from engine.errors import UnsupportedOperator
from engine.records import Column

ROW_ID = (Column(SEQUENCE, "bigint"), Column(POSITION, "bigint"))
NEEDED, COPY, COPIES = "__needed", "__copy", "__copies"


def keep_rows(root: Node) -> Kept:
    for column in root.columns:
        if column.type.startswith("map<") or "variant" in column.type:
            raise UnsupportedOperator(
                f"{column.name} is a {column.type.split('<')[0]}, whose values cannot be compared",
                hint="use map_entries(…), or refresh_mode = 'FULL'",
            )
    change = delta(root)
    net = Scan(NET, tuple((c.name, c.name, c.type) for c in (*root.columns, Column(WEIGHT, "bigint"))))
    return Kept(
        rule=Rule("by row", "no key is proven, so every stored row carries an id of its own"),
        full=root,
        first=consolidate(change),
        change=UnionAll((_inserts(net, root), _deletes(net, root))),
        append=_as_inserts(change, root) if _only_grows(root) else None,
        identity=(SEQUENCE, POSITION),
        visible=root.columns,
        hidden=ROW_ID,
    )


def _only_grows(root: Node) -> bool:
    """Do more source rows only ever mean more result rows? Not where rows are counted."""
    grows = isinstance(root, Scan | Filter | Project | InnerJoin | UnionAll)
    return grows and all(map(_only_grows, root.inputs))


def _inserts(net: Node, root: Node) -> Node:
    came = Filter(net, gt(col(WEIGHT), lit(0)))
    return _as_inserts(Repeat(came, WEIGHT), root)


def _as_inserts(rows: Node, root: Node) -> Node:
    """New rows. Their ids are assigned by the commit."""
    unset = tuple(Output(column.name, cast(null(), "bigint"), "bigint") for column in ROW_ID)
    return Project(rows, (Output(OP, lit("I"), "string"), *keep(root.columns), *unset))


def _deletes(net: Node, root: Node) -> Node:
    gone = Project(
        Filter(net, lt(col(WEIGHT), lit(0))),
        (*keep(root.columns), Output(NEEDED, neg(col(WEIGHT)), "bigint")),
    )
    candidates = SemiJoin(
        stored(root.columns + ROW_ID),
        gone,
        tuple((col(stored_name(column.name)), column.name) for column in root.columns),
    )
    numbered = Numbered(
        candidates,
        partition=tuple(stored_name(column.name) for column in root.columns),
        order=(stored_name(SEQUENCE), stored_name(POSITION)),
        number=COPY,
        count=COPIES,
    )
    same_row = [null_safe_eq(col(column.name), col(stored_name(column.name))) for column in root.columns]
    matched = LeftJoin(gone, numbered, (*same_row, le(col(COPY), col(NEEDED))))
    contradiction = any_of((is_null(col(COPIES)), lt(col(COPIES), col(NEEDED))))
    ids = tuple(Output(column.name, col(stored_name(column.name)), "bigint") for column in ROW_ID)
    return Project(matched, (op((contradiction, "X"), otherwise="D"), *keep(root.columns), *ids))
