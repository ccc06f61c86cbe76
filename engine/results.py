"""What the engine's verbs answer: frozen values, like the records they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import Position, TrickleError
from engine.records import Column, Frontier, Notice, Reason, RefreshRecord, StreamTable, StreamTableStatus, View


@dataclass(frozen=True)
class CreateResult:
    table: StreamTable
    created: bool
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
class SqlResult:
    """What one SQL statement gave: rows, or the result of a verb, or both."""

    #: the statement's kind: 'select', 'create', 'drop', 'refresh', 'show', 'explain', 'dml', 'source', 'view'
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
