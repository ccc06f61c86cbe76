"""What happens in a workspace, as it is stored and told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EventKind(StrEnum):
    REFRESH_STARTED = "refresh_started"
    REFRESH_COMPLETED = "refresh_completed"
    REFRESH_FAILED = "refresh_failed"
    REFRESH_SKIPPED = "refresh_skipped"
    MODE_FALLBACK = "mode_fallback"
    STREAM_TABLE_CREATED = "stream_table_created"
    STREAM_TABLE_ALTERED = "stream_table_altered"
    STREAM_TABLE_RENAMED = "stream_table_renamed"
    APPEND_ONLY_REVERTED = "append_only_reverted"
    STREAM_TABLE_DROPPED = "stream_table_dropped"
    SOURCE_ADDED = "source_added"
    SOURCE_DROPPED = "source_dropped"
    SOURCE_SCHEMA_CHANGED = "source_schema_changed"
    HISTORY_EXPIRING = "history_expiring"
    VIEW_CREATED = "view_created"
    VIEW_REPLACED = "view_replaced"
    VIEW_DROPPED = "view_dropped"
    REINITIALIZE_NEEDED = "reinitialize_needed"
    REPAIRED = "repaired"
    MAINTAINED = "maintained"
    MAINTENANCE_FAILED = "maintenance_failed"
    AUTO_SUSPENDED = "auto_suspended"
    RESUMED = "resumed"
    CDC_MODE_CHANGED = "cdc_mode_changed"
    CHANGE_UNDONE = "change_undone"
    LATE = "late"
    SCHEDULER_STARTED = "scheduler_started"
    SCHEDULER_STOPPED = "scheduler_stopped"
    SPARK = "spark"
    LEASE_LOST = "lease_lost"


class Severity(StrEnum):
    OK = "OK"
    WARN = "WARN"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Event:
    at: datetime
    kind: EventKind
    severity: Severity
    #: the stream table or source it is about; empty for the workspace
    subject: str
    text: str
    refresh_id: str | None = None
    #: grows by one with each event of a workspace
    number: int = 0
