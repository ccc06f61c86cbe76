"""Random cases from a seed: small tables full of NULLs and duplicates, and queries of everything that is supported.

Small domains are the point: keys meet often, groups come and go, rows repeat.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from engine.records import Column
from tests.properties.case import Case, From, Item, Query, Step, Table
from tests.support.view_test import Row

NUMBERS = ("int", "bigint", "decimal(8,2)")
WORDS = ("a", "b", "B", "")


@dataclass(frozen=True)
class Field:
    """A column that can be named in a query."""

    text: str
    type: str


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.aliases = 0
        self.outputs = 0

    def case(self) -> Case:
        tables = tuple(self.table(f"t{number}") for number in range(self.random.randint(1, 3)))
        query, _ = self.query(tables, depth=0)
        steps = tuple(self.step(tables) for _ in range(self.random.randint(1, 3)))
        return Case(tables, query, steps)

    # ---------------------------------------------------------------- tables and changes

    def table(self, name: str) -> Table:
        types = ["int", self.random.choice(("string", "int")), self.random.choice((*NUMBERS, "double"))]
        columns = tuple(Column(column, type_) for column, type_ in zip("kgv", types, strict=True))
        size = self.random.choice((0, 1, 2, 4, 6, 8))
        return Table(name, columns, tuple(self.row(columns) for _ in range(size)))

    def row(self, columns: tuple[Column, ...]) -> Row:
        return tuple(self.value(column) for column in columns)

    def value(self, column: Column) -> object:
        if self.random.random() < 0.2:
            return None
        match column.type:
            case "string":
                return self.random.choice(WORDS)
            case "double":
                return self.random.choice((0.1, 0.2, -1.5, 3.0))
            case "decimal(8,2)":
                return float(self.random.choice((0, 1.25, 2.5, -3, 7.01)))
            case _:
                # Skewed: most keys are 1.
                return self.random.choice((1, 1, 1, 2, 2, 3, 0))

    def step(self, tables: tuple[Table, ...]) -> Step:
        return Step(tuple(self.statement(tables) for _ in range(self.random.choice((1, 1, 2, 3)))))

    def statement(self, tables: tuple[Table, ...]) -> str:
        table = self.random.choice(tables)
        chosen = self.random.choice(table.columns)
        set_, where = f"{chosen.name} = {self.literal(chosen)}", self.dml_condition(table)
        match self.random.randint(0, 9):
            case 0 | 1 | 2:
                rows = ", ".join(self.values(table) for _ in range(self.random.randint(1, 3)))
                return f"INSERT INTO {table.name} VALUES {rows}"
            case 3:
                return f"INSERT INTO {table.name} SELECT * FROM {table.name} {where}"
            case 4 | 5:
                return f"DELETE FROM {table.name} {where}"
            case 6:
                return f"UPDATE {table.name} SET k = k + 1 {where}"
            case 7:
                others = ", ".join(f"{each.name} = {self.literal(each)}" for each in table.columns[1:])
                return f"UPDATE {table.name} SET k = {self.literal(table.columns[0])}, {others} {where}"
            case _:
                return f"UPDATE {table.name} SET {set_} {where}"

    def values(self, table: Table) -> str:
        return "(" + ", ".join(self.literal(column) for column in table.columns) + ")"

    def literal(self, column: Column) -> str:
        value = self.value(column)
        if value is None:
            return "NULL"
        return f"'{value}'" if isinstance(value, str) else f"CAST({value} AS {column.type})"

    def dml_condition(self, table: Table) -> str:
        match self.random.randint(0, 5):
            case 0:
                return ""
            case 1:
                return f"WHERE {self.random.choice(table.columns).name} IS NULL"
            case _:
                column = self.random.choice(table.columns)
                operator = self.random.choice(("=", "=", "<>")) if column.type == "string" else "="
                return f"WHERE {column.name} {operator} {self.literal(column)}"

    # ---------------------------------------------------------------- queries

    def query(self, tables: tuple[Table, ...], depth: int) -> tuple[Query, tuple[Field, ...]]:
        members, fields = self.members(tables, depth)
        where = tuple(self.predicate(fields) for _ in range(self.random.choice((0, 0, 1, 1, 2))))
        if self.random.random() < 0.5:
            return self.grouped(members, fields, where, depth)
        picked = [self.expression(fields) for _ in range(self.random.randint(1, 3))]
        return self.named(picked, members, where)

    def members(self, tables: tuple[Table, ...], depth: int) -> tuple[tuple[From, ...], tuple[Field, ...]]:
        count = self.random.choice((1, 1, 1, 2, 2, 2, 3, 4)) if depth == 0 else self.random.choice((1, 1, 2))
        members: list[From] = []
        fields: list[Field] = []
        for _ in range(count):
            self.aliases += 1
            alias = f"m{self.aliases}"
            source, added = self.source(tables, alias, depth)
            if not members:
                members.append(From(source, alias))
            else:
                how, on = self.join(fields, added)
                members.append(From(source, alias, how, on))
            fields += added
        return tuple(members), tuple(fields)

    def source(self, tables: tuple[Table, ...], alias: str, depth: int) -> tuple[str | Query, list[Field]]:
        if depth < 2 and self.random.random() < 0.3:
            query, inner = self.query(tables, depth + 1)
            return query, [Field(f"{alias}.{field.text}", field.type) for field in inner]
        table = self.random.choice(tables)
        return table.name, [Field(f"{alias}.{column.name}", column.type) for column in table.columns]

    def join(self, left: list[Field], right: list[Field]) -> tuple[str, tuple[str, ...]]:
        pairs = [(a.text, b.text) for a in left for b in right if a.type == b.type and a.type != "double"]
        chance = self.random.random()
        if not pairs or chance < 0.1:
            return self.random.choice((",", "CROSS")), ()
        conditions = [self.condition(pairs) for _ in range(self.random.choice((1, 1, 1, 2)))]
        if self.random.random() < 0.15:
            conditions.append(self.predicate(tuple(left + right)))
        return "JOIN", tuple(conditions)

    def condition(self, pairs: list[tuple[str, str]]) -> str:
        one, other = self.random.choice(pairs)
        operator = self.random.choice(("=", "=", "=", "=", "<=>", "<", "<>"))
        if self.random.random() < 0.1:
            third, fourth = self.random.choice(pairs)
            return f"({one} = {other} OR {third} = {fourth})"
        return f"{one} {operator} {other}"

    def grouped(
        self, members: tuple[From, ...], fields: tuple[Field, ...], where: tuple[str, ...], depth: int
    ) -> tuple[Query, tuple[Field, ...]]:
        keys = [self.key(fields) for _ in range(self.random.choice((0, 1, 1, 1, 2)))]
        shown = [key for key in keys if self.random.random() < 0.8]
        made = [self.aggregate(fields) for _ in range(self.random.choice((1, 1, 2, 3)))]
        having = ()
        if self.random.random() < 0.3:
            call = self.aggregate(fields)
            having = (f"{call.text} {self.random.choice(('>', '<', '=', 'IS NOT NULL AND 1 <'))} 2",)
            if call.type != "double" and self.random.random() < 0.2:
                made.append(Field(f"{call.text} + 1", call.type))
                having = (f"c{self.outputs + len(shown) + len(made) - 1} * 2 > 4",)
        query, put_out = self.named(shown + made, members, where)
        return replace(query, keys=tuple(key.text for key in keys), having=having), put_out

    def named(
        self, picked: list[Field], members: tuple[From, ...], where: tuple[str, ...]
    ) -> tuple[Query, tuple[Field, ...]]:
        first = self.outputs
        self.outputs += len(picked)
        items = tuple(Item(field.text, f"c{number}") for number, field in enumerate(picked, start=first))
        fields = tuple(Field(item.name, field.type) for item, field in zip(items, picked, strict=True))
        return Query(items, members, where), fields

    # ---------------------------------------------------------------- expressions

    def key(self, fields: tuple[Field, ...]) -> Field:
        usable = [field for field in fields if field.type != "double"] or list(fields)
        field = self.random.choice(usable)
        if field.type in ("int", "bigint") and self.random.random() < 0.2:
            return Field(f"{field.text} % 2", field.type)
        if self.random.random() < 0.08:
            return Field("'const'", "string")
        return field

    def aggregate(self, fields: tuple[Field, ...]) -> Field:
        field = self.random.choice(fields)
        numbers = [each for each in fields if each.type in NUMBERS] or [Field("1 + 1", "int")]
        number = self.random.choice(numbers)
        if field.type == "double" and self.random.random() < 0.5:
            return Field(f"sum({field.text})", "double")
        match self.random.randint(0, 7):
            case 0 | 1:
                return Field("count(*)", "bigint")
            case 2:
                return Field(f"count({field.text})", "bigint")
            case 3 | 4:
                return Field(f"sum({number.text})", "bigint" if "int" in number.type else "wide")
            case 5:
                return Field(f"avg({number.text})", "double" if "int" in number.type else "wide")
            case 6:
                return Field(f"count(*) + count({field.text})", "bigint")
            case _:
                return Field(f"COALESCE(sum({number.text}), 0)", "bigint" if "int" in number.type else "wide")

    def expression(self, fields: tuple[Field, ...]) -> Field:
        field = self.random.choice(fields)
        if self.random.random() < 0.6:
            return field
        if self.random.random() < 0.2:
            return Field(self.predicate(fields), "boolean")
        match field.type:
            case "int" | "bigint":
                name = field.text
                texts = (f"{name} + 1", f"-{name}", f"{name} * {name} - 1", f"COALESCE({name}, 9)")
                return Field(self.random.choice(texts), field.type)
            case "string":
                text = self.random.choice((f"upper({field.text})", f"concat({field.text}, 'x')"))
                return Field(text, "string")
            case _:
                return Field(f"CASE WHEN {self.predicate(fields)} THEN 'yes' ELSE 'no' END", "string")

    def predicate(self, fields: tuple[Field, ...]) -> str:
        field = self.random.choice(fields)
        if field.type == "boolean":
            return self.random.choice((field.text, f"NOT {field.text}", f"{field.text} IS NULL"))
        if field.type == "string":
            return self.random.choice(
                (f"{field.text} = 'a'", f"{field.text} LIKE 'b%'", f"{field.text} IN ('a', 'B')", f"{field.text} <> ''")
            )
        number = self.random.randint(0, 3)
        return self.random.choice(
            (
                f"{field.text} > {number}",
                f"{field.text} <= {number}",
                f"{field.text} IS NULL",
                f"{field.text} IS NOT NULL",
                f"NOT ({field.text} = {number})",
                f"({field.text} = {number} OR {field.text} IS NULL)",
                f"{field.text} BETWEEN 1 AND {number}",
            )
        )
