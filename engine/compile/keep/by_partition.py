"""Results whose stored rows must not be guessed: windows, and floating-point aggregates under anything else.

Some exact columns cut the result into parts, such that a change touches few of them. The touched parts are computed
once more from the sources as they are, and compared with what is *stored*, row by row as multisets: what differs is
the change. What was stored is never computed again, so it does not matter that it might come out differently.
"""

from __future__ import annotations

from engine.algebra.nodes import Node, Output, Project, SemiJoin, UnionAll
from engine.algebra.scalars import col
from engine.algebra.trees import consolidate, weighted
from engine.compile.differentiate import Rule, delta
from engine.compile.differentiate.touched import touched_values
from engine.compile.exactness import inexact_columns
from engine.compile.keep.by_row import ROW_ID, change_of_rows
from engine.compile.keep.kept import POSITION, SEQUENCE, Kept, stored, stored_name
from engine.compile.keep.partitions import has_parts, with_parts


def keep_partitions(root: Node) -> Kept | None:
    if not isinstance(root, Project) or not (inexact_columns(root) or has_parts(root)):
        return None
    wide, parts = with_parts(root)
    touched, pairs = touched_values(delta(wide), {name: col(name) for name in parts}, wide.types)
    now = SemiJoin(wide, touched, pairs)
    there = stored(wide.columns)
    was = SemiJoin(there, touched, tuple((col(stored_name(name)), f"__k_{name}") for name in parts))
    as_now = Project(was, tuple(Output(c.name, col(stored_name(c.name)), c.type) for c in wide.columns))
    why = f"the parts of equal {', '.join(parts)}" if parts else "everything"
    return Kept(
        rule=Rule("by part, compared with what is stored", f"a change recomputes {why} that it touches"),
        full=wide,
        first=consolidate(UnionAll((weighted(now, 1), weighted(as_now, -1)))),
        change=change_of_rows(wide),
        append=None,
        identity=(SEQUENCE, POSITION),
        visible=root.columns,
        hidden=wide.columns[len(root.columns) :] + ROW_ID,
    )
