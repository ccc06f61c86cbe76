"""Definitions that change while a refresh is under way, or waits: nobody writes back what he read before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.asked import Alteration
from engine.errors import CommitConflict, NotFound
from engine.event_records import EventKind
from engine.records import Initiator, Outcome, RefreshRecord, StreamTable
from engine.refresh import full, redefined
from tests.unit.test_refresh_mode import SUMS, Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    made.settings = replace(made.settings, refresh=replace(made.settings.refresh, conflict_retries=2))
    made.restart()
    yield made
    made.close()


def taken_earlier(shop: Shop, table: StreamTable, **asked: Any) -> RefreshRecord:
    """As a scheduler's worker refreshes what stood in its queue."""
    said = {"asked_full": False, "initiated_by": Initiator.SCHEDULER, **asked}
    return shop.process.refresher.refresh(table, **said)


def once(monkeypatch: pytest.MonkeyPatch, where: object, name: str, others: Callable[[], object]) -> None:
    """Another process does that just after."""
    real, done = getattr(where, name), []

    def first(*args: Any, **named: Any) -> Any:
        result = real(*args, **named)
        if not done:
            done.append(others())
        return result

    monkeypatch.setattr(where, name, first)


def meaning_something_else(shop: Shop, name: str) -> None:
    """As if a function of its query had another body: the fingerprint is not that of its plan."""
    shop.process.catalog.change_stream_table(shop.table(name).id, lambda now: replace(now, fingerprint="of then"))


@pytest.mark.parametrize("meanwhile", ["renamed", "altered"])
def test_a_rebuild_takes_back_nothing_that_others_defined(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    shop.make("sums", SUMS)
    table = shop.table("sums")
    meaning_something_else(shop, "sums")
    rival = shop.rival
    others: dict[str, Callable[[], object]] = {
        "renamed": lambda: rival.renames.rename("sums", "totals"),
        "altered": lambda: rival.alterations.alter("sums", Alteration(schedule="7m", comment="said meanwhile")),
    }
    once(monkeypatch, full, "run", others[meanwhile])
    assert taken_earlier(shop, table, asked_full=True).outcome is Outcome.FULL
    now = shop.process.catalog.stream_table_now(table.id)
    said = {
        "renamed": {"name": "totals"},
        "altered": {"schedule": "7m", "interval_s": 420.0, "comment": "said meanwhile"},
    }
    assert now == replace(table, **said[meanwhile])
    assert taken_earlier(shop, table).outcome is Outcome.NO_DATA


def test_a_rebuild_leaves_another_query_as_it_is(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.make("sums", SUMS)
    meaning_something_else(shop, "sums")
    table = shop.table("sums")
    other = replace(table, query="SELECT customer FROM sales", fingerprint="of another", columns=table.columns[:1])
    catalog = shop.rival.catalog
    once(monkeypatch, full, "run", lambda: catalog.change_stream_table(table.id, lambda _: other))
    taken_earlier(shop, table, asked_full=True)
    assert shop.table("sums") == other


def test_what_waits_is_refreshed_as_it_is_by_now(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.make("sums", SUMS)
    earlier = shop.table("sums")
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5)")
    shop.rival.alterations.alter(
        "sums", Alteration(query="SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer")
    )
    shop.rival.renames.rename("sums", "counts")
    assert taken_earlier(shop, earlier).outcome is Outcome.NO_DATA
    assert [record.st for record in shop.process.history.last("counts")] == ["counts"]
    shop.change_sources("INSERT INTO sales VALUES (901, 1, 5)")
    running: list[str] = []
    real = shop.process.refresher.polls.look

    def look(sources: tuple[str, ...]) -> None:
        running.extend(each.st for each in shop.process.refresher.running())
        real(sources)

    monkeypatch.setattr(shop.process.refresher.polls, "look", look)
    done = taken_earlier(shop, earlier)
    assert running == ["counts"]
    assert (done.st, done.outcome) == ("counts", Outcome.DIFFERENTIAL)


def test_what_is_gone_is_refused(shop: Shop) -> None:
    shop.make("sums", SUMS)
    earlier = shop.table("sums")
    shop.rival.definitions.drop("sums", if_exists=False, cascade=False)
    with pytest.raises(NotFound, match="the stream table is gone"):
        taken_earlier(shop, earlier)
    assert shop.process.history.last("sums") == ()


def test_a_broken_promise_is_told_once_and_takes_nothing_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.make("ids", "SELECT id, amount FROM sales")
    shop.process.alterations.alter("ids", Alteration(append_only=True))
    assert shop.table("ids").append_only
    shop.change_sources("DELETE FROM sales WHERE id = 3")
    earlier = shop.table("ids")
    held, times = redefined.held_to_promise, []

    def in_the_way(*args: Any) -> Any:
        if not times:
            shop.rival.alterations.alter("ids", Alteration(schedule="7m"))
        times.append(held(*args))
        if len(times) < 3:
            raise CommitConflict("somebody was faster")
        return times[-1]

    monkeypatch.setattr("engine.refresh.run.held_to_promise", in_the_way)
    assert taken_earlier(shop, earlier).outcome is Outcome.DIFFERENTIAL
    assert len(times) == 3
    told = [event for event in shop.process.catalog.events() if event.kind is EventKind.APPEND_ONLY_REVERTED]
    assert len(told) == 1
    assert shop.table("ids") == replace(earlier, append_only=False, schedule="7m", interval_s=420.0)
