"""Views of a workspace on real Spark: made, read, replaced, dropped, and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import AlreadyExists, CycleDetected, DependentsExist, InvalidArgument, NotFound, TrickleError
from engine.event_records import EventKind
from engine.failpoints import SimulatedCrash
from engine.lake import tables
from engine.records import Outcome, Position, ReasonCode
from tests.spark.shop import ORDERS, Shop, holds, opened, order

pytestmark = pytest.mark.spark

ONLY_PAID = "SELECT id, customer, amount FROM orders WHERE status = 'paid'"


def views(engine: Engine) -> None:
    engine.sql(f"CREATE VIEW paid AS {ONLY_PAID}")
    engine.create_view(
        "by_region",
        "SELECT c.region, SUM(p.amount) AS total FROM PAID p JOIN customers c ON p.customer = c.id GROUP BY c.region",
    )


def test_a_view_is_maintained_like_its_text(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        made = engine.create_stream_table(
            "totals",
            "SELECT b.region, b.total, p.id FROM by_region b JOIN paid p ON p.id < 3",
            refresh_mode="DIFFERENTIAL",
        )
        assert set(made.table.sources) == {"orders", "customers"}
        shop.insert("orders", order(100, 2, 999), order(101, 3, 5, "void"))
        assert engine.refresh_stream_table("totals").outcome is Outcome.DIFFERENTIAL
        assert engine.refresh_stream_table("totals").outcome is Outcome.NO_DATA
        holds(engine, "totals")
        # what cannot be maintained runs as it is written, over the view
        many = "SELECT customer FROM paid GROUP BY customer HAVING SUM(CAST(id AS DOUBLE)) > 1"
        engine.create_stream_table("many", many)
        shop.insert("orders", order(102, 2, 999))
        assert engine.refresh_stream_table("many").outcome is Outcome.FULL
        holds(engine, "many")
        assert engine.sql("SELECT COUNT(*) AS n FROM Paid").rows.to_pylist() == [
            {"n": engine.sql("SELECT COUNT(*) AS n FROM orders WHERE status = 'paid'").rows.to_pylist()[0]["n"]}
        ]
        found = engine.validate_query("SELECT * FROM by_region").explanation
        assert found is not None
        assert found.mode == "differential"
        previewed = engine.preview_stream_table("SELECT * FROM by_region", limit=1_000)
        assert previewed.rows.num_rows == engine.sql("SELECT * FROM by_region").rows.num_rows > 0
        assert [view.name for view in engine.sql("SHOW VIEWS").value] == ["by_region", "paid"]


def test_another_text_rebuilds_what_reads_it_and_says_so(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        engine.create_stream_table("totals", "SELECT region, total FROM by_region")
        engine.create_stream_table("ids", "SELECT id FROM orders")
        same = engine.create_view(
            "paid", "SELECT id, customer, amount FROM orders WHERE status = 'paid'", or_replace=True
        )
        assert not same.changed
        assert engine.refresh_stream_table("totals").outcome is Outcome.NO_DATA
        made = engine.sql(
            "CREATE OR REPLACE VIEW Paid AS SELECT o.id, o.customer, o.amount FROM orders o WHERE o.status <> 'paid'"
        ).value
        assert (made.view.name, made.replaced, made.rebuilt) == ("paid", True, ("totals",))
        record = engine.refresh_stream_table("totals")
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)
        assert "the view paid" in record.reason.text
        assert any("the view paid" in event.text for event in engine.events() if event.kind is EventKind.MODE_FALLBACK)
        holds(engine, "totals")
        assert engine.refresh_stream_table("ids").outcome is Outcome.NO_DATA
        # one that reads another source from now on
        shop.add("more", ORDERS, [order(500, 1, 100), order(501, 2, 300)])
        engine.add_source("more", shop.path("more"))
        engine.create_view("paid", "SELECT id, customer, amount FROM more", or_replace=True)
        assert set(engine.stream_table("totals").sources) == {"more", "customers"}
    with opened(tmp_path / "ws", shop) as engine:  # another process learns it from the catalog
        assert engine.refresh_stream_table("totals").outcome is Outcome.REINITIALIZE
        holds(engine, "totals")
        with pytest.raises(DependentsExist):
            engine.drop_source("more")


def test_who_dies_while_a_view_is_replaced_leaves_nothing_broken(
    tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog has the view and what its readers read from then on, or neither; their tables follow later."""
    shop.add("more", ORDERS, [order(500, 1, 100), order(501, 2, 300)])
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        engine.add_source("more", shop.path("more"))
        engine.create_stream_table("totals", "SELECT region, total FROM by_region")

        def dies(*_: object) -> None:
            raise SimulatedCrash

        with monkeypatch.context() as patched:
            patched.setattr(tables, "set_properties", dies)
            with pytest.raises(SimulatedCrash):
                engine.create_view("paid", "SELECT id, customer, amount FROM more", or_replace=True)
    with opened(tmp_path / "ws", shop) as engine:
        assert set(engine.stream_table("totals").sources) == {"more", "customers"}
        assert engine.refresh_stream_table("totals").outcome is Outcome.REINITIALIZE
        holds(engine, "totals")
        # the refresh has its table carry what the catalog has
        assert not engine.repair().repairs
        assert "FROM more" in tables.pin(engine.stream_table("totals").path).properties["trickle.views"]


