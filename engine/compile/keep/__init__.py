"""How a result is kept: the columns of the stored table, what identifies a row, and the change set of a refresh.

A *change set* has the stored table's columns and `__trickle_op`:
'I' insert this row, 'U' replace the row with this identity, 'D' delete it, 'X' the change contradicts what is stored.
The first way that fits is taken, the cheapest first; the last fits everything.
"""

from __future__ import annotations

from engine.algebra.nodes import Node
from engine.compile.keep.by_partition import keep_partitions
from engine.compile.keep.by_row import keep_rows
from engine.compile.keep.group_recompute import keep_recomputed_groups
from engine.compile.keep.group_sums import keep_group_sums
from engine.compile.keep.kept import NET, OP, POSITION, SEQUENCE, Kept
from engine.compile.keep.top_k import keep_top_k
from engine.errors import InternalError

WAYS = (keep_group_sums, keep_recomputed_groups, keep_top_k, keep_partitions, keep_rows)


def choose(root: Node) -> Kept:
    for way in WAYS:
        kept = way(root)
        if kept is not None:
            return kept
    raise InternalError("no way to keep the result")


__all__ = ["NET", "OP", "POSITION", "SEQUENCE", "WAYS", "Kept", "choose"]
