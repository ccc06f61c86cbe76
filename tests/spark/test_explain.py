"""Looking into the compiler on real Spark: the verbs agree with what a creation makes, and change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import UnsupportedOperator
from engine.explain_text import text_of, tree_of
from engine.lake.session import SparkHost
from engine.results import Preview, Rewrite, Validation
from tests.spark.shop import BY_REGION, PAID, Shop, opened, order

pytestmark = pytest.mark.spark

#: a floating-point sum decides which rows there are
FULL = "SELECT customer FROM orders GROUP BY customer HAVING SUM(CAST(id AS DOUBLE)) > 1"


def test_what_is_told_before_is_what_is_made(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        for name, query in (("by_region", BY_REGION), ("paid", PAID)):
            told = engine.validate_query(query).explanation
            shown = engine.preview_stream_table(query, limit=3)
            assert told is not None
            assert engine.stream_tables() == () or name != "by_region"
            made = engine.create_stream_table(name, query)
            after = engine.explain_st(name)
            assert told.columns == shown.explanation.columns == made.table.columns
            assert (told.mode, told.root, told.identity) == (
                after.explanation.mode,
                after.explanation.root,
                after.explanation.identity,
            )
            rows = engine.preview(name).to_pylist()
            assert shown.rows.num_rows == min(3, len(rows))
            assert all(row in rows for row in shown.rows.to_pylist())
        assert engine.preview_stream_table("SELECT region FROM by_region", limit=0).rows.num_rows == 0


def test_all_about_one(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("by_region", BY_REGION)
        shop.insert("orders", order(100, 2, 999))
        engine.refresh_stream_table("by_region")
        found = engine.explain_st("by_region")
        assert found.table.fingerprint == engine.stream_table("by_region").fingerprint
        assert {each.name for each in found.sources} == {"orders", "customers"}
        orders = next(each for each in found.sources if each.name == "orders")
        assert (orders.changes, orders.frontier, orders.head) == ("change data feed", 1, 1)
        assert "merge" in found.delta_sql.lower() or "SELECT" in found.delta_sql
        text = text_of(found)
        assert "last refresh  #2 differential" in text
        assert "source orders: at version 1 of 1, changes by change data feed" in text
        assert engine.explain_delta("by_region").cases[0].statements
        engine.create_stream_table("chained", "SELECT region FROM by_region")
        (upstream,) = engine.explain_st("chained").sources
        assert (upstream.name, upstream.changes) == ("by_region", "stream table")


def test_by_sql(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        good = engine.sql(f"VALIDATE AS {PAID}").value
        assert isinstance(good, Validation)
        assert good.valid
        bad = engine.sql("VALIDATE AS\n  SELECT nope FROM orders").value
        assert bad.problem is not None
        assert (bad.problem.position.line, bad.problem.position.column) == (2, 10)
        assert bad.problem.fragment is None or "nope" in bad.problem.fragment
        full = engine.sql(f"VALIDATE AS {FULL}").value
        assert full.explanation.reason.position.column == len("VALIDATE AS ") + FULL.index("SUM") + 1
        shown = engine.sql(f"PREVIEW STREAM TABLE WITH (limit = 2) AS {PAID}").value
        assert isinstance(shown, Preview)
        assert shown.rows.num_rows == 2
        with pytest.raises(UnsupportedOperator) as caught:
            engine.sql(f"PREVIEW STREAM TABLE WITH (refresh_mode = 'DIFFERENTIAL') AS {FULL}")
        assert caught.value.position is not None
        assert caught.value.position.column > len("PREVIEW STREAM TABLE WITH")
        steps = engine.sql(f"EXPLAIN REWRITE AS {BY_REGION}").value
        assert isinstance(steps, Rewrite)
        assert steps.steps[0].text == BY_REGION
        assert engine.stream_tables() == ()
        engine.create_stream_table("paid", PAID)
        assert engine.sql("EXPLAIN DELTA FOR paid").value.name == "paid"
        assert engine.sql("EXPLAIN REWRITE ALL paid").value.left_out == 0
        assert tree_of(engine.sql("EXPLAIN STREAM TABLE paid").value).startswith("Result")


def test_warnings_are_notices_of_a_creation(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        query = "SELECT customer, MAX(amount) AS most, SUM(CAST(id AS DOUBLE)) AS s FROM orders GROUP BY 1 ORDER BY 1"
        made = engine.create_stream_table("warned", query, schedule="1m")
        texts = [notice.text for notice in made.notices]
        assert [text.split(":")[0].split(" (")[0] for text in texts] == [
            "ORDER BY",
            "MAX(amount)",
            "SUM(CAST(id AS DOUBLE))",
        ]


def test_without_a_feed_changes_are_told_by_files(tmp_path: Path, spark_host: SparkHost) -> None:
    shop = Shop(tmp_path / "lake", cdf=False)
    with opened(tmp_path / "ws", shop) as engine:
        shown = engine.preview_stream_table(PAID)
        assert shown.explanation.mode == "differential"
        assert any("told by the files" in notice.text for notice in shown.explanation.notices)
        assert engine.explain_delta(query=PAID).reason is None


def test_nothing_is_left_behind(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.preview_stream_table(PAID)
        engine.explain_delta(query=PAID)
        assert engine.stream_tables() == ()
        assert not any((tmp_path / "ws" / ".trickle" / "warehouse").iterdir())
    with Engine.open(tmp_path / "ws", read_only=True) as engine:
        assert engine.validate_query(PAID).valid
