"""Removes "only if anything changed" from what is computed before and after: both are the same if nothing did.

Finding out whether anything changed costs as much as computing. All of them go, or none: what one place asks for and
another does not would be taken for gone. They stay where a float might come out differently, though nothing changed.
"""

from __future__ import annotations

from engine.algebra.nodes import Node, SemiJoin
from engine.algebra.trees import nodes_of, rewrite
from engine.compile.exactness import inexact_columns


def drop_guards(root: Node) -> Node:
    guards = [node for node in nodes_of(root) if _is_guard(node)]
    if not guards or any(inexact_columns(guard) for guard in guards):
        return root
    return rewrite(root, lambda node: node.inputs[0] if _is_guard(node) else node)


def _is_guard(node: Node) -> bool:
    return isinstance(node, SemiJoin) and not node.pairs
