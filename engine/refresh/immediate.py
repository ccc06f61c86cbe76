"""What IMMEDIATE asks for: DML can be followed at once, by a change, and be taken back where it cannot be followed."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import top_k
from engine.compile.parse import ParsedQuery
from engine.compile.plan import MaintenancePlan
from engine.errors import DependentsExist, InvalidArgument, UnsupportedOperator
from engine.lake import undo
from engine.names import same_name
from engine.records import CdcMode, RefreshMode, StreamTable, View
from engine.refresh.plans import Located, Plans

_INSTEAD = "AUTO and DIFFERENTIAL follow it on a schedule"


def refuse_unfit(
    plan: MaintenancePlan,
    plans: Plans,
    tables: Iterable[StreamTable],
    top_k_limit: int,
    views: tuple[View, ...] | None = None,
) -> None:
    """`views`: as they would be; otherwise as they are."""
    refuse_unfit_query(plans.parsed(plan.query, views), top_k_limit)
    refuse_unfit_sources(map(plans.relations.located, plan.sources), tables)


def refuse_unfit_query(parsed: ParsedQuery, top_k_limit: int) -> None:
    """Those that keep very many first rows look at most of them again at each change."""
    kept = top_k.largest(parsed)
    if kept is not None and kept.count > top_k_limit:
        raise UnsupportedOperator(
            f"refresh_mode is IMMEDIATE, but it keeps the first {kept.count:,} rows",
            detail=f"refresh.immediate_top_k_limit is {top_k_limit:,}",
            position=kept.position,
            hint=f"keep fewer, or raise the limit; {_INSTEAD}",
        )


def refuse_unfit_sources(sources: Iterable[Located], tables: Iterable[StreamTable]) -> None:
    modes = {table.name.casefold(): table.refresh_mode for table in tables}
    for source in sources:
        if source.is_stream_table and modes[source.name.casefold()] is not RefreshMode.IMMEDIATE:
            raise InvalidArgument(
                f"{source.name} is refreshed on a schedule: what stands on it cannot be IMMEDIATE",
                detail="it would be as fresh as that, and no fresher",
                hint=f"make {source.name} IMMEDIATE first, or choose AUTO",
            )
        if source.cdc_mode is CdcMode.POLL:
            raise InvalidArgument(
                f"{source.name} is polled: what stands on it cannot be IMMEDIATE",
                detail="nobody changes it through Trickle, which only looks at it from time to time",
                hint=_INSTEAD,
            )
        if not source.is_stream_table:
            refuse_lasting(source)


def refuse_lasting(source: Located) -> None:
    """What cannot be taken back must not be begun."""
    why = undo.why_not(source.path)
    if why is not None:
        raise InvalidArgument(
            f"DML on {source.name} could not be taken back: what stands on it cannot be IMMEDIATE",
            detail=why,
            hint=_INSTEAD,
        )


def refuse_to_leave(before: StreamTable, after: StreamTable, tables: Iterable[StreamTable]) -> None:
    """What is IMMEDIATE stands on nothing slower."""
    if before.refresh_mode is not RefreshMode.IMMEDIATE or after.refresh_mode is RefreshMode.IMMEDIATE:
        return
    left = [
        table.name
        for table in tables
        if table.refresh_mode is RefreshMode.IMMEDIATE and any(same_name(name, before.name) for name in table.sources)
    ]
    if left:
        raise DependentsExist(
            f"{', '.join(left)}, which {'are' if len(left) > 1 else 'is'} IMMEDIATE, would stand on a schedule",
            detail=f"reads {before.name}",
            hint="alter what stands on it first",
        )
