"""Moves "only the touched keys" from above a query down to the inputs that have those keys.

A SemiJoin commutes with what works row by row, and with a join when one input has all its keys. So the other
sides of a join are read only for keys that occur in the change.
"""

from __future__ import annotations

from engine.algebra.nodes import Filter, InnerJoin, Node, Project, SemiJoin, rewrite


def push_touched_keys(root: Node) -> Node:
    return rewrite(root, lambda node: _push(node) if isinstance(node, SemiJoin) and node.pairs else node)


def _push(node: SemiJoin) -> Node:
    match node.input:
        case Filter(input=source, predicate=predicate):
            return Filter(_push(SemiJoin(source, node.touched, node.pairs)), predicate)
        case Project(input=source, outputs=outputs):
            values = {output.name: output.scalar for output in outputs}
            pairs = tuple((scalar.substitute(values), name) for scalar, name in node.pairs)
            return Project(_push(SemiJoin(source, node.touched, pairs)), outputs)
        case InnerJoin(members=members, conditions=conditions):
            wanted = frozenset().union(*(scalar.columns for scalar, _ in node.pairs))
            for index, member in enumerate(members):
                if wanted and wanted <= member.names:
                    pushed = _push(SemiJoin(member, node.touched, node.pairs))
                    return InnerJoin((*members[:index], pushed, *members[index + 1 :]), conditions)
            return node
        case _:
            return node
