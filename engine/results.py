"""What the engine's verbs answer: frozen values, like the records they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.alternatives import Alternative
from engine.errors import Position, TrickleError
from engine.event_records import Severity
from engine.records import (
    Column,
    Frontier,
    Notice,
    Outcome,
    Reason,
    RefreshMode,
    RefreshRecord,
    StreamTable,
    StreamTableStatus,
    View,
)


@dataclass(frozen=True)
class CreateResult:
    table: StreamTable
    created: bool
    refresh: RefreshRecord | None
    notices: tuple[Notice, ...] = ()


class AlterKind(StrEnum):
    NOTHING = "nothing"
    #: its rows stay as they are
    SETTINGS = "settings"
    #: it got or lost columns; all rows are computed anew
    COLUMNS = "columns"
    REBUILD = "rebuild"


@dataclass(frozen=True)
class AlterResult:
    table: StreamTable
    kind: AlterKind
    #: what was changed, in words
    text: str
    #: the one that computed the rows anew
    refresh: RefreshRecord | None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class DropResult:
    dropped: tuple[str, ...]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class ViewResult:
    view: View
    replaced: bool
    #: False where it had this very text before
    changed: bool
    #: the stream tables that are rebuilt at their next refresh
    rebuilt: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerifyResult:
    """Is the stream table what its query says, at its frontier?"""

    name: str
    equal: bool
    rows: int
    #: rows the query has and the table lacks, and the other way round; counted with multiplicity
    missing: int
    unexpected: int
    #: a few of them, as printable rows
    examples: tuple[str, ...]
    frontier: Frontier
    duration_ms: float


@dataclass(frozen=True)
class PlanNode:
    """One operator of an explained query."""

    id: str
    label: str
    detail: str
    rule: str
    why: str
    children: tuple[PlanNode, ...] = ()

    def drawn(self) -> tuple[tuple[str, PlanNode], ...]:
        """Every operator from the root on, behind the lines of the tree."""
        found: list[tuple[int, PlanNode]] = []

        def walk(node: PlanNode, depth: int) -> None:
            found.append((depth, node))
            for child in node.children:
                walk(child, depth + 1)

        walk(self, 0)
        leads = tree_leads([depth for depth, _ in found])
        return tuple((lead, node) for lead, (_, node) in zip(leads, found, strict=True))


@dataclass(frozen=True)
class Stage:
    """One step of the compiler, with the picture that it left."""

    name: str
    text: str
    #: did this step change the tree?
    changed: bool
    duration_ms: float
    #: the tree that it was given; None for a step that makes something else of it
    before: str | None = None


@dataclass(frozen=True)
class Explanation:
    """How a query is maintained, or would be."""

    query: str
    #: 'differential' or 'full'
    mode: str
    #: why it is recomputed, and the part of the text that is the cause
    reason: Reason | None
    #: how the result is identified and stored: 'by key', 'by row' …
    identity: str
    #: every operator with its rule
    root: PlanNode
    columns: tuple[Column, ...]
    hidden_columns: tuple[Column, ...]
    sources: tuple[str, ...]
    notices: tuple[Notice, ...]
    planning_ms: float
    analysis_ms: float


@dataclass(frozen=True)
class Problem:
    """An error as an answer: what is wrong with the thing asked about."""

    code: str
    message: str
    detail: str | None
    hint: str | None
    position: Position | None
    #: the part of the text that it is about
    fragment: str | None

    @staticmethod
    def of(error: TrickleError) -> Problem:
        return Problem(error.code, error.message, error.detail, error.hint, error.position, error.fragment)


@dataclass(frozen=True)
class Validation:
    """Could this query be a stream table, and how would it be maintained? One of the two is None."""

    query: str
    problem: Problem | None
    explanation: Explanation | None

    @property
    def valid(self) -> bool:
        return self.problem is None


@dataclass(frozen=True)
class Preview:
    """What a creation would make, and some of the rows that it would begin with."""

    explanation: Explanation
    #: a pyarrow.Table of the first rows as they are now, of which no order is promised
    rows: Any
    limit: int


@dataclass(frozen=True)
class Rewrite:
    """The way of a query through the compiler."""

    query: str
    steps: tuple[Stage, ...]
    #: steps that changed nothing and are not shown
    left_out: int
    #: why the way ends early, at a query that is recomputed
    reason: Reason | None


@dataclass(frozen=True)
class DeltaStatement:
    """One statement of a refresh."""

    #: 'first' makes what the next one reads, 'change' gives the change of the result
    name: str
    sql: str
    tree: str
    #: what it reads: 'orders now', 'orders before', 'the change of orders' …
    reads: tuple[str, ...]


@dataclass(frozen=True)
class DeltaCase:
    """What a refresh runs when its sources changed in one certain way."""

    #: 'append' or 'mixed', by source; one that is not named did not change
    changed: dict[str, str]
    #: none where such a change cannot touch the result
    statements: tuple[DeltaStatement, ...]


@dataclass(frozen=True)
class DeltaExplanation:
    #: of the stream table; empty for a query that is none
    name: str
    #: why it is recomputed all the same
    reason: Reason | None
    #: none for a query that can only be recomputed
    cases: tuple[DeltaCase, ...]


@dataclass(frozen=True)
class SourceRead:
    """A source as one stream table sees it."""

    name: str
    #: 'change data feed', 'none' …
    changes: str
    #: the version that the stream table stands for, and the newest one
    frontier: int | None
    head: int | None
    columns: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True)
class StreamTableExplanation:
    """All about one stream table: what it is, how it is maintained, and where it stands."""

    table: StreamTable
    status: StreamTableStatus
    explanation: Explanation
    sources: tuple[SourceRead, ...]
    #: the maintenance statements when every source changed
    delta_sql: str
    #: how well its refreshes are estimated
    cost_error: CostError


@dataclass(frozen=True)
class CostError:
    """How far the estimates of the last refreshes were off."""

    #: |estimate − actual| / actual; None before anything was measured
    median_share: float | None
    refreshes: int


@dataclass(frozen=True)
class PendingChange:
    """What a source did since the stream table's frontier, by its log."""

    source: str
    frontier: int | None
    head: int
    #: 'none', 'append', 'mixed', 'overwritten', or 'read whole' where the frontier says nothing
    kind: str
    rows_read: int
    rows_changed: int
    #: how many rows of an overwrite really changed is known when it was read
    is_guess: bool
    #: None where nobody can count them
    source_rows: int | None


