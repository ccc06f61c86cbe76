"""A plan bound to one refresh: which sources changed, and how, decides what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from engine.algebra.nodes import Empty, Leaf, Node, Role, Scan
from engine.algebra.trees import columns_by_leaf, rewrite
from engine.compile.keep import Kept
from engine.compile.optimize import STATEMENT_RULES, Optimized, Rule, optimize
from engine.compile.picture import Picture
from engine.records import Column


class Change(StrEnum):
    """What happened to a source between two versions."""

    NONE = "none"
    APPEND = "append"
    MIXED = "mixed"


@dataclass(frozen=True)
class Statements:
    """What one refresh runs, as trees ready to be rendered."""

    #: its result is read by `change` as the leaf NET
    first: Node | None
    #: gives the change set
    change: Node
    #: does it only insert?
    appends: bool
    pictures: tuple[Picture, ...]
    #: tried instead of `first`: a row of it without a weight says that it cannot tell
    shortcut: Node | None = None

    @property
    def trees(self) -> tuple[Node, ...]:
        """In the order in which they run."""
        return tuple(tree for tree in (self.shortcut, self.first, self.change) if tree is not None)

    @property
    def usual(self) -> Statements:
        """What runs of it unless the shortcut cannot tell."""
        return self if self.shortcut is None else replace(self, first=None)

    @property
    def is_empty(self) -> bool:
        return isinstance(self.first or self.change, Empty)

    @cached_property
    def reads(self) -> dict[Leaf, tuple[Column, ...]]:
        """The columns that are read of each leaf."""
        return columns_by_leaf(*self.trees)

    @property
    def whole_relations(self) -> frozenset[str]:
        """Sources of which more than the change is read."""
        return frozenset(leaf.name for leaf in self.reads if leaf.role in (Role.NEW, Role.OLD))


def bind(kept: Kept, changes: Mapping[str, Change], rules: tuple[Rule, ...] = STATEMENT_RULES) -> Statements:
    """Prunes what did not change. `changes` says it of each source; one that is not named did not change."""
    grew_only = all(change is not Change.MIXED for change in changes.values())
    if grew_only and kept.append is not None:
        only = _statement(kept.append, changes, rules, "append")
        return Statements(None, only.root, kept.by_row, only.pictures)
    first = _statement(kept.first, changes, rules, "first") if kept.first is not None else None
    change = _statement(kept.change, changes, rules, "change")
    shortcut = _statement(kept.shortcut, changes, rules, "shortcut") if kept.shortcut is not None else None
    parts = tuple(part for part in (shortcut, first, change) if part is not None)
    pictures = tuple(picture for part in parts for picture in part.pictures)
    return Statements(first.root if first else None, change.root, False, pictures, shortcut.root if shortcut else None)


def _statement(tree: Node, changes: Mapping[str, Change], rules: tuple[Rule, ...], name: str) -> Optimized:
    return optimize(_settle(tree, changes), rules, f"{name}: ")


def _settle(root: Node, changes: Mapping[str, Change]) -> Node:
    """Leaves of sources that did not change: no change, and the old version is the new one."""

    def settle(node: Node) -> Node:
        if not isinstance(node, Scan) or changes.get(node.leaf.name, Change.NONE) is not Change.NONE:
            return node
        match node.leaf.role:
            case Role.DELTA:
                return Empty(node.columns)
            case Role.OLD:
                return replace(node, leaf=replace(node.leaf, role=Role.NEW))
            case _:
                return node

    return rewrite(root, settle)
