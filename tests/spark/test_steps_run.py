"""How statements run on Spark: steps first, nothing of what follows from an empty one, versions when they are read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.utils import AnalysisException

from engine.errors import RefreshFailed
from engine.lake import queries, steps, views
from engine.lake.steps import Query, QueryStep
from engine.records import Column

pytestmark = pytest.mark.spark

COLUMNS = (Column("k", "bigint"),)


def numbers(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    write_deltalake(path, numbers(1, 2, 3))
    write_deltalake(path, numbers(4), mode="append")
    return path


def run(session: SparkSession, query: Query) -> list[Any]:
    with steps.left_of(session, query, "a test", small=True) as (left, _):
        return [row[0] for row in session.sql(left.sql).collect()]


def test_what_follows_from_a_step_without_rows_is_not_run(spark: SparkSession) -> None:
    """It would fail if it were: nobody knows the table that it reads."""
    fails = QueryStep("s2", "SELECT k FROM nobody_knows JOIN s1 USING (k)", is_few=True)
    asked: list[str] = []

    def given_empty(view: str) -> Query:
        asked.append(view)
        return Query("SELECT 'nothing' AS what")

    for sql, found in (("SELECT 1 AS k WHERE false", ["nothing"]), ("SELECT 1 AS k", None)):
        query = Query("SELECT k FROM s2", None, (QueryStep("s1", sql, is_few=True), fails), given_empty=given_empty)
        if found is None:
            with pytest.raises(RefreshFailed) as caught:
                run(spark, query)
            assert "nobody_knows" in (caught.value.detail or "")
        else:
            assert run(spark, query) == found
    assert asked == ["s1"]
    assert not spark.catalog.tableExists("s1"), "a step is gone once its statement ran"


def test_a_version_is_shown_when_it_is_read(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = views._make

    def noting(session: SparkSession, name: str, asked: Any) -> None:
        made.append(asked.version)
        make(session, name, asked)

    monkeypatch.setattr(views, "_make", noting)
    views.of_version(spark, "numbers", table, 0, COLUMNS)
    assert made == []
    views.make_ready(spark, frozenset(("others",)))
    assert made == []
    views.make_ready(spark, frozenset(("numbers",)))
    assert spark.table("numbers").count() == 3
    views.of_version(spark, "numbers", table, 0, COLUMNS)
    views.make_ready(spark, ("numbers",))
    assert made == [0], "what is shown is not made again"
    views.of_version(spark, "numbers", table, 1, COLUMNS)
    with pytest.raises(AnalysisException):
        spark.table("numbers").count()  # another version must not be found under the name
    views.make_ready(spark, ("numbers",))
    assert (made, spark.table("numbers").count()) == ([0, 1], 4)


def test_a_version_that_nobody_reads_may_be_gone(spark: SparkSession, table: str) -> None:
    """It was looked up, and is still promised when something else is shown or run in the session."""
    views.of_version(spark, "gone", table, 0, COLUMNS)
    shutil.rmtree(table)
    views.of_query(spark, "one", "SELECT 1 AS k")
    assert run(spark, Query("SELECT k FROM s1", None, (QueryStep("s1", "SELECT k FROM one"),))) == [1]


def test_many_rows_are_no_part_of_a_plan(spark: SparkSession) -> None:
    """But Spark knows how large they are."""
    for count, leaf in ((2_000, "LocalTableScan"), (2_001, "Scan ExistingRDD")):
        frame = queries.local_relation(spark, numbers(*range(count)))
        views.of_frame(spark, "many", frame)
        assert spark.table("many").count() == count
        joined = spark.sql("SELECT a.id FROM range(1000000) AS a JOIN many AS m ON a.id = m.k")
        plan = joined._jdf.queryExecution().executedPlan().toString()
        assert leaf in plan
        assert "BroadcastHashJoin" in plan
        assert joined.count() == count
