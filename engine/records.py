"""The values that the engine's doors hand out: frozen, comparable, free of behaviour.

Times are aware datetimes in UTC and end in `_at`; durations carry their unit last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from engine.alternatives import Alternative
from engine.errors import Position
from engine.event_records import Event


class RefreshMode(StrEnum):
    """What the owner of a stream table asked for."""

    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    #: DML that is sent through the engine refreshes it before it returns
    IMMEDIATE = "IMMEDIATE"

    @property
    def is_strict(self) -> bool:
        """Is what cannot be maintained differentially refused?"""
        return self in (RefreshMode.DIFFERENTIAL, RefreshMode.IMMEDIATE)


class State(StrEnum):
    """How a stream table is, most severe first."""

    FAILED = "failed"
    SUSPENDED = "suspended"
    TAMPERED = "tampered"
    FUSED = "fused"
    DIVERGED = "diverged"
    STALE = "stale"
    LATE = "late"
    RUNNING = "running"
    UNPOPULATED = "unpopulated"
    FRESH = "fresh"
    PAUSED = "paused"
    FROZEN = "frozen"


class Outcome(StrEnum):
    """How one refresh ended."""

    NO_DATA = "NO_DATA"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


class Initiator(StrEnum):
    SCHEDULER = "SCHEDULER"
    MANUAL = "MANUAL"
    EVENT = "EVENT"
    IMMEDIATE = "IMMEDIATE"
    API = "API"


class ReasonCode(StrEnum):
    """Why a refresh took the mode it took. Stable names; the text beside them is for people."""

    DIFFERENTIAL = "differential"
    REQUESTED_FULL = "requested_full"
    REQUESTED_REINITIALIZE = "requested_reinitialize"
    NOT_POPULATED = "not_populated"
    UNSUPPORTED = "unsupported"
    NO_CHANGE_FEED = "no_change_feed"
    COST = "cost"
    CHANGE_RATIO = "change_ratio"
    HISTORY_LOST = "history_lost"
    SOURCE_REPLACED = "source_replaced"
    SOURCE_SCHEMA_CHANGED = "source_schema_changed"
    FINGERPRINT_CHANGED = "fingerprint_changed"
    LAYOUT_CHANGED = "layout_changed"
    FAILS_ON_CHANGE = "fails_on_change"
    NEGATIVE_MULTIPLICITY = "negative_multiplicity"
    TAMPERED = "tampered"
    VOLATILE = "volatile"
    STABLE = "stable"
    CANCELLED = "cancelled"
    OVERTAKEN = "overtaken"
    FAILED = "failed"
    NO_DATA = "no_data"


@dataclass(frozen=True)
class Reason:
    code: ReasonCode
    text: str
    position: Position | None = None
    #: the part of the query's text that it is about
    fragment: str | None = None


@dataclass(frozen=True)
class Notice:
    """Something the caller should know although the request went through."""

    text: str
    hint: str | None = None


@dataclass(frozen=True)
class SourceVersion:
    """One version of a source and the proof that it is that very commit."""

    version: int
    identity: str
    table_id: str
    #: a file that was added (+) or removed (-) by then: it still tells, when that commit's own file is cleaned away
    witness: str = ""


#: the version of each direct source that a stream table's rows stand for
Frontier = dict[str, SourceVersion]


@dataclass(frozen=True)
class Evaluated:
    """When and by whom an answer was computed that depends on it."""

    #: what the clock showed to the query
    at: datetime
    #: as whom, in which catalog and schema
    session: str
    #: which Spark
    version: str


@dataclass(frozen=True)
class Column:
    name: str
    #: as Spark spells it: `bigint`, `decimal(12,2)`, `array<string>` …
    type: str
    nullable: bool = True


class CdcMode(StrEnum):
    AUTO = "auto"
    CDF = "cdf"
    DIFF = "diff"
    POLL = "poll"


class EnableCdf(StrEnum):
    """May Trickle switch the Change Data Feed on in a table that others own?"""

    ASK = "ask"
    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True)
class Polled:
    """What is no Delta table, and is looked at from time to time."""

    #: parquet, csv, json … as Spark calls it, jdbc, or table
    format: str
    #: a folder or file, an address, or the name that Spark knows it by
    place: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    name: str
    #: of a Delta table: its own, or the copy that is kept of what is polled
    path: str
    format: str = "delta"
    cdc_mode: CdcMode = CdcMode.AUTO
    key: tuple[str, ...] = ()
    added_at: datetime | None = None
    owner: str = ""
    #: None where the Delta table is the source itself
    polled: Polled | None = None


@dataclass(frozen=True)
class View:
    """A query under a name. Whatever names it means its text."""

    name: str
    query: str
    created_at: datetime | None = None
    owner: str = ""


@dataclass(frozen=True)
class SourceStatus:
    source: Source
    head: int | None
    cdf: bool
    columns: tuple[Column, ...]
    #: the stream tables that read it
    dependents: tuple[str, ...]
    error: str | None = None


class SqlDialect(StrEnum):
    """Whose SQL a query is written in."""

    SPARK = "spark"
    DATABRICKS = "databricks"
    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SNOWFLAKE = "snowflake"


@dataclass(frozen=True)
class Written:
    """A query as its author wrote it, where that was not in Spark's SQL."""

    dialect: SqlDialect
    text: str


