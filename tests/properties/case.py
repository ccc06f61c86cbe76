"""A generated case: tables, a query and steps, as values that can be written as SQL and cut smaller piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar

from engine.records import Column
from tests.support.view_test import Row, write_row

T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    text: str
    name: str


@dataclass(frozen=True)
class From:
    """One member of FROM; `how` is the word before it, for all but the first."""

    source: str | Query
    alias: str
    how: str = ","
    on: tuple[str, ...] = ()

    def sql(self, first: bool) -> str:
        source = self.source if isinstance(self.source, str) else f"({self.source.sql()})"
        text = f"{source} AS {self.alias}" if first else f"{self._joined()} {source} AS {self.alias}"
        if first or self.how == ",":
            return text
        return f"{text} {self.how.removeprefix('JOIN ')}" if "USING" in self.how else text + self._condition()

    def _joined(self) -> str:
        if self.how == ",":
            return ","
        return "JOIN" if self.on or "USING" in self.how else "CROSS JOIN"

    def _condition(self) -> str:
        return f" ON {' AND '.join(self.on)}" if self.on else ""


@dataclass(frozen=True)
class Query:
    items: tuple[Item, ...]
    members: tuple[From, ...]
    where: tuple[str, ...] = ()
    #: None where nothing is grouped
    keys: tuple[str, ...] | None = None
    having: tuple[str, ...] = ()

    def sql(self) -> str:
        parts = ["SELECT", ", ".join(f"{item.text} AS {item.name}" for item in self.items), "FROM"]
        parts += [member.sql(first=number == 0) for number, member in enumerate(self.members)]
        if self.where:
            parts += ["WHERE", " AND ".join(self.where)]
        if self.keys:
            parts += ["GROUP BY", ", ".join(self.keys)]
        if self.having:
            parts += ["HAVING", " AND ".join(self.having)]
        return " ".join(parts).replace(" ,", ",")


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Step:
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    tables: tuple[Table, ...]
    query: Query
    steps: tuple[Step, ...]

    @property
    def relations(self) -> dict[str, tuple[Column, ...]]:
        return {table.name: table.columns for table in self.tables}

    def as_view_test(self, about: str, kept: str) -> str:
        """The case as a file that can be kept."""
        parts = [f"# {about}"]
        for table in self.tables:
            columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
            parts.append("\n".join([f"table {table.name}({columns})", *map(write_row, table.rows)]))
        parts += [f"view\n{self.query.sql()}", f"kept {kept}"]
        parts += ["step\n" + ";\n".join(step.statements) for step in self.steps]
        return "\n\n".join(parts) + "\n"


def smaller(value: T) -> Iterator[T]:
    """The same with one element less in one of its tuples, however deep; larger cuts first."""
    if not is_dataclass(value):
        return
    for each in fields(value):
        part = getattr(value, each.name)
        if isinstance(part, tuple):
            for index in range(len(part)):
                yield replace(value, **{each.name: part[:index] + part[index + 1 :]})
    for each in fields(value):
        part = getattr(value, each.name)
        if isinstance(part, tuple):
            for index, element in enumerate(part):
                for cut in smaller(element):
                    yield replace(value, **{each.name: (*part[:index], cut, *part[index + 1 :])})
        elif is_dataclass(part):
            for cut in smaller(part):
                yield replace(value, **{each.name: cut})
