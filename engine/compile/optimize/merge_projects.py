"""Two projections in a row become one, unless an expression would then be computed twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from engine.algebra.nodes import Node, Project
from engine.algebra.trees import rewrite


def merge_projects(root: Node) -> Node:
    return rewrite(root, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Project(input=Project() as below, outputs=outputs):
            values = {output.name: output.scalar for output in below.outputs}
            uses = Counter(name for output in outputs for name in output.scalar.column_uses)
            if any(count > 1 and values[name].as_column is None for name, count in uses.items()):
                return node
            return Project(below.input, tuple(replace(each, scalar=each.scalar.substitute(values)) for each in outputs))
        case _:
            return node