@dataclass(frozen=True)
class StreamTable:
    """A definition, as created."""

    id: str
    name: str
    query: str
    refresh_mode: RefreshMode
    #: as the user wrote it: '30s', '1h30m' or 'calculated'
    schedule: str
    interval_s: float
    path: str
    owner: str
    created_at: datetime
    #: direct sources, which may be stream tables
    sources: tuple[str, ...]
    columns: tuple[Column, ...]
    fingerprint: str
    append_only: bool = False
    #: in AUTO, a change of more than this share of a source's rows is refreshed fully; None: as the settings say
    differential_max_change_ratio: float | None = None
    #: why it is refreshed fully although AUTO or DIFFERENTIAL was asked for
    full_reason: Reason | None = None
    comment: str = ""
    #: what `query` was made of; None where it stands as it was written
    written: Written | None = None
    #: of each source the columns, with their types, that it had when the query was written: `*` and NATURAL stand for
    #: these, whatever columns come later
    known_columns: dict[str, dict[str, str]] = field(default_factory=dict)
    #: the columns by whose values its files lie in folders of their own
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperatorStats:
    """One row of a plan: an operator, the rule it is maintained by, and what that cost."""

    id: str
    depth: int
    label: str
    detail: str
    rule: str
    why: str = ""
    rows_in: int | None = None
    rows_out: int | None = None
    estimated_rows_out: int | None = None
    duration_ms: float | None = None
    estimated_ms: float | None = None
    pruned: bool = False


@dataclass(frozen=True)
class RefreshRecord:
    """One line of refresh history."""

    refresh_id: str
    #: counts up per workspace, what people call `#1842`
    number: int
    st: str
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    requested_mode: RefreshMode
    reason: Reason
    strategy: str
    initiated_by: Initiator
    sequence: int | None
    rows_in: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    duration_ms: float = 0.0
    #: in the order they ran: version check, read change, plan, run, commit, bookkeeping
    phases_ms: dict[str, float] = field(default_factory=dict)
    estimated_ms: float | None = None
    #: the ways that were weighed against each other
    alternatives: tuple[Alternative, ...] = ()
    frontier_from: Frontier | None = None
    frontier_to: Frontier | None = None
    operators: tuple[OperatorStats, ...] = ()
    #: the maintenance statement as Spark ran it
    sql: str = ""
    #: what the clock showed to a query that reads it
    evaluated_at: datetime | None = None
    error: str | None = None
    error_code: str | None = None
    error_hint: str | None = None


@dataclass(frozen=True)
class RunningRefresh:
    st: str
    refresh_id: str
    started_at: datetime
    phase: str
    #: steps done and steps in all, as far as known
    step: int
    steps: int
    initiated_by: Initiator


@dataclass(frozen=True)
class StreamTableStatus:
    """What the overview shows of one stream table."""

    name: str
    state: State
    refresh_mode: RefreshMode
    #: what its refreshes do at present: 'differential', 'full', or 'immediate', which is differential with each DML
    effective_mode: str
    reason: Reason | None
    schedule: str
    interval_s: float
    #: age of the moment for which the rows are known to be right; None when never populated
    staleness_s: float | None
    next_due_at: datetime | None
    last: RefreshRecord | None
    #: durations of the last refreshes that did work, oldest first, at most 20
    recent_ms: tuple[float, ...] = ()
    running: RunningRefresh | None = None
    error: str | None = None
    error_hint: str | None = None
    sources: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    frontier: Frontier | None = None
    owner: str = ""
    verified_at: datetime | None = None
    verified_equal: bool | None = None


class SparkPhase(StrEnum):
    NOT_STARTED = "not started"
    JAVA = "finding java"
    JARS = "fetching jars"
    STARTING = "starting"
    WARMING = "warming up"
    READY = "ready"
    FAILED = "failed"
    #: it was ready and ended by itself; whatever needs it next starts it again
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True)
class SparkStatus:
    phase: SparkPhase
    detail: str = ""
    running_jobs: int = 0
    started_at: datetime | None = None
    ready_at: datetime | None = None


class SchedulerPlace(StrEnum):
    HERE = "here"
    ELSEWHERE = "held"
    NOBODY = "off"
    PAUSED = "paused"


@dataclass(frozen=True)
class SchedulerStatus:
    place: SchedulerPlace
    holder_pid: int | None = None
    running: tuple[RunningRefresh, ...] = ()
    queued: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overview:
    """Everything the dashboard's first screen needs, read at one moment, without Spark."""

    workspace: str
    path: str
    at: datetime
    scheduler: SchedulerStatus
    spark: SparkStatus
    tables: tuple[StreamTableStatus, ...]
    events: tuple[Event, ...]
