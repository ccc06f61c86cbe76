"""The two questions that every operator of a query must answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from engine.algebra.nodes import Node
from engine.errors import UnsupportedOperator


@dataclass(frozen=True)
class Rule:
    """How an operator is maintained, for people."""

    name: str
    why: str


def delta(node: Node) -> Node:
    """The change of the operator's result: its columns and the weight. Each tree has one, so it can be shared."""
    known: Node | None = node.__dict__.get("_delta")
    if known is None:
        known = node.__dict__["_delta"] = change_of(node)
    return known


@singledispatch
def change_of(node: Node) -> Node:
    """The rule of each operator. It asks `delta` for the changes of its inputs."""
    raise UnsupportedOperator(
        f"{type(node).__name__} cannot be maintained differentially yet",
        hint="refresh_mode = 'FULL' recomputes it; AUTO does so by itself",
    )


@singledispatch
def rule_of(node: Node) -> Rule:
    """The rule by which the operator is maintained."""
    raise UnsupportedOperator(f"{type(node).__name__} has no rule")
