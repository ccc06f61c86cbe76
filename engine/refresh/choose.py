"""Differential or full, and why: one decision per refresh, in the order of what excludes the most.

What nothing excludes is decided by price (costs.py), in AUTO alone: DIFFERENTIAL is the owner's word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.alternatives import Alternative, Way
from engine.catalog.records import Progress
from engine.compile.plan import MaintenancePlan, replaced_views
from engine.durations import format_took
from engine.errors import FailsOnValue, NegativeMultiplicity
from engine.records import Outcome, Reason, ReasonCode, RefreshMode, StreamTable
from engine.refresh.costs import Costs, cheaper, estimate_differential, estimate_full
from engine.refresh.observe import SourceMove, Target
from engine.refresh.work import Pending, differential_work, full_work

#: so few changed rows are refreshed differentially whatever share of their source they are, unless its owner says
#: otherwise
ALWAYS_DIFFERENTIAL = 10_000


#: reasons for which nothing is left but to recompute, this time
_NO_OTHER_WAY = (ReasonCode.NO_CHANGE_FEED, ReasonCode.FAILS_ON_CHANGE)


@dataclass(frozen=True)
class Choice:
    outcome: Outcome
    reason: Reason
    #: did nothing but the estimates decide?
    by_price: bool = False
    #: what was weighed, where estimates were made
    alternatives: tuple[Alternative, ...] = ()

    @property
    def estimated_ms(self) -> float | None:
        return next((each.ms for each in self.alternatives if each.chosen), None)

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


def views_replaced(table: StreamTable, views: tuple[tuple[str, str], ...]) -> Choice | None:
    """The views that it reads, by names and texts, are not those that its rows were made with."""
    others = replaced_views(table.fingerprint, views)
    if not others:
        return None
    named = f"the view{'s' if len(others) > 1 else ''} {', '.join(others)}"
    text = f"its query means something else by now: {named} had another text"
    return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.FINGERPRINT_CHANGED, text))


def meaning_changed(table: StreamTable, plan: MaintenancePlan) -> Choice:
    """The same text means something else by now."""
    text = "its query means something else by now: a source has another schema, or a function another body"
    by_itself = Choice(Outcome.REINITIALIZE, Reason(ReasonCode.FINGERPRINT_CHANGED, text))
    return views_replaced(table, plan.views) or by_itself


def after_changes(
    table: StreamTable,
    changes: tuple[Pending, ...],
    costs: Costs,
    *,
    full_reason: Reason | None,
    max_change_ratio: float,
) -> Choice:
    """What is decided once it is known that something changed, if only the time.

    `full_reason`: why it can only be recomputed. `max_change_ratio`: of the settings.
    """
    if changes_by_itself(table) and table.full_reason is not None:
        return Choice(Outcome.FULL, table.full_reason)
    if full_reason is not None:
        return Choice(Outcome.FULL, full_reason)
    text = _changed_in_words(tuple(each.move for each in changes))
    if table.refresh_mode.is_strict:
        return Choice(Outcome.DIFFERENTIAL, Reason(ReasonCode.DIFFERENTIAL, text))
    for change in changes:
        too_much = _too_much(change, table, max_change_ratio)
        if too_much is not None:
            return Choice(Outcome.FULL, too_much)
    return _by_price(costs, changes, text)


def why_full_as_stored(table: StreamTable) -> Reason | None:
    """Why it is only recomputed, by its definition; None where it need not be."""
    if table.refresh_mode is RefreshMode.FULL:
        return Reason(ReasonCode.REQUESTED_FULL, "refresh_mode is FULL")
    return table.full_reason


def why_full(table: StreamTable, plan: MaintenancePlan) -> Reason | None:
    """The same by what its query became."""
    stored = why_full_as_stored(table)
    if stored is not None or plan.kept is not None:
        return stored
    return plan.full_reason or Reason(ReasonCode.UNSUPPORTED, "it can only be recomputed")


def _too_much(change: Pending, table: StreamTable, usual_ratio: float) -> Reason | None:
    """A larger share of a source than its owner lets be applied. What the settings say does not touch small changes."""
    ratio, share = table.differential_max_change_ratio, change.certain_share
    if ratio is None:
        if change.at_least < ALWAYS_DIFFERENTIAL:
            return None
        ratio = usual_ratio
    if share is None or share <= ratio:
        return None
    text = f"{change.at_least:,} changed rows of {change.move.name} are {100 * share:.0f} % of it"
    return Reason(ReasonCode.CHANGE_RATIO, f"{text}, limit {100 * ratio:.0f} %")


def _by_price(costs: Costs, changes: tuple[Pending, ...], text: str) -> Choice:
    work = differential_work(costs, changes)
    differential, full = estimate_differential(costs, work), estimate_full(costs, full_work(costs, changes))
    verdict = cheaper(costs, work, differential.ms, full.ms)
    words = f"differential ~{format_took(differential.ms)}, full ~{format_took(full.ms)}: {verdict.why}"
    if verdict.full:
        return Choice(Outcome.FULL, Reason(ReasonCode.COST, f"{_rows_in_words(changes)}: {words}"), True)
    return Choice(Outcome.DIFFERENTIAL, Reason(ReasonCode.DIFFERENTIAL, f"{text}; {words}"), True)


def after_reading(
    choice: Choice, table: StreamTable, changes: tuple[Pending, ...], costs: Costs, *, max_change_ratio: float
) -> Choice:
    """How much of an overwritten table differs is known once it was counted: only the work is left to be weighed.

    What is more than the driver takes Spark reads, and nobody counts: then nothing is known that was not before.
    """
    overwritten = [each for each in changes if each.move.overwritten and not each.is_guess]
    if not choice.by_price or not overwritten:
        return choice
    reason = next(filter(None, (_too_much(each, table, max_change_ratio) for each in overwritten)), None)
    work = replace(differential_work(costs, changes), read=0)
    differential, full = estimate_differential(costs, work), estimate_full(costs, full_work(costs, changes))
    if reason is None and cheaper(replace(costs, spent_in_full_ms=0.0), work, differential.ms, full.ms).full:
        names = ", ".join(each.move.name for each in overwritten)
        text = (
            f"{names} was overwritten, and {sum(each.changed for each in overwritten):,} rows really changed: "
            f"the rest of a differential refresh is ~{format_took(differential.ms)}, full ~{format_took(full.ms)}"
        )
        reason = Reason(ReasonCode.COST, text)
    if reason is None:
        return choice
    again = Choice(Outcome.FULL, reason, by_price=reason.code is ReasonCode.COST)
    return weighed(again, costs, changes, full_reason=None)


def fails_on_change(table: StreamTable, error: FailsOnValue) -> Choice:
    """A condition may fail on rows that never stood side by side: one of now and one of before. Recomputing tells,
    where that is allowed.
    """
    if table.refresh_mode is not RefreshMode.AUTO:
        raise error
    said = (error.detail or error.message).partition("]")
    text = f"its change fails on a value ({said[0].lstrip('[') or error.message}), which recomputing may never meet"
    return Choice(Outcome.FULL, Reason(ReasonCode.FAILS_ON_CHANGE, text))


def weighed(choice: Choice, costs: Costs, changes: tuple[Pending, ...], *, full_reason: Reason | None) -> Choice:
    """With what each way would cost. `full_reason`: why it can only be recomputed."""
    if choice.outcome is Outcome.REINITIALIZE or choice.reason.code in _NO_OTHER_WAY:
        full_reason = choice.reason
    elif choice.outcome is Outcome.NO_DATA or any(each.move.was is None for each in changes):
        # no change, or none that could be told
        full_reason = full_reason or choice.reason
    if full_reason is not None:
        differential = Alternative(Way.DIFFERENTIAL, None, (), full_reason.text)
    else:
        found = estimate_differential(costs, differential_work(costs, changes))
        chosen = choice.outcome is Outcome.DIFFERENTIAL
        differential = Alternative(Way.DIFFERENTIAL, found.ms, found.parts, found.basis, chosen=chosen)
    all_anew = estimate_full(costs, full_work(costs, changes))
    full = Alternative(Way.FULL, all_anew.ms, all_anew.parts, all_anew.basis, chosen=choice.full)
    return replace(choice, alternatives=(differential, full))


def _rows_in_words(changes: tuple[Pending, ...]) -> str:
    moved = [each for each in changes if each.changed or each.read]
    return ", ".join(
        f"{each.move.name} was overwritten, {each.read:,} rows to compare"
        if each.move.overwritten
        else f"{each.changed:,} changed row{'' if each.changed == 1 else 's'} of {each.move.name}"
        for each in moved
    )


def _changed_in_words(changes: tuple[SourceMove, ...]) -> str:
    moved = [each for each in changes if each.was is not None and each.was.version != each.chosen.version]
    return ", ".join(f"{each.name} {each.was.version}→{each.chosen.version}" for each in moved if each.was)
