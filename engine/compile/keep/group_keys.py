"""What identifies a group in the stored table."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.nodes import Aggregate, Node, Output, Project
from engine.algebra.scalars import col, lit
from engine.errors import InternalError

#: the key of the only row of an aggregate without GROUP BY
ONE = "__trickle_one"


@dataclass(frozen=True)
class GroupKeys:
    #: columns of the stored table, one for each key of the aggregate, in their order
    identity: tuple[str, ...]
    #: those that the query does not put out, over the aggregate's columns
    hidden: tuple[Output, ...]


def group_keys(root: Node, aggregate: Aggregate) -> GroupKeys:
    if not isinstance(root, Project):
        raise InternalError("a grouped query ends in a Project")
    if not aggregate.keys:
        return GroupKeys((ONE,), (Output(ONE, lit(1), "int"),))
    shown = {output.scalar.as_column: output.name for output in reversed(root.outputs)}
    identity: list[str] = []
    hidden: list[Output] = []
    for number, key in enumerate(aggregate.keys, start=1):
        name = shown.get(key.name)
        if name is None:
            name = f"__trickle_key_{number}"
            hidden.append(Output(name, col(key.name), key.type))
        identity.append(name)
    return GroupKeys(tuple(identity), tuple(hidden))
