"""Which columns a name can mean at a place in a query, and unique names for columns in the tree."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Visible:
    """A column that can be named: `table.name`, known in the tree as `own`."""

    table: str
    name: str
    own: str


class Scope:
    """The columns of one FROM clause. Names compare without case, as in Spark."""

    def __init__(self, columns: list[Visible], merged: frozenset[str] = frozenset()) -> None:
        self._columns = columns
        #: own names that only `table.name` reaches, because USING merged them into another
        self._merged = merged

    def find(self, name: str, table: str | None) -> list[Visible]:
        return [
            each
            for each in self._columns
            if each.name.casefold() == name.casefold()
            and (each.table.casefold() == table.casefold() if table else each.own not in self._merged)
        ]

    def names_of(self, own: frozenset[str]) -> list[str]:
        """What the author calls columns of the tree."""
        return sorted(each.name for each in self._columns if each.own in own)

    def has_table(self, table: str) -> bool:
        return any(each.table.casefold() == table.casefold() for each in self._columns)

    def all_of(self, table: str | None) -> list[Visible]:
        """What `*` or `table.*` stands for."""
        if table is None:
            return [each for each in self._columns if each.own not in self._merged]
        return [each for each in self._columns if each.table.casefold() == table.casefold()]

    def beside(self, columns: list[Visible]) -> Scope:
        return Scope(self._columns + columns, self._merged)

    def beside_using(self, columns: list[Visible], shared: list[str]) -> Scope:
        """Shared columns come first and once, as the SQL standard wants it."""
        folded = [name.casefold() for name in shared]
        merged = frozenset(each.own for each in columns if each.name.casefold() in folded)
        first = [
            each
            for name in folded
            for each in self._columns
            if each.name.casefold() == name and each.own not in self._merged
        ]
        rest = [each for each in self._columns if each not in first]
        return Scope(first + rest + columns, self._merged | merged)

    def nearest(self, name: str) -> str | None:
        near = difflib.get_close_matches(name.casefold(), [each.name.casefold() for each in self._columns], n=1)
        return near[0] if near else None


class Names:
    """Hands out names that are unique in one tree and still tell where they come from."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, prefix: str, name: str) -> str:
        base = f"{prefix}_{name}".strip("_").lower() or "column"
        candidate, count = base, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{base}_{count}"
        self._taken.add(candidate)
        return candidate
