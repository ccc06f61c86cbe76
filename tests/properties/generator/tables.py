"""Small tables full of NULLs and duplicates, and statements that change them.

Small domains are the point: keys meet often, groups come and go, rows repeat.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from engine.records import Column
from tests.properties.case import Condition, Delete, Insert, InsertAgain, Statement, Step, Table, Update
from tests.properties.generator.dice import Dice
from tests.support.view_test import Row

WORDS = ("a", "b", "B", "", "a,b")
DECIMALS = tuple(Decimal(each) for each in ("0.00", "1.25", "2.50", "-3.00", "7.01"))
#: sums of these are the same in every order
HALVES = (0.5, 0.25, -1.5, 3.0)
#: sums of these are not
TENTHS = (0.1, 0.2, -1.5, 3.0)
DAYS = (date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 29), date(2023, 12, 31))
MOMENTS = (datetime(2024, 1, 31, 10), datetime(2024, 2, 1), datetime(2024, 2, 1, 0, 30))

#: letters of columns by type, so that tables share names for NATURAL and USING, mostly with one type
FURTHER = {"w": "int", "l": "bigint", "d": "double", "e": "date", "s": "timestamp_ntz", "b": "boolean"}


class Tables(Dice):
    def tables(self) -> tuple[Table, ...]:
        self.doubles = TENTHS if self.wants("noisy_doubles", 0.15) else HALVES
        return tuple(self.table(f"t{number}") for number in range(self.few(1, 2, 2, 3)))

    def table(self, name: str) -> Table:
        numbers = self.choice(("int", "bigint", "decimal(8,2)", "decimal(8,2)", "double"))
        types = {"k": "int", "g": self.choice(("string", "string", "int")), "v": numbers}
        further = sorted(letter for letter, type_ in FURTHER.items() if type_ in self.types)
        for letter in sorted(self.random.sample(further, self.few(0, 0, 1, 1, 2))):
            types[letter] = FURTHER[letter]
        columns = tuple(Column(letter, type_) for letter, type_ in types.items())
        size = 0 if self.chance(0.06) else self.few(2, 3, 4, 5, 6, 7, 8)
        rows = [self.row(columns) for _ in range(size)]
        rows += [self.choice(rows) for _ in range(self.few(0, 0, 0, 1, 2)) if rows]
        return Table(name, columns, tuple(rows))

    def row(self, columns: tuple[Column, ...]) -> Row:
        return tuple(self.value(column) for column in columns)

    def value(self, column: Column) -> object:
        if self.chance(0.15):
            return None
        match column.type:
            case "string":
                return self.choice(WORDS)
            case "double":
                return self.choice(self.doubles)
            case "decimal(8,2)":
                return self.choice(DECIMALS)
            case "date":
                return self.choice(DAYS)
            case "timestamp_ntz":
                return self.choice(MOMENTS)
            case "boolean":
                return self.chance(0.5)
            case _:
                # Skewed: most keys are 1.
                return self.choice((1, 1, 1, 2, 2, 3, 0))

    # ---------------------------------------------------------------- changes

    def step(self, tables: tuple[Table, ...]) -> Step:
        if self.chance(0.08):
            return self.together(tables)
        statements: list[Statement] = []
        for _ in range(self.few(1, 2, 2, 3)):
            statements += self.statements(self.choice(tables))
        return Step(tuple(statements))

    def together(self, tables: tuple[Table, ...]) -> Step:
        """The same key changes or goes in every table at once."""
        key = Condition("k", "=", self.choice((1, 1, 2)))
        moves = self.chance(0.4)
        return Step(tuple(Update(t.name, (("k", 2),), key) if moves else Delete(t.name, key) for t in tables))

    def statements(self, table: Table) -> tuple[Statement, ...]:
        where, column = self.condition(table), self.choice(table.columns)
        match int(self.random.random() * 20):
            case 0 | 1 | 2 | 3 | 4 | 5:
                rows = tuple(self.row(table.columns) for _ in range(self.few(1, 1, 2, 3)))
                return (Insert(table.name, table.columns, rows),)
            case 6 | 7:
                return (InsertAgain(table.name, where),)
            case 8 | 9 | 10:
                return (Delete(table.name, where),)
            case 11:
                return (Delete(table.name, None),)
            case 12:
                # What was there comes back, so that nothing, or only its number, has changed.
                back = Insert(table.name, table.columns, table.rows or (self.row(table.columns),))
                return (Delete(table.name, None), back) if self.chance(0.6) else (back,)
            case 13:
                return (Update(table.name, ((column.name, column),), where),)
            case 14:
                return (Update(table.name, ((column.name, None),), where),)
            case 15:
                return (Update(table.name, (("k", "k + 1"),), where),)
            case 16:
                sets = tuple((each.name, self.value(each)) for each in table.columns)
                return (Update(table.name, sets, where),)
            case 17:
                return (Delete(table.name, Condition("k", "=", 99)),)
            case _:
                return (Update(table.name, ((column.name, self.value(column)),), where),)

    def condition(self, table: Table) -> Condition | None:
        if self.chance(0.12):
            return None
        column = self.choice((*table.columns[:2], self.choice(table.columns)))
        if self.chance(0.15):
            return Condition(column.name, "IS NULL", None, column.type)
        operator = "<>" if self.chance(0.2) else "="
        there = [value for value in (row[table.columns.index(column)] for row in table.rows) if value is not None]
        # Mostly something that was there at first, so that rows are hit.
        value = self.choice(there) if there and self.chance(0.8) else self.value(column)
        return Condition(column.name, operator, value, column.type)
