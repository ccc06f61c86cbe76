"""The generator itself: what it writes is SQL, means one thing, and says the same in other words."""

from __future__ import annotations

import pytest

from tests.properties import oracles, texts
from tests.properties.case import Case
from tests.properties.features import weights
from tests.properties.generator.queries import Generator
from tests.properties.oracles import partitions, unoptimized
from tests.properties.texts import check_texts, is_valid
from tests.properties.tree import Select
from tests.support.duck_analyzer import DuckAnalyzer, for_duckdb
from tests.support.fake_lake import FakeLake
from tests.support.spark_types import UNKNOWN

SEEDS = range(0, 120, 20)
EVERYTHING = weights()


@pytest.mark.parametrize("first", SEEDS)
def test_duckdb_understands_every_text_and_finds_one_meaning(first: int) -> None:
    for seed in range(first, first + SEEDS.step):
        check_texts(Generator(seed).case(), seed, EVERYTHING)


def test_the_type_of_every_column_is_known() -> None:
    for seed in range(300):
        case = Generator(seed).case()
        columns = DuckAnalyzer(case.relations).describe(case.query.sql())
        assert UNKNOWN not in {column.type for column in columns}, case.query.sql()


def test_most_cases_have_rows_and_change_them() -> None:
    """Queries whose result is empty, and steps that change nothing, prove little."""
    cases, filled, changed = 100, 0, 0
    for seed in range(cases):
        case = Generator(seed).case()
        lake = FakeLake(case.relations)
        for table in case.tables:
            lake.insert(table.name, table.rows)
        history = [lake.rows(for_duckdb(case.query.sql()))]
        for step in case.steps:
            step.run(lake)
            history.append(lake.rows(for_duckdb(case.query.sql())))
        filled += any(history)
        changed += any(sorted(map(str, one)) != sorted(map(str, history[0])) for one in history)
    assert filled >= cases * 0.6
    assert changed >= cases * 0.45


def test_a_text_whose_answer_depends_on_the_order_of_rows_is_noticed() -> None:
    """FIRST keeps whatever comes first."""
    for seed in range(200):
        case = Generator(seed, weights(["min_max", "group_by"])).case()
        text = case.query.sql().replace("MIN(", "FIRST(").replace("MAX(", "FIRST(")
        if text == case.query.sql() or not isinstance(case.query, Select):
            continue
        if "in another order" in _difference(case, text):
            return
    pytest.fail("no text was found to depend on the order of rows")


def _difference(case: Case, text: str) -> str:
    lake = FakeLake(case.relations)
    for table in case.tables:
        lake.insert(table.name, table.rows)
    try:
        texts._check_once(lake, case, [for_duckdb(text), for_duckdb(text)])
    except AssertionError as error:
        return str(error)
    return ""


def test_parts_are_three_and_hold_a_condition() -> None:
    found = [partitions(Generator(seed).case(), seed, EVERYTHING) for seed in range(50)]
    assert sum(three is not None for three in found) >= 45
    for three in found:
        if three is not None:
            assert [part.sql() != three[0].sql() for part in three] == [False, True, True]


def test_without_optimization_every_condition_hides() -> None:
    for seed in range(100):
        query = Generator(seed, weights(["inner_join", "filter"])).case().query
        hidden = unoptimized(query).sql()
        if " ON " in query.sql() or " WHERE " in query.sql():
            assert "CASE WHEN" in hidden
        assert hidden.count(" ON ") == hidden.count(" ON (CASE WHEN ")


def test_what_ties_a_subquery_to_its_row_stays_in_the_open() -> None:
    assert oracles.LEFT_OPEN == ("correlated", "correlated_inequality")


def test_an_invalid_text_is_noticed() -> None:
    case = Generator(0).case()
    assert is_valid(case)
    assert not is_valid(case.with_query(Select(())))
