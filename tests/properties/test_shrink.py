"""Cases are cut down to what matters, whatever that is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties.case import Case
from tests.properties.generator.queries import Generator
from tests.properties.repair import repaired
from tests.properties.scope import known_tables
from tests.properties.shrink import shrink, smaller
from tests.properties.texts import is_valid
from tests.properties.tree import Item, Named, Ref, Select
from tests.properties.walk import features_of
from tests.support.view_test import parse_view_test


def fails_with(feature: str) -> Callable[[Case], bool]:
    """A bug that is there whenever a query has this feature."""
    return lambda case: feature in features_of(case.query) and is_valid(case)


@pytest.mark.parametrize(
    ("feature", "length"),
    [
        ("row_number", 110),
        ("left_join", 100),
        ("full_join", 100),
        ("union_all", 120),
        ("except", 120),
        ("not_in_subquery", 140),
        ("exists", 140),
        ("rollup", 140),
        ("recursive", 260),
        ("lateral", 120),
        ("explode", 130),
        ("top_k", 90),
        ("cte", 120),
        ("sum_distinct", 100),
        ("having", 110),
    ],
)
def test_what_is_left_is_what_fails(feature: str, length: int) -> None:
    fails = fails_with(feature)
    seed = next(seed for seed in range(2_000) if fails(Generator(seed).case()) and _is_large(Generator(seed).case()))
    cut = shrink(Generator(seed).case(), fails, tries_max=1_500)
    assert fails(cut)
    assert len(cut.query.sql()) <= length, cut.query.sql()
    assert not cut.steps
    assert not any(table.rows for table in cut.tables)


def _is_large(case: Case) -> bool:
    return len(case.query.sql()) > 400


def test_steps_and_rows_that_matter_stay() -> None:
    def fails(case: Case) -> bool:
        deletes = "DELETE" in "".join(step.sql() for step in case.steps)
        return deletes and sum(len(table.rows) for table in case.tables) >= 2

    seed = next(seed for seed in range(100) if fails(Generator(seed).case()) and len(Generator(seed).case().steps) > 1)
    cut = shrink(Generator(seed).case(), fails)
    assert len(cut.steps) == 1
    assert len(cut.steps[0].statements) == 1
    assert sum(len(table.rows) for table in cut.tables) == 2


def test_every_cut_is_another_case() -> None:
    for seed in range(15):
        case = Generator(seed).case()
        assert all(cut != case for cut in smaller(case))


def test_most_cuts_are_still_queries() -> None:
    cuts = [cut for seed in range(12) for cut in list(smaller(Generator(seed).case()))[:60:4]]
    valid = sum(is_valid(cut) for cut in cuts)
    assert valid >= len(cuts) * 0.6


def test_a_column_that_is_gone_gives_way_to_another_or_to_nothing() -> None:
    case = next(
        case for case in (Generator(seed).case() for seed in range(50)) if case.tables[0].columns[0].name == "k"
    )
    query = Select((Item(Ref("gone", "x", "int"), "c0"),), Named(case.tables[0].name, "m"))
    known = known_tables(case)
    assert repaired(query, known).sql() == f"SELECT m.k AS c0 FROM {case.tables[0].name} AS m"
    literal = repaired(query, known, by_columns=False).sql()
    assert literal == f"SELECT CAST(NULL AS INT) AS c0 FROM {case.tables[0].name} AS m"


def test_every_case_can_be_kept_as_a_file(tmp_path) -> None:
    for seed in range(100):
        case = Generator(seed).case()
        test = parse_view_test(case.as_view_test("Found by chance.", "by row"), tmp_path / "x.test")
        assert test.query == case.query.sql()
        assert [table.rows for table in test.tables] == [table.rows for table in case.tables]
        assert [step.dml for step in test.steps] == [step.sql() for step in case.steps if step.statements]
