"""The benchmarks on real Spark: it accepts every query, and types everything in it as tests without Spark believe."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
import sqlglot
from sqlglot import exp

from engine.algebra.dialect import Spark4
from engine.compile.parse import parse
from engine.compile.pipeline import ILLEGAL_IN_NAMES
from engine.lake.session import SparkHost
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.spark_lake import SparkAnalyzer, computed_by
from tests.tpc.run import judge, live
from tests.tpc.suite import SUITES, TPCH

pytestmark = pytest.mark.spark


#: four of TPC-H each day; `python -m tests.tpc report --tpch --spark --cycles 3` runs all of them
TODAY = [number for number in TPCH.numbers if number % 6 == date.today().toordinal() % 6]
CYCLES = 3


@pytest.mark.parametrize("number", TODAY)
def test_query(number: int, spark_host: SparkHost) -> None:
    """Spark computes every statement and the query itself, with the very types that the plan promises."""
    verdict = judge(TPCH, number, SparkAnalyzer(spark_host, TPCH.relations))
    assert verdict.plan is not None, verdict.text
    live(TPCH, verdict.plan, CYCLES, engine=computed_by(spark_host))


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_types(suite, spark_host: SparkHost) -> None:
    """Of each query, of the queries that it is made of, and of all that the compiler asks for."""
    spark, stand_in = SparkAnalyzer(spark_host, suite.relations), DuckAnalyzer(suite.relations)
    other = []
    for number in suite.numbers:
        text = suite.query(number)
        for sql in [text, *parts(sqlglot.parse_one(text, dialect=Spark4))]:
            stand_in.describe(sql)
        judge(suite, number, stand_in)
        for sql, mine in stand_in.asked.items():
            theirs = spark.describe(sql)
            other += [f"q{number:02}: {one}, for Spark {two}" for one, two in differences(mine, theirs)]
        stand_in.asked.clear()
        names = [each.name.casefold() for each in spark.describe(text)]
        assert len(set(names)) == len(names), f"q{number:02} has two columns of one name"
        assert not [name for name in names if set(name) & set(ILLEGAL_IN_NAMES)]
    assert other == []


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_readings(suite, spark_host: SparkHost) -> None:
    """What the parser understood means the same to Spark; otherwise a query would be refused there, and only there."""
    spark = SparkAnalyzer(spark_host, suite.relations)
    texts = {number: suite.query(number) for number in suite.numbers}
    other = [number for number, text in texts.items() if not spark.same_semantics(text, parse(text).rendered())]
    assert other == []


def differences(mine: tuple[Column, ...], theirs: tuple[Column, ...]) -> list[tuple[str, str]]:
    assert len(mine) == len(theirs)
    pairs = [(f"{one.name} {one.type}", f"{two.name} {two.type}") for one, two in zip(mine, theirs, strict=True)]
    return [(one, two) for one, two in pairs if one != two]


def parts(tree: exp.Expr) -> Iterator[str]:
    """Common table expressions, derived tables and members of unions, as queries of their own."""
    for part in tree.find_all(exp.Query):
        is_derived = isinstance(part.parent, exp.Subquery) and isinstance(part.parent.parent, exp.From | exp.Join)
        if isinstance(part, exp.Subquery) or not (is_derived or isinstance(part.parent, exp.CTE | exp.SetOperation)):
            continue
        if any(is_scalar(above) for above in ancestors(part)):
            continue  # it may use columns from outside
        query = part.copy()
        definitions = [cte.copy() for above in ancestors(part) for cte in visible(above, part)]
        own = query.args.get("with_")
        every = [*definitions, *(own.expressions if own is not None else [])]
        query.set("with_", exp.With(expressions=every) if every else None)
        if all(item.alias_or_name or item.is_star for item in query.selects):
            yield query.sql(Spark4)


def ancestors(tree: exp.Expr) -> Iterator[exp.Expr]:
    above = tree.parent
    while above is not None:
        yield above
        above = above.parent


def is_scalar(tree: exp.Expr) -> bool:
    """A subquery in an expression."""
    in_place = isinstance(tree.parent, exp.From | exp.Join | exp.SetOperation | exp.With | type(None))
    return isinstance(tree, exp.Subquery | exp.Exists | exp.In) and not in_place


def visible(above: exp.Expr, part: exp.Expr) -> list[exp.CTE]:
    """The definitions of a WITH that stand before a part of its query."""
    with_ = above.args.get("with_")
    if with_ is None:
        return []
    around = {id(part), *(id(each) for each in ancestors(part))}
    inside = [index for index, cte in enumerate(with_.expressions) if id(cte) in around]
    return with_.expressions[: inside[0]] if inside else with_.expressions