def test_what_is_read_stays(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        engine.create_stream_table("totals", "SELECT region, total FROM by_region")
        with pytest.raises(DependentsExist, match="the stream table totals, the view by_region"):
            engine.sql("DROP VIEW paid")
        with pytest.raises(InvalidArgument, match="totals, which reads paid, would make no sense") as caught:
            engine.create_view("paid", "SELECT id, customer FROM orders", or_replace=True)
        assert "in the view by_region" in (caught.value.detail or "")
        with pytest.raises(CycleDetected):
            engine.create_view("paid", "SELECT total AS amount FROM by_region", or_replace=True)
        for name in ("paid", "ORDERS", "totals"):
            with pytest.raises(AlreadyExists):
                engine.create_view(name, "SELECT id FROM orders")
        with pytest.raises(AlreadyExists):
            engine.create_stream_table("paid", "SELECT id FROM orders")
        with pytest.raises(AlreadyExists):
            engine.add_source("paid", shop.path("customers"))
        with pytest.raises(InvalidArgument, match="is a view"):
            engine.sql("DELETE FROM paid WHERE id = 1")
        engine.drop_stream_table("totals")
        with pytest.raises(DependentsExist, match="by the view paid"):
            engine.drop_source("orders")
        assert engine.sql("DROP VIEW by_region").value is True
        assert engine.sql("DROP VIEW paid").value is True
        assert engine.sql("DROP VIEW IF EXISTS paid").value is False
        with pytest.raises(TrickleError):
            engine.sql("SELECT * FROM paid")  # nobody finds what it was
        with pytest.raises(NotFound):
            engine.drop_view("paid")


def test_errors_know_their_place(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        with pytest.raises(TrickleError) as caught:
            engine.sql("CREATE STREAM TABLE x AS\nSELECT p.id,\n  p.nothing FROM paid p")
        assert caught.value.position == Position(3, 3)
        with pytest.raises(TrickleError) as caught:
            engine.sql("CREATE VIEW bad AS\nSELECT id, nothing FROM orders")
        assert caught.value.position == Position(2, 12)
        assert engine.views()[-1].name == "paid"


def test_a_stream_table_is_found_again_with_its_views(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        views(engine)
        engine.create_stream_table("totals", "SELECT region, total FROM by_region")
        engine.create_view("paid", "SELECT id, customer, amount FROM orders WHERE status <> 'void'", or_replace=True)
        engine.refresh_stream_table("totals")
        path = engine.stream_table("totals").path
        assert [view["name"] for view in json.loads(tables.properties(path)["trickle.views"])] == ["paid", "by_region"]
        before = engine.views()
    for file in (tmp_path / "ws" / ".trickle").glob("catalog.db*"):
        file.unlink()
    with Engine.open(tmp_path / "ws") as engine:
        repaired = engine.repair()
        assert repaired.complete, repaired
        assert engine.views() == before
        shop.insert("orders", order(200, 1, 4_000))
        engine.start_spark()
        record = engine.refresh_stream_table("totals")
        assert record.outcome is Outcome.DIFFERENTIAL, record.reason
        holds(engine, "totals")
        assert engine.repair().repairs == ()
