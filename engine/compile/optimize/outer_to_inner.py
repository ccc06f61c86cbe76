"""An outer join becomes an inner one where a condition above it refuses the rows without a partner.

Of such a row all columns of the other side are NULL. A condition that cannot hold then takes the row away, and it need
not be made: the rules for rows without a partner are the dearest there are.
"""

from __future__ import annotations

from engine.algebra.nodes import Filter, InnerJoin, Node, OuterJoin, Project, keep
from engine.algebra.scalars import Scalar, conjuncts
from engine.algebra.trees import inner_join, rewrite
from engine.compile.truth import can_hold


def outer_to_inner(root: Node) -> Node:
    return rewrite(root, _change)


def _change(node: Node) -> Node:
    match node:
        case Filter(input=source, predicate=predicate):
            return node.with_inputs((_under(source, conjuncts(predicate)),))
        case InnerJoin(members=members, conditions=conditions):
            changed = tuple(_under(member, conditions) for member in members)
            if all(mine is other for mine, other in zip(changed, members, strict=True)):
                return node
            return inner_join(changed, conditions)
        case _:
            return node


def _under(node: Node, conditions: tuple[Scalar, ...]) -> Node:
    """The same rows, as far as they fulfil all conditions."""
    match node:
        case Project(input=below, outputs=outputs):
            values = {output.name: output.scalar for output in outputs}
            return node.with_inputs((_under(below, tuple(each.substitute(values) for each in conditions)),))
        case OuterJoin(left=left, right=right):
            lone_left = all(can_hold(each, right.names) for each in conditions)
            lone_right = node.full and all(can_hold(each, left.names) for each in conditions)
            match (lone_left, lone_right):
                case (False, False):
                    return InnerJoin((left, right), node.conditions)
                case (True, False) if node.full:
                    return OuterJoin(left, right, node.conditions)
                case (False, True):
                    return Project(OuterJoin(right, left, node.conditions), keep(node.columns))
            return node
        case _:
            return node
