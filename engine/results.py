"""What the engine's verbs answer: frozen values, like the records they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.records import Column, Frontier, Notice, Reason, RefreshRecord, StreamTable, View


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


@dataclass(frozen=True)
class Stage:
    """One named picture that the compiler took on its way."""

    name: str
    text: str
    #: did this stage change the tree?
    changed: bool
    duration_ms: float


@dataclass(frozen=True)
class Explanation:
    name: str
    query: str
    mode: str
    reason: Reason | None
    #: how the result is identified and stored: 'by key', 'by row' …
    identity: str
    root: PlanNode
    stages: tuple[Stage, ...]
    #: the maintenance statement when every source changed
    delta_sql: str
    columns: tuple[Column, ...]
    hidden_columns: tuple[Column, ...]
    planning_ms: float
    analysis_ms: float

    def text(self) -> str:
        """The tree as one prints it."""
        lines: list[str] = []

        def walk(node: PlanNode, lead: str, branch: str) -> None:
            lines.append(f"{lead}{branch}{node.label} {node.detail}".rstrip() + f"   [{node.rule}]")
            below = lead + ("   " if branch.startswith("└") else "│  " if branch else "")
            for index, child in enumerate(node.children):
                last = index == len(node.children) - 1
                walk(child, below, "└─ " if last else "├─ ")

        walk(self.root, "", "")
        return "\n".join(lines)


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
