"""What a refresh leaves behind: progress in the catalog, a line of history, an event. The commit came before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.durations import format_took
from engine.errors import RefreshCancelled, RefreshOvertaken, TrickleError
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake.stamp import Stamp
from engine.observe.history import History
from engine.records import (
    Frontier,
    Initiator,
    OperatorStats,
    Outcome,
    Reason,
    ReasonCode,
    RefreshMode,
    RefreshRecord,
    StreamTable,
)
from engine.refresh import cost_book, retry
from engine.refresh.choose import Choice
from engine.refresh.job import Applied
from engine.refresh.observe import Target
from engine.refresh.phases import Phases
from engine.refresh.priced import Lesson

#: reasons of a full refresh that nobody needs to be told
EXPECTED = (
    ReasonCode.REQUESTED_FULL,
    ReasonCode.REQUESTED_REINITIALIZE,
    ReasonCode.NOT_POPULATED,
    ReasonCode.LAYOUT_CHANGED,
    ReasonCode.VOLATILE,
    ReasonCode.STABLE,
    ReasonCode.UNSUPPORTED,
)


#: ends of a refresh that are nobody's failure
_SKIPPED: dict[type[TrickleError], ReasonCode] = {
    RefreshCancelled: ReasonCode.CANCELLED,
    RefreshOvertaken: ReasonCode.OVERTAKEN,
}


@dataclass(frozen=True)
class Attempt:
    refresh_id: str
    table: StreamTable
    initiated_by: Initiator
    started_at: datetime
    phases: Phases
    #: of the lease under which a scheduler asked for it: it ends with that lease. None when a person asked.
    epoch: int | None = None
    #: was it asked for to begin anew?
    reinitialize: bool = False


@dataclass(frozen=True)
class Done:
    choice: Choice
    applied: Applied | None
    frontier: Frontier
    #: of the last commit on the stream table
    sequence: int
    #: which refresh made it
    refresh_id: str | None
    rows_in: int = 0
    operators: tuple[OperatorStats, ...] = ()
    #: of a query whose answer changes by itself
    evaluated_at: datetime | None = None
    #: what its costs teach; None where no work was done
    lesson: Lesson | None = None


def no_data(target: Target, chosen: Frontier) -> Done:
    """Nothing changed: the frontier moves in the catalog alone, which may forget it without harm."""
    choice = Choice(Outcome.NO_DATA, Reason(ReasonCode.NO_DATA, "nothing changed upstream"))
    return Done(choice, None, chosen, target.sequence, target.refresh_id)


def stamped_anew(stamp: Stamp, version: int) -> Done:
    choice = Choice(Outcome.NO_DATA, Reason(ReasonCode.NO_DATA, "nothing changed upstream; its stamp was renewed"))
    return Done(choice, Applied("stamp", "", version), stamp.frontier, stamp.sequence, stamp.refresh_id)


class Ledger:
    def __init__(
        self, catalog: Catalog, history: History, events: EventBus, clock: Clock, max_consecutive_errors: int
    ) -> None:
        self._max_consecutive_errors = max_consecutive_errors
        self._catalog = catalog
        self._history = history
        self._events = events
        self._clock = clock

    def done(self, attempt: Attempt, progress: Progress, done: Done) -> RefreshRecord:
        applied = done.applied
        wrote = applied is not None and applied.version is not None
        with attempt.phases.phase("bookkeeping"):
            number = self._catalog.next_refresh_number()
            self._catalog.change_progress(
                attempt.table.id,
                lambda now: replace(
                    now,
                    sequence=done.sequence,
                    refresh_id=done.refresh_id,
                    frontier=done.frontier,
                    data_as_of_at=attempt.started_at,
                    populated=True,
                    consecutive_errors=0,
                    suspended_at=None,
                    error=None,
                    error_code=None,
                    error_hint=None,
                    error_at=None,
                ),
            )
            FAILPOINTS.reach(Failpoint.PROGRESS_SAVED)
            if done.lesson is not None:
                learned = done.lesson(attempt.phases.worked_ms, done.choice.estimated_ms)
                cost_book.write(self._catalog, attempt.table, learned)
        record = RefreshRecord(
            refresh_id=attempt.refresh_id,
            number=number,
            st=attempt.table.name,
            started_at=attempt.started_at,
            finished_at=self._clock.now(),
            outcome=done.choice.outcome,
            requested_mode=attempt.table.refresh_mode,
            reason=done.choice.reason,
            strategy=applied.strategy if applied else "no data",
            initiated_by=attempt.initiated_by,
            sequence=done.sequence if wrote else None,
            rows_in=done.rows_in,
            rows_inserted=applied.inserted if applied else 0,
            rows_updated=applied.updated if applied else 0,
            rows_deleted=applied.deleted if applied else 0,
            duration_ms=attempt.phases.total_ms,
            phases_ms=attempt.phases.spent_ms,
            estimated_ms=done.choice.estimated_ms,
            alternatives=done.choice.alternatives,
            frontier_from=progress.frontier,
            frontier_to=done.frontier,
            operators=done.operators,
            sql=applied.sql if applied else "",
            evaluated_at=done.evaluated_at,
        )
        self._history.append(record)
        FAILPOINTS.reach(Failpoint.HISTORY_WRITTEN)
        if progress.suspended_at is not None:
            self._events.publish(EventKind.RESUMED, record.st, "a refresh succeeded: it goes on", Severity.OK)
        self._tell(record)
        return record

    def failed(self, attempt: Attempt, error: TrickleError) -> None:
        progress = self._catalog.get_progress(attempt.table.id)
        reason = _SKIPPED.get(type(error), ReasonCode.FAILED)
        skipped = reason is not ReasonCode.FAILED
        if not skipped:
            self._catalog.change_progress(attempt.table.id, lambda now: self._after_failure(now, error))
        record = RefreshRecord(
            refresh_id=attempt.refresh_id,
            number=self._catalog.next_refresh_number(),
            st=attempt.table.name,
            started_at=attempt.started_at,
            finished_at=self._clock.now(),
            outcome=Outcome.SKIPPED if skipped else Outcome.FAILED,
            requested_mode=attempt.table.refresh_mode,
            reason=Reason(reason, str(error)),
            strategy="none",
            initiated_by=attempt.initiated_by,
            sequence=None,
            duration_ms=attempt.phases.total_ms,
            phases_ms=attempt.phases.spent_ms,
            frontier_from=progress.frontier,
            error=str(error).rstrip(".") + (f": {error.detail}" if error.detail else ""),
            error_code=error.code,
            error_hint=error.hint,
        )
        self._history.append(record)
        kind = EventKind.REFRESH_SKIPPED if skipped else EventKind.REFRESH_FAILED
        severity = Severity.WARN if skipped else Severity.ERROR
        self._events.publish(kind, attempt.table.name, str(error), severity, attempt.refresh_id)
        self._tell_if_suspended(attempt, progress, error)

    def late(self, table: StreamTable, error: TrickleError | None, text: str) -> None:
        """Its source keeps a change that it could not follow; what kept it from that may be noted already."""

        def noted(now: Progress) -> Progress:
            if now.error is not None:
                return now
            code, hint = (None, None) if error is None else (error.code, error.hint)
            errors = max(1, now.consecutive_errors)
            return replace(
                now,
                consecutive_errors=errors,
                error=text,
                error_code=code,
                error_hint=hint,
                error_at=self._clock.now(),
            )

        self._catalog.change_progress(table.id, noted)

    def _after_failure(self, now: Progress, error: TrickleError) -> Progress:
        errors, at = now.consecutive_errors + 1, self._clock.now()
        # what passes by itself is tried again for as long as it takes
        is_enough = isinstance(error, retry.STOPS) or (
            errors >= self._max_consecutive_errors and not retry.passes(error)
        )
        return replace(
            now,
            consecutive_errors=errors,
            suspended_at=now.suspended_at or (at if is_enough else None),
            error=str(error),
            error_code=error.code,
            error_hint=error.hint,
            error_at=at,
        )

    def _tell_if_suspended(self, attempt: Attempt, before: Progress, error: TrickleError) -> None:
        now = self._catalog.get_progress(attempt.table.id)
        if now.suspended_at is None or before.suspended_at is not None:
            return
        text = f"suspended after {now.consecutive_errors} failures in a row: {error}"
        if isinstance(error, retry.STOPS):
            text = f"suspended: {error}"
            why = f"{error}: {error.detail}" if error.detail else str(error)
            self._events.publish(EventKind.SOURCE_SCHEMA_CHANGED, attempt.table.name, why, Severity.ERROR)
        hint = f"{error.hint}; then " if error.hint else ""
        text = f"{text.rstrip('.')}. {hint}`trickle resume {attempt.table.name}` goes on"
        self._events.publish(EventKind.AUTO_SUSPENDED, attempt.table.name, text, Severity.ERROR, attempt.refresh_id)

    def _tell(self, record: RefreshRecord) -> None:
        if record.outcome is Outcome.NO_DATA:
            return
        if record.outcome is Outcome.DIFFERENTIAL:
            mode = "differential"
        else:
            mode = "rebuilt" if record.outcome is Outcome.REINITIALIZE else "full"
        updated = f" ~{record.rows_updated:,}" if record.rows_updated else ""
        changed = f"+{record.rows_inserted:,} −{record.rows_deleted:,}{updated}"
        text = f"{mode} {format_took(record.duration_ms)}, {changed}"
        fell_back = record.requested_mode is RefreshMode.AUTO and record.reason.code not in EXPECTED
        if record.outcome is not Outcome.DIFFERENTIAL and fell_back:
            kind, severity = EventKind.MODE_FALLBACK, Severity.WARN
            text = f"{text} instead of differential: {record.reason.text}"
        else:
            kind, severity = EventKind.REFRESH_COMPLETED, Severity.OK
        self._events.publish(kind, record.st, text, severity, record.refresh_id)
