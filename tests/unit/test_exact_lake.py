"""The lake that divides as Spark does: exact, rounded half up, to the scale of Spark's result."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pytest

from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.exact_lake import ExactLake

COLUMNS = (Column("a", "decimal(15,2)"), Column("b", "decimal(7,4)"), Column("n", "int"), Column("d", "double"))
ROWS = [
    (Decimal("10.00"), Decimal("3.0000"), 7, 1.5),
    (Decimal("-10.01"), Decimal("3.0000"), 2, 0.5),
    (Decimal("5.00"), Decimal("-0.0007"), -3, 3.0),
    (None, Decimal("1.0000"), 1, 4.0),
]


@pytest.fixture
def lake() -> ExactLake:
    lake = ExactLake({"t": COLUMNS})
    lake.insert("t", ROWS)
    return lake


def answer(lake: ExactLake, query: str) -> list[tuple[object, ...]]:
    return lake.recompute(query, DuckAnalyzer(lake.tables).describe(query))


def quotient(one: Decimal, other: Decimal, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return (one / other).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def test_many_quotients() -> None:
    chance = random.Random(5)
    rows = [
        (Decimal(chance.randrange(-(10**15), 10**15)) / 100, Decimal(chance.randrange(1, 10**7)) / 10_000, 1, 0.0)
        for _ in range(300)
    ]
    lake = ExactLake({"t": COLUMNS})
    lake.insert("t", rows)
    # decimal(15,2) / decimal(7,4) is decimal(27,10) to Spark
    expected = {(a, b): quotient(a, b, 10) for a, b, _, _ in rows}
    assert {(a, b): q for a, b, q in answer(lake, "SELECT a, b, a / b AS q FROM t")} == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("avg(a)", Decimal("1.663333")),
        ("avg(b)", Decimal("1.74982500")),
        ("avg(b) FILTER (WHERE n > 1)", Decimal("3.00000000")),
        ("avg(DISTINCT b)", Decimal("1.33310000")),
        ("avg(n)", 1.75),
        ("avg(d) / 2", 1.125),
        ("sum(a) / 3", Decimal("1.663333")),
        ("sum(a) / count(*)", quotient(Decimal("4.99"), Decimal(4), 23)),
        ("sum(CASE WHEN a / 0 IS NULL THEN 1 ELSE 0 END)", 4),
        ("avg(a / b)", None),
    ],
)
def test_aggregates(lake: ExactLake, expression: str, expected: object) -> None:
    [(value,)] = answer(lake, f"SELECT {expression} AS x FROM t")
    if expected is None:
        parts = [quotient(a, b, 10) for a, b, _, _ in ROWS if a is not None]
        expected = quotient(sum(parts, Decimal(0)), Decimal(3), 14)
    assert value == expected


def test_windows_and_subqueries(lake: ExactLake) -> None:
    window = answer(lake, "SELECT a, a * 100 / sum(a) OVER () AS share, avg(a) OVER (PARTITION BY n) AS own FROM t")
    assert {(own, a) for a, _, own in window} == {(a, a) for a, _, _, _ in ROWS}
    inside = "SELECT n FROM t WHERE a > (SELECT avg(b) / 3 FROM t AS o WHERE o.n = t.n)"
    assert sorted(answer(lake, inside)) == [(-3,), (7,)]


def test_conditions_on_groups(lake: ExactLake) -> None:
    """Also quotients in quotients, whose divisors the parser guards."""
    grouped = "SELECT n FROM t GROUP BY n HAVING avg(a) > 2.5 AND sum(a) / (sum(b) / (count(*) / 2.0)) > 0"
    assert answer(lake, grouped) == [(7,)]


def test_quotients_in_divisors(lake: ExactLake) -> None:
    # b / 3 is decimal(13,10) to Spark, as 3 has one digit
    [(value,)] = answer(lake, "SELECT a / (b / 3) AS q FROM t WHERE n = 2")
    assert value == quotient(Decimal("-10.01"), Decimal("1.0000000000"), 16)


def test_rollup_over_nothing_gives_nothing(lake: ExactLake) -> None:
    query = "SELECT n, sum(a) AS s FROM t WHERE n > {} GROUP BY ROLLUP (n)"
    assert answer(lake, query.format(100)) == []
    assert len(answer(lake, query.format(1))) == 3
