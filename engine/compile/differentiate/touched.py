"""Keys that occur in a change: what everything that cannot be added to is looked up by again."""

from __future__ import annotations

from collections.abc import Mapping

from engine.algebra.nodes import WEIGHT, Aggregate, Node, Output, Project
from engine.algebra.scalars import Scalar, col

#: of a semi join with them: (scalar over its input, column of the touched keys)
Pairs = tuple[tuple[Scalar, str], ...]


def key_name(name: str) -> str:
    return f"__k_{name}"


def touched_values(change: Node, keys: Mapping[str, Scalar], types: Mapping[str, str]) -> tuple[Node, Pairs]:
    """The distinct values of `keys` in a change, and how rows are compared with them. Without keys: the change."""
    if not keys:
        return Project(change, (Output("__k", col(WEIGHT), "int"),)), ()
    named = tuple(Output(key_name(name), scalar, types[name]) for name, scalar in keys.items())
    values = Project(change, named)
    distinct = Aggregate(values, tuple(Output(each.name, col(each.name), each.type) for each in named), ())
    return distinct, tuple((scalar, key_name(name)) for name, scalar in keys.items())