@dataclass(frozen=True)
class RefreshModeExplanation:
    """What the next refresh would do, with what each way would cost."""

    name: str
    requested_mode: RefreshMode
    outcome: Outcome
    reason: Reason
    alternatives: tuple[Alternative, ...]
    changes: tuple[PendingChange, ...]
    #: of the stream table; None: as the settings say
    max_change_ratio: float | None
    error: CostError
    #: why it would fail
    problem: Problem | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class CdcStatus:
    """How the changes of one source reach one stream table, and what of them is still to come."""

    source: str
    #: None of a source that nobody reads
    stream_table: str | None
    #: auto, cdf, diff or poll
    asked: str
    #: cdf, diff or poll; full where no changes are read, none where they cannot be
    in_force: str
    why: str
    #: the version that the stream table stands for, and the newest one
    frontier: int | None = None
    head: int | None = None
    pending_versions: int = 0
    #: as many as its log tells of; an update counts twice
    pending_rows: int = 0
    pending_bytes: int = 0
    oldest_pending_at: datetime | None = None
    oldest_pending_age_s: float | None = None
    #: until what is still to be read may be cleaned away; None where nothing waits
    head_room_s: float | None = None
    head_room_why: str = ""
    severity: Severity = Severity.OK
    #: when what is polled was looked at
    looked_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True)
class ChangeBuffer:
    """What of one source waits for the slowest of its readers."""

    source: str
    #: stream tables that read it
    readers: int
    slowest: str | None
    pending_versions: int
    pending_rows: int
    pending_bytes: int
    oldest_pending_at: datetime | None
    #: of its changes, in memory for those that have not read them yet
    held_bytes: int


def tree_leads(depths: Sequence[int]) -> tuple[str, ...]:
    """The lines of a tree, given each node's depth in the order of a walk from the root."""
    leads: list[str] = []
    for index, depth in enumerate(depths):
        parts: list[str] = []
        for level in range(1, depth + 1):
            goes_on = _has_sibling_below(depths, index, level)
            if level == depth:
                parts.append("├─ " if goes_on else "└─ ")
            else:
                parts.append("│  " if goes_on else "   ")
        leads.append("".join(parts))
    return tuple(leads)


def _has_sibling_below(depths: Sequence[int], index: int, level: int) -> bool:
    """Does a node of this level follow before the branch ends?"""
    for depth in depths[index + 1 :]:
        if depth < level:
            return False
        if depth == level:
            return True
    return False


@dataclass(frozen=True)
class Repair:
    #: of the stream table or source
    name: str
    text: str
    #: False for what a person has to decide
    mended: bool = True


@dataclass(frozen=True)
class RepairResult:
    repairs: tuple[Repair, ...]

    @property
    def complete(self) -> bool:
        return all(each.mended for each in self.repairs)


@dataclass(frozen=True)
class WriteResult:
    """What DML on a source came to, and what followed it before it returned."""

    source: str
    #: of the source, with the change
    version: int
    #: in the order in which they were made
    refreshes: tuple[RefreshRecord, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Maintenance:
    """What was done for the files of one stream table."""

    name: str
    files_before: int
    files_after: int
    #: the version that the log can be read from
    checkpoint: int
    #: what no version of so many hours consists of was removed; None where nothing was
    kept_hours: int | None


@dataclass(frozen=True)
class SqlResult:
    """What one SQL statement gave: rows, or the result of a verb, or both."""

    #: the statement's kind: 'select', 'create', 'drop', 'refresh', 'show', 'explain', 'dml', 'ddl', 'source', 'view'
    kind: str
    #: a pyarrow.Table for statements that give rows
    rows: Any | None = None
    value: Any | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class VersionInfo:
    engine: str
    schema: int
    spark: str
    delta: str
    deltalake: str
    java: str
    duckdb: str
    python: str
