"""How a stream table is refreshed, in a word, and why where it is not what was asked for."""

from __future__ import annotations

from engine.records import Initiator, Outcome, ReasonCode, RefreshMode, RefreshRecord, StreamTableStatus

#: one word for the list; the full text stands in the panels
_SHORT = {
    ReasonCode.UNSUPPORTED: "operator",
    ReasonCode.STABLE: "clock",
    ReasonCode.NO_CHANGE_FEED: "no feed",
    ReasonCode.COST: "cost",
    ReasonCode.CHANGE_RATIO: "much changed",
    ReasonCode.HISTORY_LOST: "history",
    ReasonCode.SOURCE_REPLACED: "replaced",
    ReasonCode.FINGERPRINT_CHANGED: "redefined",
    ReasonCode.NEGATIVE_MULTIPLICITY: "guard",
    ReasonCode.FAILS_ON_CHANGE: "a value",
    ReasonCode.TAMPERED: "tampered",
    ReasonCode.LAYOUT_CHANGED: "partitions",
    ReasonCode.SOURCE_SCHEMA_CHANGED: "columns",
}

_OUTCOMES = {
    Outcome.NO_DATA: "no data",
    Outcome.DIFFERENTIAL: "differential",
    Outcome.FULL: "full",
    Outcome.REINITIALIZE: "reinitialize",
    Outcome.SKIPPED: "skipped",
    Outcome.FAILED: "failed",
}


def short_mode(table: StreamTableStatus) -> str:
    return {"differential": "diff", "full": "full", "immediate": "imm"}.get(
        table.effective_mode.lower(), table.effective_mode.lower()
    )


def is_lifted(table: StreamTableStatus) -> bool:
    """Does it recompute although that was not asked for?"""
    return table.effective_mode.lower() == "full" and table.refresh_mode is not RefreshMode.FULL


def short_reason(table: StreamTableStatus) -> str:
    """The word beside a mode that nobody asked for."""
    if not is_lifted(table) or table.reason is None:
        return ""
    return _SHORT.get(table.reason.code, "")


def outcome(record: RefreshRecord) -> str:
    return _OUTCOMES[record.outcome]


def outcome_role(record: RefreshRecord) -> str:
    match record.outcome:
        case Outcome.FAILED:
            return "failed"
        case Outcome.FULL | Outcome.REINITIALIZE:
            return "text"
        case _:
            return "dim"


def did_work(record: RefreshRecord) -> bool:
    return record.outcome in (Outcome.DIFFERENTIAL, Outcome.FULL, Outcome.REINITIALIZE)


def is_usual_work(record: RefreshRecord) -> bool:
    """What a plot compares; the first fill of a table would only flatten all that comes after."""
    return did_work(record) and record.reason.code is not ReasonCode.NOT_POPULATED


def initiator(record: RefreshRecord) -> str:
    """Who wanted it: 'schedule', 'hand', 'event' …"""
    return {Initiator.SCHEDULER: "schedule", Initiator.MANUAL: "hand"}.get(
        record.initiated_by, record.initiated_by.value.lower()
    )


def rows_changed(record: RefreshRecord) -> int:
    return record.rows_inserted + record.rows_updated + record.rows_deleted
