"""What every way of keeping a result says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.nodes import Leaf, Node, Output, Role, Scan
from engine.algebra.scalars import Scalar, case, lit
from engine.compile.differentiate import Rule
from engine.records import Column

OP = "__trickle_op"
#: the identity of a row without a key: which refresh wrote it, and where in its result
SEQUENCE = "__trickle_seq"
POSITION = "__trickle_pos"

STORED = Leaf(Role.STORED, "stored")
NET = Leaf(Role.NET, "net")


@dataclass(frozen=True)
class Kept:
    rule: Rule
    #: the whole result as stored, without SEQUENCE and POSITION
    full: Node
    #: a first statement, whose result the second one reads as the leaf NET; None where one is enough
    first: Node | None
    #: the change set, from the change of the sources (or NET) and what is stored
    change: Node
    #: the change set in one statement when the sources only grew, which for rows only inserts; None where it would be
    #: the same
    append: Node | None
    identity: tuple[str, ...]
    visible: tuple[Column, ...]
    hidden: tuple[Column, ...]
    #: instead of `first`, where that is dear: the same, or not enough to tell, which a row without a weight says
    shortcut: Node | None = None
    #: the operator of the query whose groups are the stored rows: this way maintains it, and no rule of its own
    groups: Node | None = None

    @property
    def by_row(self) -> bool:
        """Are rows identified by SEQUENCE and POSITION, which the commit assigns?"""
        return self.identity == (SEQUENCE, POSITION)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of the stored table, in order."""
        return self.visible + self.hidden


def stored(columns: tuple[Column, ...]) -> Scan:
    """Columns of the stored table, under names that cannot clash."""
    return Scan(STORED, tuple((stored_name(column.name), column.name, column.type) for column in columns))


def stored_name(name: str) -> str:
    return f"__s_{name}"


def op(*branches: tuple[Scalar, str], otherwise: str) -> Output:
    """The column that says what to do with a row of the change set."""
    return Output(OP, case(*((when, lit(then)) for when, then in branches), otherwise=lit(otherwise)), "string")
