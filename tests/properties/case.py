"""A generated case: tables, a query and steps, as values that can be written as SQL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from engine.records import Column
from tests.properties.tree import Query
from tests.properties.types import MOMENT
from tests.properties.walk import features_of, walk
from tests.support.fake_lake import FakeLake
from tests.support.view_test import Row, write_row


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Condition:
    """Which rows a statement takes."""

    column: str
    operator: str
    value: object
    type: str = "int"

    def sql(self) -> str:
        right = "" if self.operator == "IS NULL" else f" {literal(self.value, self.type)}"
        return f" WHERE {self.column} {self.operator}{right}"


@dataclass(frozen=True)
class Insert:
    table: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def sql(self) -> str:
        return f"INSERT INTO {self.table} {self.values()}"

    def values(self) -> str:
        rows = ", ".join(f"({', '.join(map(self._cell, row, self.columns))})" for row in self.rows)
        return f"VALUES {rows}"

    @staticmethod
    def _cell(value: object, column: Column) -> str:
        return literal(value, column.type)


@dataclass(frozen=True)
class InsertAgain:
    """Rows that are there, once more."""

    table: str
    where: Condition | None

    def sql(self) -> str:
        return f"INSERT INTO {self.table} SELECT * FROM {self.table}{_where(self.where)}"


@dataclass(frozen=True)
class Delete:
    table: str
    where: Condition | None

    def sql(self) -> str:
        return f"DELETE FROM {self.table}{_where(self.where)}"


@dataclass(frozen=True)
class Update:
    table: str
    #: a value, an expression as text, or a column that is set to itself
    sets: tuple[tuple[str, object], ...]
    where: Condition | None

    def sql(self) -> str:
        sets = ", ".join(f"{name} = {value}" for name, value in self.assignments())
        return f"UPDATE {self.table} SET {sets}{_where(self.where)}"

    def assignments(self) -> list[tuple[str, str]]:
        return [(name, self._new(name, value)) for name, value in self.sets]

    @staticmethod
    def _new(name: str, value: object) -> str:
        if isinstance(value, Column):
            return value.name
        return "k + 1" if (name, value) == ("k", "k + 1") else literal(value, "")


Statement = Insert | InsertAgain | Delete | Update


@dataclass(frozen=True)
class Step:
    statements: tuple[Statement, ...]

    def sql(self) -> str:
        return ";\n".join(statement.sql() for statement in self.statements)

    def run(self, lake: FakeLake) -> None:
        """The same as running its SQL, but without anybody reading it."""
        for statement in self.statements:
            where = for_duckdb(_where(getattr(statement, "where", None)))
            match statement:
                case Insert():
                    lake.append(statement.table, for_duckdb(statement.values()))
                case InsertAgain():
                    lake.append(statement.table, f"SELECT * FROM {statement.table} {where}")
                case Delete():
                    lake.delete(statement.table, where)
                case Update():
                    sets = [(name, for_duckdb(value)) for name, value in statement.assignments()]
                    lake.update(statement.table, sets, where)


@dataclass(frozen=True)
class Case:
    tables: tuple[Table, ...]
    query: Query
    steps: tuple[Step, ...]
    #: The text leaves open which of several rows are meant: only a full refresh by the same plan can be compared.
    ties: bool = False

    @property
    def relations(self) -> dict[str, tuple[Column, ...]]:
        return {table.name: table.columns for table in self.tables}

    @property
    def features(self) -> frozenset[str]:
        found = features_of(self.query)
        more = (("ties", self.ties), ("noisy_doubles", self.is_noisy), ("moments", self.has_moments))
        return found | {name for name, is_there in more if is_there}

    @property
    def has_moments(self) -> bool:
        types = [column.type for table in self.tables for column in table.columns]
        return MOMENT in types or any(getattr(node, "type", "") == MOMENT for node in walk(self.query))

    @property
    def is_noisy(self) -> bool:
        """Are there doubles whose sums differ in their last digit by the order of addition?"""
        values = [value for table in self.tables for row in table.rows for value in row if isinstance(value, float)]
        return any(value * 4 != int(value * 4) for value in values)

    def with_query(self, query: Query) -> Case:
        return replace(self, query=query)

    def as_view_test(self, about: str, kept: str) -> str:
        """The case as a file that can be kept."""
        parts = [f"# {about}"]
        for table in self.tables:
            columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
            parts.append("\n".join([f"table {table.name}({columns})", *map(write_row, table.rows)]))
        parts += [f"view\n{self.query.sql()}", f"kept {kept}"]
        parts += ["step\n" + step.sql() for step in self.steps if step.statements]
        return "\n\n".join(parts) + "\n"


def literal(value: object, type_: str) -> str:
    """A value in a statement. Decimals and doubles are cast, because 1.5 alone is either."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).lower()
        case float():
            return f"CAST({value} AS double)"
        case Decimal():
            return f"CAST({value} AS decimal(8,2))"
        case datetime():
            return f"TIMESTAMP_NTZ '{value}'"
        case date():
            return f"DATE '{value}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def for_duckdb(text: str) -> str:
    """The little that DuckDB writes otherwise in a statement."""
    return text.replace("TIMESTAMP_NTZ '", "TIMESTAMP '")


def _where(condition: Condition | None) -> str:
    return condition.sql() if condition is not None else ""
