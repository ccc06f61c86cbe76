"""Every view of tests/views on Spark: its types, its plan, its steps and its recomputation are Spark's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from engine.compile.optimize import PLAN_RULES
from engine.compile.pipeline import Request, compile_query
from engine.errors import QueryError, RequestError
from engine.lake.session import SparkHost
from engine.records import Column
from tests.properties import fuzz
from tests.properties.features import weights
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.spark_lake import SparkAnalyzer, SparkLake, computed_by, tuned_for_tiny
from tests.support.spark_types import UNKNOWN
from tests.support.view_runner import Variant, run_steps, texts_for_spark
from tests.support.view_test import ViewTest, read_view_test

pytestmark = pytest.mark.spark

VIEWS = Path(__file__).parents[1] / "views"
FILES = sorted(VIEWS.rglob("*.test"))
MAINTAINED = [path for path in FILES if path.parent.name != "refused"]
REFUSED = [path for path in FILES if path.parent.name == "refused"]
#: a third of them each day, which is minutes enough; all with TRICKLE_ALL_VIEWS=1
TODAY = [
    path
    for number, path in enumerate(MAINTAINED)
    if number % 3 == date.today().toordinal() % 3 or os.environ.get("TRICKLE_ALL_VIEWS")
]

#: random cases in every run; `python -m tests.properties.fuzz --spark` runs more
CASES = 50


@pytest.fixture(autouse=True, scope="module")
def tiny_queries(spark_host: SparkHost) -> Iterator[None]:
    before = tuned_for_tiny(spark_host)
    yield
    for key, value in before.items():
        spark_host.session().conf.set(key, value or "")


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", TODAY, ids=named)
def test_view(path: Path, spark_host: SparkHost) -> None:
    test = read_view_test(path)
    analyzer = SparkAnalyzer(spark_host, test.relations)
    check_stand_in(test, analyzer)
    plan = compile_query(Request(test.query, test.relations, rules=PLAN_RULES), analyzer)
    assert plan.kept is not None, plan.full_reason
    assert plan.kept.rule.name == test.kept
    lake = SparkLake(test.relations, spark_host)
    run_steps(test, Variant.OPTIMIZED, plan, lake, texts_for_spark(test), hidden_each_step=False)


def check_stand_in(test: ViewTest, analyzer: SparkAnalyzer) -> None:
    """What stands in for Spark's analysis in tests without Spark answers as Spark does, to each question."""
    stand_in = DuckAnalyzer(test.relations)
    compile_query(Request(test.query, test.relations), stand_in)
    for sql, answer in stand_in.asked.items():
        assert typed(answer) == typed(analyzer.describe(sql)), sql


def typed(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


@pytest.mark.parametrize("path", REFUSED, ids=named)
def test_refused_view(path: Path, spark_host: SparkHost) -> None:
    """Spark may refuse it first, in its own words; what Spark accepts is refused as the file says."""
    test = read_view_test(path)
    assert test.refusal is not None
    analyzer = SparkAnalyzer(spark_host, test.relations)
    try:
        plan = compile_query(Request(test.query, test.relations), analyzer)
    except (QueryError, RequestError):
        return
    assert UNKNOWN not in {column.type for column in plan.visible}
    assert plan.kept is None
    assert plan.full_reason is not None
    assert plan.full_reason.text == test.refusal.message
    assert plan.full_reason.position == test.refusal.position


@pytest.mark.parametrize("seed", range(CASES))
def test_random_views(seed: int, spark_host: SparkHost) -> None:
    fuzz.check(seed, computed_by(spark_host), weights(spark=True))
