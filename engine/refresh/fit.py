"""Options of a stream table that must fit its query, and each other."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from engine.compile.bind import Change, bind
from engine.compile.plan import MaintenancePlan
from engine.errors import InvalidArgument
from engine.records import Column, RefreshMode

#: whose values both writers put into the names of folders, and read back as they were
PARTITION_TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "date", "string")


def refuse_together(mode: RefreshMode, *, append_only: bool) -> None:
    """What needs no look at the query."""
    if append_only and mode is RefreshMode.FULL:
        raise InvalidArgument(
            "append_only and refresh_mode = 'FULL' contradict each other",
            detail="append_only says that new rows are added to those that are there; FULL replaces all of them",
            hint="leave one of them out",
        )


def refuse_append_only(plan: MaintenancePlan) -> None:
    """It is a promise that the result only grows where its sources do; of most operators that is not true."""
    if plan.kept is None:
        reason = f": {plan.full_reason.text}" if plan.full_reason is not None else ""
        raise InvalidArgument(
            "it cannot be append_only, because its query can only be recomputed",
            detail=f"each refresh replaces all rows{reason}",
            hint="leave append_only out",
        )
    if not bind(plan.kept, dict.fromkeys(plan.sources, Change.APPEND)).appends:
        raise InvalidArgument(
            "it cannot be append_only, because new rows of its sources may change or remove rows that it has",
            detail=f"its rows are kept {plan.kept.rule.name}: {plan.kept.rule.why}",
            hint="leave append_only out; filters, projections, inner joins and UNION ALL only grow with their sources",
        )


def partition_columns(asked: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    """As the query spells them."""
    known = {column.name.casefold(): column for column in columns}
    chosen: list[str] = []
    for name in asked:
        column = known.get(name.casefold())
        if column is None:
            near = difflib.get_close_matches(name.casefold(), known, n=1)
            raise InvalidArgument(
                f"it cannot be partitioned by {name}, which its query does not put out",
                detail=f"its columns are {', '.join(each.name for each in columns)}",
                hint=f"did you mean {known[near[0]].name}?" if near else "name columns of the result",
            )
        if column.type not in PARTITION_TYPES:
            raise InvalidArgument(
                f"it cannot be partitioned by {column.name}, which is a {column.type}",
                detail=f"columns of these types can be: {', '.join(PARTITION_TYPES)}",
                hint=f"add CAST({column.name} AS DATE) or another coarser column to the query, and partition by that",
            )
        if column.name in chosen:
            raise InvalidArgument(f"it would be partitioned by {column.name} twice", hint="name each column once")
        chosen.append(column.name)
    if chosen and len(chosen) == len(columns):
        raise InvalidArgument(
            "it cannot be partitioned by all of its columns",
            detail="Delta wants a column that is in the files",
            hint="leave one of them out",
        )
    return tuple(chosen)
