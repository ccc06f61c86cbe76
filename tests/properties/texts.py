"""The generator held against DuckDB alone: its texts are valid, mean one thing, and its oracles hold.

Nothing of the compiler is asked here; what fails here is a mistake of the generator, or of DuckDB.
"""

from __future__ import annotations

import random

import duckdb
from sqlglot.errors import SqlglotError

from tests.properties.case import Case
from tests.properties.features import Weights
from tests.properties.oracles import partitions, unoptimized
from tests.properties.tree import Query
from tests.support.duck_analyzer import for_duckdb
from tests.support.fake_lake import FakeLake
from tests.support.multisets import same_rows, written
from tests.support.view_test import Row


def check_texts(case: Case, seed: int, chosen: Weights) -> None:
    """Raises what is wrong with the text of a case, at its start and after its steps."""
    lake = FakeLake(case.relations)
    for table in case.tables:
        lake.insert(table.name, table.rows)
    queries = _asked(case, seed, chosen)
    _check_once(lake, case, queries)
    for step in case.steps:
        step.run(lake)
    _check_once(lake, case, queries)


def _asked(case: Case, seed: int, chosen: Weights) -> list[str]:
    """The query, its parts and its twin without optimization, as DuckDB reads them."""
    three = partitions(case, seed, chosen) or ()
    every: tuple[Query, ...] = (case.query, unoptimized(case.query), *three)
    return [for_duckdb(query.sql()) for query in every]


def _check_once(lake: FakeLake, case: Case, queries: list[str]) -> None:
    text, plain, *parts = queries
    rows = lake.rows(text)
    if case.ties:
        return
    _same(rows, _shuffled(lake, case, text), "the rows of the tables in another order")
    _same(rows, lake.rows(plain), f"without optimization\n  {plain}")
    if parts:
        _same(rows, [row for part in parts for row in lake.rows(part)], f"in parts\n  {parts[0]}")


def _shuffled(lake: FakeLake, case: Case, text: str) -> list[Row]:
    """The same tables, but their rows stand in another order."""
    dice = random.Random(len(text))
    stored = {table.name: lake.rows(f"SELECT * FROM {table.name}") for table in case.tables}
    for name, rows in stored.items():
        lake.db.execute(f"DELETE FROM {name}")
        lake.insert(name, dice.sample(rows, len(rows)))
    return lake.rows(text)


def _same(one: list[Row], other: list[Row], how: str) -> None:
    if not same_rows(one, other):
        raise AssertionError(f"other rows with {how}\n  expected\n{written(one)}\n  actual\n{written(other)}")


def is_valid(case: Case) -> bool:
    """Does DuckDB understand the text?"""
    lake = FakeLake(case.relations)
    try:
        lake.rows(f"EXPLAIN {for_duckdb(case.query.sql())}")
    except (duckdb.Error, SqlglotError):
        return False
    return True
