"""Differential or full, and why: one decision per refresh, in the order of what excludes the most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.catalog.records import Progress
from engine.compile.plan import MaintenancePlan, replaced_views
from engine.errors import NegativeMultiplicity
from engine.records import Outcome, Reason, ReasonCode, RefreshMode, StreamTable
from engine.refresh.observe import SourceMove, Target

#: so few changed rows are never worth counting the source for
ALWAYS_DIFFERENTIAL = 10_000


@dataclass(frozen=True)
class Choice:
    outcome: Outcome
    reason: Reason

    @property
    def full(self) -> bool:
        return self.outcome in (Outcome.FULL, Outcome.REINITIALIZE)


def changes_by_itself(table: StreamTable) -> bool:
    """Does its answer change although nothing was written?"""
    return table.full_reason is not None and table.full_reason.code in (ReasonCode.VOLATILE, ReasonCode.STABLE)


def is_random(table: StreamTable) -> bool:
    """Is there another answer each time it is asked for, at the same moment too?"""
    return table.full_reason is not None and table.full_reason.code is ReasonCode.VOLATILE


def is_contradicted(progress: Progress) -> bool:
    """Did the last refresh find rows that contradict it, or leave such? They are wrong although nothing came."""
    return progress.error_code == NegativeMultiplicity.__name__


def before_changes(table: StreamTable, target: Target, progress: Progress, *, asked_full: bool) -> Choice | None:
    """What is decided without looking at what the sources did; None when that decides."""
    if target.frontier is None and target.sequence:
        text = "its log no longer tells what its rows stand for"
        return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.HISTORY_LOST, text))
    if target.frontier is None:
        return Choice(Outcome.FULL, Reason(ReasonCode.NOT_POPULATED, "it was never populated"))
    if target.tampered is not None and asked_full:
        return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.TAMPERED, target.tampered))
    if is_contradicted(progress):
        text = f"the last refresh found rows that contradict it: {progress.error}"
        return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.NEGATIVE_MULTIPLICITY, text))
    if asked_full:
        return Choice(Outcome.FULL, Reason(ReasonCode.REQUESTED_FULL, "asked for by hand"))
    if target.fingerprint != table.fingerprint:
        text = "its definition no longer means what was stored"
        return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.FINGERPRINT_CHANGED, text))
    return None


def meaning_changed(table: StreamTable, plan: MaintenancePlan) -> Choice:
    """The same text means something else by now."""
    views = replaced_views(table.fingerprint, plan.views)
    if views:
        named = f"the view{'s' if len(views) > 1 else ''} {', '.join(views)}"
        text = f"its query means something else by now: {named} had another text"
    else:
        text = "its query means something else by now: a source has another schema, or a function another body"
    return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.FINGERPRINT_CHANGED, text))


def exchanged(moves: tuple[SourceMove, ...], plan: MaintenancePlan) -> Choice | None:
    """Same names and types, but other columns: with column mapping, that needs no change of rows."""
    for move in moves:
        other = move.summary.exchanged if move.summary is not None else frozenset()
        used = plan.used_columns.get(move.name, ())
        found = next((column.name for column in used if column.name.lower() in other), None)
        if found is not None:
            text = f"the column {found} of {move.name} is another one by now, under the same name"
            return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.FINGERPRINT_CHANGED, text))
    return None


def after_changes(
    table: StreamTable,
    plan: MaintenancePlan,
    changes: tuple[SourceMove, ...],
    *,
    rows_of: Callable[[str], int | None],
    max_change_ratio: float,
) -> Choice:
    """What is decided once it is known that something changed, if only the time."""
    if changes_by_itself(table) and table.full_reason is not None:
        return Choice(Outcome.FULL, table.full_reason)
    if table.refresh_mode is RefreshMode.FULL:
        return Choice(Outcome.FULL, Reason(ReasonCode.REQUESTED_FULL, "refresh_mode is FULL"))
    if plan.kept is None or table.full_reason is not None:
        reason = table.full_reason or plan.full_reason
        return Choice(Outcome.FULL, reason or Reason(ReasonCode.UNSUPPORTED, "it can only be recomputed"))
    if table.refresh_mode is RefreshMode.AUTO:
        for change in changes:
            costly = _costly(change, rows_of, max_change_ratio)
            if costly is not None:
                return Choice(Outcome.FULL, costly)
    return Choice(Outcome.DIFFERENTIAL, Reason(ReasonCode.DIFFERENTIAL, _changed_in_words(changes)))


def _costly(change: SourceMove, rows_of: Callable[[str], int | None], max_change_ratio: float) -> Reason | None:
    """A change so large that computing everything anew is cheaper."""
    if change.overwritten:
        return Reason(ReasonCode.SOURCE_OVERWRITTEN, f"{change.name} was overwritten")
    changed = change.rows_estimate
    if changed < ALWAYS_DIFFERENTIAL:
        return None
    rows = rows_of(change.path)
    if rows and changed > rows * max_change_ratio:
        share = f"{100 * changed / rows:.0f} %"
        text = f"{changed:,} changed rows of {change.name} are {share} of it, limit {100 * max_change_ratio:.0f} %"
        return Reason(ReasonCode.COST, text)
    return None


def _changed_in_words(changes: tuple[SourceMove, ...]) -> str:
    moved = [each for each in changes if each.was is not None and each.was.version != each.chosen.version]
    return ", ".join(f"{each.name} {each.was.version}→{each.chosen.version}" for each in moved if each.was)
