"""Where a refresh finds that what was defined, promised or asked for is another thing than what is stored."""

from __future__ import annotations

from dataclasses import replace

from engine.catalog.store import Catalog
from engine.compile.plan import MaintenancePlan
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.records import Outcome, Reason, ReasonCode, StreamTable
from engine.refresh.choose import Choice
from engine.refresh.ledger import Attempt
from engine.refresh.observe import SourceMove, Target
from engine.refresh.plans import Plans


def laid_out_otherwise(table: StreamTable, target: Target) -> Choice | None:
    """Its files lie in other folders than its definition says: all of them are written anew."""
    if target.partition_by == table.partition_by:
        return None
    wanted = f"by {', '.join(table.partition_by)}" if table.partition_by else "no more"
    text = f"it is partitioned {wanted} from now on"
    return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.LAYOUT_CHANGED, text))


def reinitialized(choice: Choice) -> Choice:
    """Who asks for that is told so, unless there was a reason for it anyway."""
    if choice.reason.code is not ReasonCode.REQUESTED_FULL:
        return choice
    text = "asked for by hand: nothing that is known of it counts"
    return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.REQUESTED_REINITIALIZE, text))


def held_to_promise(catalog: Catalog, events: EventBus, attempt: Attempt, moves: tuple[SourceMove, ...]) -> Attempt:
    """What promised to grow only meets a change that does more: it goes on without the promise, and says so.

    Before the commit: the promise is broken whatever becomes of this refresh, and a later one might not see it.
    """
    found = (move.name for move in moves if move.summary is not None and not move.summary.only_grew)
    name = next(found, None) if attempt.table.append_only else None
    if name is None:
        return attempt
    if catalog.change_stream_table(attempt.table.id, lambda now: replace(now, append_only=False)):
        text = f"{name} did not only grow: it is append_only no more, and refreshed like any other"
        events.publish(EventKind.APPEND_ONLY_REVERTED, attempt.table.name, text, Severity.WARN)
    return replace(attempt, table=replace(attempt.table, append_only=False))


def committed_meaning(catalog: Catalog, plans: Plans, table: StreamTable, plan: MaintenancePlan) -> None:
    """The same text means something else by now, and from this commit on the table holds that.

    Where somebody made another definition of it meanwhile, that one stays: the next refresh fulfils it.
    """

    def meant(now: StreamTable) -> StreamTable:
        if _asked(now) != _asked(table):
            return now
        after = replace(
            now,
            fingerprint=plan.fingerprint,
            columns=plan.visible,
            full_reason=plan.full_reason,
            known_columns=table.known_columns,
        )
        return after if plans.has_its_views(after) else now

    catalog.change_stream_table(table.id, meant)


def _asked(table: StreamTable) -> tuple[object, ...]:
    return table.query, table.refresh_mode, table.sources, table.fingerprint
