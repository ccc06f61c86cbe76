"""A maintenance plan: everything a refresh needs to know of a query, made once from its text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from engine.algebra.nodes import Node
from engine.compile.keep import Kept
from engine.compile.picture import Picture, draw
from engine.compile.render import render
from engine.compile.replay import Replay
from engine.records import Column, Notice, Reason, ReasonCode
from engine.results import PlanNode, Stage

#: counts up when the same query is kept in another form, so that stored tables of the old form are rebuilt
LAYOUT = 1


@dataclass(frozen=True)
class MaintenancePlan:
    query: str
    #: sources under their names in the workspace, in order of appearance
    sources: tuple[str, ...]
    #: the columns of each source that the query reads
    used_columns: Mapping[str, tuple[Column, ...]]
    #: the query in canonical form; None when it can only be recomputed
    root: Node | None
    kept: Kept | None
    #: why it can only be recomputed
    full_reason: Reason | None
    visible: tuple[Column, ...]
    pictures: tuple[Picture, ...]
    notices: tuple[Notice, ...]
    tree: PlanNode
    #: how an answer that changes with the time is computed a second time; None for all others, and for random ones
    replay: Replay | None
    #: those that are none of Spark's own, also those that are called inside of them
    functions: tuple[str, ...]
    #: what else than its text decided what the query means, when the plan was made
    meaning: str
    #: where the text leaves open which of several answers it means, and what decides it; then `root` is what is meant
    made_unique: tuple[str, ...]
    planning_ms: float
    analysis_ms: float

    @property
    def canonical_query(self) -> str:
        """What stored rows can be compared with: the text, unless it leaves the answer open."""
        if not self.made_unique or self.root is None:
            return self.query
        return render(self.root, lambda leaf: exp.to_table(f'"{leaf.name}"'), pretty=True)

    def query_at(self, moment: datetime | None) -> str:
        """The canonical query; with the moment in place of the clock, where there is one and that can be."""
        if moment is None or self.replay is None:
            return self.canonical_query
        return self.replay.at(self.canonical_query, moment)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return draw(self.pictures)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of the stored table."""
        return self.kept.columns if self.kept else self.visible

    @property
    def hidden(self) -> tuple[Column, ...]:
        return self.kept.hidden if self.kept else ()

    @property
    def fingerprint(self) -> str:
        """Changes when the same text would mean, or be stored as, something else."""
        reason = self.full_reason
        parts = [
            f"layout {LAYOUT}",
            reason.code if reason is not None and reason.code in (ReasonCode.VOLATILE, ReasonCode.STABLE) else "",
            self.query,
            self.meaning,
            repr([(c.name, c.type) for c in self.columns]),
            repr([(name, [(c.name, c.type) for c in used]) for name, used in sorted(self.used_columns.items())]),
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
