"""A view gets another text: what reads it knows what that names, and must fit what was asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import write_deltalake

from engine.asked import Alteration
from engine.compile.parse import Limits
from engine.errors import InvalidArgument
from engine.events import EventBus
from engine.records import Column, Outcome
from engine.refresh.views import Views
from engine.results import ViewResult
from tests.unit.test_refresh_mode import SALES, SUMS, Shop

PLAIN = "SELECT id, customer, amount FROM sales"


class Seen(Shop):
    def view(self, query: str) -> ViewResult:
        process = self.process
        events = EventBus(process.catalog.append_event, self.clock)
        views = Views(
            process.catalog, process.compute, process.plans, process.definitions, events, Limits(), self.clock
        )
        return views.create("seen", query, or_replace=True)

    def give_column(self, name: str) -> None:
        """To the sales."""
        rows = self.lake.db.execute(f"SELECT *, 7 AS {name} FROM sales").to_arrow_table()
        write_deltalake(self.sources["sales"].path, rows, mode="overwrite", schema_mode="overwrite")
        for compute in self._computes:
            compute.know("sales", (*SALES, Column(name, "int")))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Seen]:
    made = Seen(tmp_path)
    made.view(PLAIN)
    yield made
    made.close()


def test_the_new_text_may_name_what_came_after_the_stream_table(shop: Seen) -> None:
    shop.make("kept", "SELECT * FROM seen")
    shop.make("joined", "SELECT * FROM people JOIN seen ON cid = customer")
    shop.give_column("paid")
    assert set(shop.view("SELECT id, customer, amount + paid AS amount FROM sales").rebuilt) == {"kept", "joined"}
    for name in ("kept", "joined"):
        assert "paid" in shop.table(name).known_columns["sales"]
        assert shop.process.plans.plan_of(shop.table(name)).used_columns
        assert shop.process.refresh(name).outcome is Outcome.REINITIALIZE
        assert shop.process.refresh(name).outcome is Outcome.NO_DATA
        assert shop.process.refresh(name, full=True).outcome is Outcome.FULL


def test_nothing_is_learned_of_what_the_view_does_not_read(shop: Seen) -> None:
    shop.make("joined", "SELECT s.*, p.region FROM sales s JOIN people p ON cid = customer JOIN seen v ON v.id = s.id")
    shop.view("SELECT cid AS id, region FROM people")
    shop.give_column("paid")
    shop.view("SELECT cid + 1 AS id, region FROM people")
    assert shop.table("joined").known_columns["sales"] == {column.name: column.type for column in SALES}


def refused(shop: Seen, query: str, why: str) -> None:
    before = shop.process.catalog.views(), shop.process.catalog.stream_tables()
    with pytest.raises(InvalidArgument, match="the stream table kept, which reads seen, would make no sense") as caught:
        shop.view(query)
    assert why in (caught.value.detail or "")
    assert (shop.process.catalog.views(), shop.process.catalog.stream_tables()) == before


def test_what_it_is_partitioned_by_stays(shop: Seen) -> None:
    shop.make("kept", "SELECT * FROM seen")
    id_ = shop.table("kept").id
    shop.process.catalog.change_stream_table(id_, lambda now: replace(now, partition_by=("customer",)))
    refused(shop, "SELECT id, amount FROM sales", "cannot be partitioned by customer")
    assert shop.view("SELECT id, customer, 1 AS amount FROM sales").changed


def test_what_grows_only_still_does(shop: Seen) -> None:
    shop.make("kept", "SELECT * FROM seen")
    shop.process.alterations.alter("kept", Alteration(append_only=True))
    refused(shop, SUMS, "cannot be append_only")
    assert shop.view(f"{PLAIN} WHERE amount > 3").changed


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT customer FROM upstream", "upstream is refreshed on a schedule"),
        (f"{PLAIN} ORDER BY id LIMIT 2000000", "keeps the first 2,000,000 rows"),
        ("SELECT customer FROM sales GROUP BY customer HAVING SUM(CAST(amount AS DOUBLE)) > 1", "IMMEDIATE"),
    ],
)
def test_what_is_immediate_can_still_follow(shop: Seen, query: str, why: str) -> None:
    shop.make("upstream", SUMS)
    shop.make("kept", "SELECT * FROM seen", "IMMEDIATE")
    refused(shop, query, why)
    assert shop.view(f"{PLAIN} WHERE amount > 3").changed


def test_what_reads_it_stands_on_nothing_that_was_never_filled(shop: Seen) -> None:
    shop.make("kept", "SELECT * FROM seen")
    shop.make("empty", SUMS)
    id_ = shop.table("empty").id
    shop.process.catalog.change_progress(id_, lambda now: replace(now, populated=False))
    refused(shop, "SELECT * FROM empty", "empty was never populated")


def test_a_view_cannot_bring_a_stream_table_to_read_itself(shop: Seen) -> None:
    shop.make("kept", "SELECT * FROM seen")
    shop.make("above", "SELECT * FROM kept")
    for name in ("kept", "above"):
        refused(shop, f"SELECT id, customer, amount FROM {name}", "kept would read itself")
