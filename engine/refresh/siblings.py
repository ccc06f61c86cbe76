"""Stream tables that stand at the same version of a source, and so have to read the same change of it."""

from __future__ import annotations

from engine.names import same_name
from engine.records import RefreshMode, StreamTable
from engine.refresh.observe import SourceMove
from engine.refresh.plans import Plans


def wanted_by_siblings(plans: Plans, table: StreamTable, move: SourceMove) -> tuple[str, ...] | None:
    """The columns that they will ask for, as far as that is known; None where nobody will ask."""
    others = {name for name in plans.catalog.dependents(move.name) if not same_name(name, table.name)}
    if not others:
        return None
    siblings = [each for each in plans.catalog.stream_tables() if each.name in others and _waits(each, plans, move)]
    if not siblings:
        return None
    known = (plans.at_hand(each) for each in siblings)
    used = (plan.used_columns.get(move.name, ()) for plan in known if plan is not None and plan.kept is not None)
    return tuple(dict.fromkeys(column.name for columns in used for column in columns))


def _waits(other: StreamTable, plans: Plans, move: SourceMove) -> bool:
    if other.refresh_mode is RefreshMode.FULL or other.full_reason is not None:
        return False
    progress = plans.catalog.get_progress(other.id)
    if progress.paused or progress.suspended_at is not None:
        return False
    return (progress.frontier or {}).get(move.name) == move.was
