"""Smaller tables, steps and statements for a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.properties.case import Case, Condition, Insert, Step, Table, Update
from tests.properties.tree import Named
from tests.properties.walk import walk


def fewer_steps(case: Case) -> Iterator[Case]:
    steps = case.steps
    if len(steps) > 1:
        yield replace(case, steps=(Step(tuple(each for step in steps for each in step.statements)),))
    for number in range(len(steps)):
        yield replace(case, steps=steps[:number] + steps[number + 1 :])
    for number, step in enumerate(steps):
        for place in range(len(step.statements)):
            rest = step.statements[:place] + step.statements[place + 1 :]
            yield replace(case, steps=(*steps[:number], Step(rest), *steps[number + 1 :]))


def less_data(case: Case) -> Iterator[Case]:
    for number, table in enumerate(case.tables):
        for rows in fewer(table.rows):
            yield replace(case, tables=(*case.tables[:number], replace(table, rows=rows), *case.tables[number + 1 :]))
    for number, step in enumerate(case.steps):
        for place, statement in enumerate(step.statements):
            for cut in _simpler_statement(statement):
                made = Step((*step.statements[:place], cut, *step.statements[place + 1 :]))
                yield replace(case, steps=(*case.steps[:number], made, *case.steps[number + 1 :]))
    for table in case.tables:
        for column in table.columns:
            if len(table.columns) > 1 and f".{column.name}" not in case.query.sql():
                cut_case = _without_column(case, table, column.name)
                if cut_case is not None:
                    yield cut_case


def _simpler_statement(statement: Any) -> Iterator[Any]:
    match statement:
        case Insert():
            for rows in fewer(statement.rows):
                if rows:
                    yield replace(statement, rows=rows)
        case Update():
            for sets in fewer(statement.sets):
                if sets:
                    yield replace(statement, sets=sets)
    if isinstance(getattr(statement, "where", None), Condition):
        yield replace(statement, where=None)


def fewer(elements: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    half = len(elements) // 2
    if half > 1:
        yield elements[half:]
        yield elements[:half]
    for number in range(len(elements)):
        yield elements[:number] + elements[number + 1 :]


def without_unused_tables(case: Case) -> Case:
    used = {node.name for node in walk(case.query) if isinstance(node, Named)}
    kept = tuple(table for table in case.tables if table.name in used)
    if not kept or len(kept) == len(case.tables):
        return case
    names = {table.name for table in kept}
    steps = tuple(Step(tuple(each for each in step.statements if each.table in names)) for step in case.steps)
    return replace(case, tables=kept, steps=steps)


def _without_column(case: Case, table: Table, name: str) -> Case | None:
    """The table without a column, and the statements without it too; None where one depends on it."""
    place = [column.name for column in table.columns].index(name)

    def cut_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[:place] + row[place + 1 :]

    steps = []
    for step in case.steps:
        statements: list[Any] = []
        for statement in step.statements:
            if statement.table != table.name:
                statements.append(statement)
                continue
            where = getattr(statement, "where", None)
            if where is not None and where.column == name:
                return None
            match statement:
                case Insert():
                    rows = tuple(map(cut_row, statement.rows))
                    statements.append(replace(statement, columns=cut_row(statement.columns), rows=rows))
                case Update():
                    sets = tuple(each for each in statement.sets if each[0] != name)
                    if sets:
                        statements.append(replace(statement, sets=sets))
                case _:
                    statements.append(statement)
        steps.append(Step(tuple(statements)))
    smaller_table = replace(table, columns=cut_row(table.columns), rows=tuple(map(cut_row, table.rows)))
    tables = tuple(smaller_table if each.name == table.name else each for each in case.tables)
    return replace(case, tables=tables, steps=tuple(steps))
