"""Subtrees that say the same become one, which is written and computed once.

Rules that move things make equal subtrees of their own: each branch of a union gets its touched keys pushed for itself.
"""

from __future__ import annotations

from dataclasses import fields

from engine.algebra.nodes import Node
from engine.algebra.trees import rewrite


def share_equal(root: Node) -> Node:
    known: dict[tuple[object, ...], Node] = {}
    return rewrite(root, lambda node: known.setdefault(_identity(node), node))


def _identity(node: Node) -> tuple[object, ...]:
    """Two operators are equal if all but their inputs is, and their inputs, which come first, are the same."""
    own = (getattr(node, each.name) for each in fields(node) if each.name not in node.input_fields)
    return (type(node), *own, *map(id, node.inputs))
