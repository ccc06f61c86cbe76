"""A maintenance plan: everything a refresh needs to know of a query, made once from its text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.algebra.nodes import Node
from engine.compile.keep import Kept
from engine.compile.picture import Picture, draw
from engine.compile.render import render, table
from engine.compile.replay import Replay
from engine.records import Column, Notice, Reason, ReasonCode
from engine.results import PlanNode, Stage

#: counts up when the same query is kept in another form, so that stored tables of the old form are rebuilt
LAYOUT = 1


@dataclass(frozen=True)
class MaintenancePlan:
    query: str
    #: names and texts of the views that it reads, each behind those that it reads itself
    views: tuple[tuple[str, str], ...]
    #: sources under their names in the workspace, in order of appearance
    sources: tuple[str, ...]
    #: the columns of each source that the query reads; none of a source that it only names, in a WITH that is not used
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
        return render(self.root, lambda leaf: table(leaf.name), pretty=True)

    def query_at(self, moment: datetime | None) -> str:
        """The canonical query; with the moment in place of the clock, where there is one and that can be."""
        if moment is None or self.replay is None:
            return self.canonical_query
        return self.replay.at(self.canonical_query, moment)

    def views_at(self, moment: datetime | None) -> tuple[tuple[str, str], ...]:
        """What has to be shown under the names of the views, in this order."""
        if moment is None or self.replay is None:
            return self.views
        return tuple((name, self.replay.at(text, moment, view=name)) for name, text in self.views)

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
        return "".join([_digest("\n".join(parts))[:32], *(f";{name}={digest}" for name, digest in digests(self.views))])


def digests(views: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a fingerprint has of views: names, in lower case, and digests of their texts."""
    return tuple(sorted((name.lower(), _digest(text)[:16]) for name, text in views))


def replaced_views(old: str, new: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The views that a fingerprint knows otherwise than they are now, or not at all."""
    known = dict(part.split("=") for part in old.split(";")[1:])
    now = dict(digests(new))
    return tuple(sorted(name for name in known.keys() | now.keys() if known.get(name) != now.get(name)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
