"""Where more rows below mean more rows above, and nothing else: sources that only grew make the result only grow."""

from __future__ import annotations

from engine.algebra.nodes import Explode, Filter, InnerJoin, Node, Project, Repeat, Scan, UnionAll, Values


def only_grows(root: Node) -> bool:
    """Not where rows are counted or missed; by the rules of these operators each change then has the weight +1."""
    grows = isinstance(root, Scan | Values | Filter | Project | InnerJoin | UnionAll | Explode | Repeat)
    return grows and all(map(only_grows, root.inputs))
