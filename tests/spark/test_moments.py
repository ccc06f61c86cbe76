"""Variance and its kin from exact sums are what Spark gives, NULLs and all, and better where Spark rounds."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.compile.pipeline import Request, compile_query
from engine.lake.session import SparkHost
from engine.records import Column
from tests.support.multisets import same_rows, written
from tests.support.spark_lake import SparkAnalyzer, SparkLake
from tests.support.view_test import Row

pytestmark = pytest.mark.spark

OF_ONE = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "std")
OF_TWO = (
    "covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope",
    "regr_intercept", "regr_r2",
)  # fmt: skip
RELATIONS = {"t": (Column("g", "string"), Column("y", "int"), Column("x", "decimal(12,3)"))}
GROUPS: dict[str, list[tuple[int | None, str | None]]] = {
    "nothing": [(1, None), (None, "2")],
    "one": [(3, "1.5")],
    "x the same": [(1, "3"), (2, "3"), (5, "3")],
    "y the same": [(4, "1"), (4, "2"), (4, "7")],
    "both the same": [(4, "4"), (4, "4")],
    "on a line": [(1, "2.5"), (2, "4.5"), (3, "6.5"), (-7, "-13.5")],
    "across": [(1, "1"), (0, "2"), (1, "3")],
    "the widest": [(2147483647, "999999999.999"), (-2147483648, "-999999999.999"), (0, "0.001")],
    "with gaps": [(1, "2"), (2, None), (None, "7"), (9, "-3.125"), (-4, "11")],
}


def populated(host: SparkHost, calls: str, rows: list[Row]) -> tuple[SparkLake, str, tuple[Column, ...], list[Row]]:
    """The lake, the text, its columns, and its rows by the plan."""
    text = f"SELECT g, {calls} FROM t GROUP BY g"
    plan = compile_query(Request(text, RELATIONS), SparkAnalyzer(host, RELATIONS))
    assert plan.kept is not None
    assert plan.kept.rule.name == "by group, stored sums"
    lake = SparkLake(RELATIONS, host)
    lake.insert("t", rows)
    return lake, text, plan.visible, [row[: len(plan.visible)] for row in lake.evaluate(plan.kept.full)]


def test_they_are_what_spark_gives(spark_host: SparkHost) -> None:
    calls = ", ".join([*(f"{name}(x) AS {name}" for name in OF_ONE), *(f"{name}(y, x) AS {name}" for name in OF_TWO)])
    rows: list[Row] = [(g, y, None if x is None else Decimal(x)) for g, each in GROUPS.items() for y, x in each]
    lake, text, columns, actual = populated(spark_host, calls, rows)
    expected = lake.recompute(text, columns)
    assert same_rows(expected, actual), f"Spark\n{written(expected)}\nfrom sums\n{written(actual)}"


def test_close_together_and_far_from_zero_they_are_better(spark_host: SparkHost) -> None:
    """The deviation of 2147483640 … 2147483646, each as often, is 2."""
    rows: list[Row] = [("a", 2147483640 + number % 7, None) for number in range(70)]
    *_, actual = populated(spark_host, "stddev_pop(y) AS spread", rows)
    assert actual == [("a", 2.0)]
