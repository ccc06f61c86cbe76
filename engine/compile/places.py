"""Where the leaves of a statement are found when Spark runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.nodes import Leaf, Role
from engine.errors import InternalError


@dataclass(frozen=True)
class TableVersion:
    path: str
    version: int


@dataclass(frozen=True)
class VersionedPlaces:
    """Sources by path and version, changes and results of earlier statements by the name of their view."""

    new: Mapping[str, TableVersion]
    old: Mapping[str, TableVersion]
    stored: TableVersion | None = None

    def __call__(self, leaf: Leaf) -> exp.Expr:
        match leaf.role:
            case Role.NEW:
                return at_version(self.new[leaf.name])
            case Role.OLD:
                return at_version(self.old[leaf.name])
            case Role.STORED if self.stored is not None:
                return at_version(self.stored)
            case Role.DELTA | Role.NET:
                return exp.to_table(f'"{view_name(leaf)}"')
            case _:
                raise InternalError(f"no place for {leaf}")


def view_name(leaf: Leaf) -> str:
    """The temporary view that holds a change or a first statement's result."""
    return f"__trickle_{leaf}"


def at_version(table: TableVersion) -> exp.Expr:
    """A Delta table as it was: delta.`path` VERSION AS OF n."""
    return exp.Table(
        this=exp.to_identifier(table.path, quoted=True),
        db=exp.to_identifier("delta"),
        version=exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(table.version)),
    )
