"""What the changes of both benchmarks have in common: a statement, the table it changes, and how values are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """DML that reads no table but the one it changes, so that a lake may lack the others."""

    table: str
    sql: str


#: what happens between two refreshes
Cycle = list[Statement]
Cycles = Iterator[Cycle]


def update(table: str, sets: str, where: str) -> Statement:
    return Statement(table, f"UPDATE {table} SET {sets} WHERE {where}")


def delete(table: str, where: str) -> Statement:
    return Statement(table, f"DELETE FROM {table} WHERE {where}")


def insert(table: str, rows: Iterable[Iterable[object]]) -> Statement:
    values = ",\n".join(f"({', '.join(map(literal, row))})" for row in rows)
    return Statement(table, f"INSERT INTO {table} VALUES {values}")


def duplicate(table: str, where: str) -> Statement:
    """The same rows once more."""
    return Statement(table, f"INSERT INTO {table} SELECT * FROM {table} WHERE {where}")


def one_of(column: str, keys: Iterable[int]) -> str:
    return f"{column} IN ({', '.join(map(str, keys))})"


def literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)
