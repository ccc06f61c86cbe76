"""Which columns a name can mean at a place in a query, and unique names for columns in the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True)
class Visible:
    """A column that can be named: `table.name`, known in the tree as `own`."""

    table: str
    name: str
    own: str
    #: USING made one column of two: the name alone means that one
    only_with_table: bool = False

    def is_called(self, name: str, table: str | None) -> bool:
        """Names compare without case, as in Spark."""
        if self.name.casefold() != name.casefold():
            return False
        return self.table.casefold() == table.casefold() if table else not self.only_with_table


class Outside(Protocol):
    """What a SELECT can see of the query around it."""

    def find(self, name: str, table: str | None) -> list[Visible]: ...

    def has_table(self, table: str) -> bool: ...


@dataclass(frozen=True)
class Scope:
    """The columns of one FROM clause."""

    columns: tuple[Visible, ...] = ()
    #: asked for names that mean nothing here
    outside: Outside | None = None

    def find(self, name: str, table: str | None) -> list[Visible]:
        found = self.find_here(name, table)
        if found or self.outside is None:
            return found
        return self.outside.find(name, table)  # also of a table that is called as one here

    def find_here(self, name: str, table: str | None = None) -> list[Visible]:
        return [each for each in self.columns if each.is_called(name, table)]

    def names_of(self, own: frozenset[str]) -> list[str]:
        """What the author calls columns of the tree."""
        return sorted(each.name for each in self.columns if each.own in own)

    def has_table(self, table: str) -> bool:
        is_here = any(each.table.casefold() == table.casefold() for each in self.columns)
        return is_here or (self.outside is not None and self.outside.has_table(table))

    def all_of(self, table: str | None) -> list[Visible]:
        """What `*` or `table.*` stands for."""
        if table is None:
            return [each for each in self.columns if not each.only_with_table]
        return [each for each in self.columns if each.table.casefold() == table.casefold()]

    def beside(self, other: Scope) -> Scope:
        return replace(self, columns=self.columns + other.columns)

    def beside_sharing(self, other: Scope, shared: Mapping[str, str]) -> Scope:
        """Shared columns come first and once, under these own names, as the SQL standard wants it of USING."""
        folded = {name.casefold() for name in shared}
        both = self.columns + other.columns
        rest = tuple(replace(each, only_with_table=True) if each.name.casefold() in folded else each for each in both)
        return replace(self, columns=tuple(Visible("", name, own) for name, own in shared.items()) + rest)

    def with_own(self, changed: Mapping[str, str]) -> Scope:
        """The same names, where columns of the tree are called otherwise by now."""
        return replace(self, columns=tuple(replace(each, own=changed.get(each.own, each.own)) for each in self.columns))

    def within(self, outside: Outside | None) -> Scope:
        return replace(self, outside=outside)


def aliased(columns: Sequence[Visible], table: str, names: Sequence[str] = ()) -> tuple[Visible, ...]:
    """What is visible of a relation behind its alias `t` or `t(a, b)`."""
    renamed = [*names, *(each.name for each in columns[len(names) :])]
    return tuple(Visible(table, name, each.own) for name, each in zip(renamed, columns, strict=True))


class Names:
    """Hands out names that are unique in one tree and still tell where they come from."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        #: what people call those that were handed out
        self.known_as: dict[str, str] = {}

    def fresh(self, prefix: str, name: str) -> str:
        base = f"{prefix}_{name}".strip("_").lower() or "column"
        candidate, count = base, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{base}_{count}"
        self._taken.add(candidate)
        self.known_as[candidate] = self.known_as.get(name, name)
        return candidate
