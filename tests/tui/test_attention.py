"""What needs attention, from states, errors and reasons alone."""

from __future__ import annotations

from dataclasses import replace

from engine.records import (
    Reason,
    ReasonCode,
    SchedulerPlace,
    SchedulerStatus,
    SparkPhase,
    SparkStatus,
    State,
)
from tests.tui.fake import NOW, shop
from trickle_tui import actions
from trickle_tui.attention import attention
from trickle_tui.paint import plain, width
from trickle_tui.views import events

SHOP = shop()


def test_the_most_severe_comes_first_with_the_way_out() -> None:
    needs = attention(SHOP, NOW).needs
    assert [need.table for need in needs] == ["fx_exposure", "payments_daily", "top_products", "stock_live"]
    assert needs[0].text == "column fx_rates.rate was dropped at 11:46 by another writer"
    assert needs[0].hint == "put the column back, or drop and create fx_exposure"
    assert needs[2].text == "full: 31 % of rows change, differential would cost 5.9s"
    assert needs[3].text == "1s old, schedule 1s; a refresh takes 1.20s"


def test_every_remedy_is_an_action() -> None:
    for need in attention(SHOP, NOW).needs:
        assert need.action in actions.BY_ID
        assert need.action_label


def test_a_calm_shop_needs_nothing() -> None:
    calm = replace(SHOP, tables=tuple(table for table in SHOP.tables if table.state is State.FRESH))
    assert attention(calm, NOW).needs == ()
    (line,) = events.attention_lines(attention(calm, NOW), 80, 3, lambda action: "")
    assert plain(line) == "nothing; all within their schedules"


def test_a_table_that_is_full_by_its_operators_is_a_hint_not_a_need() -> None:
    fresh = next(table for table in SHOP.tables if table.state is State.FRESH)
    full = replace(fresh, effective_mode="full", reason=Reason(ReasonCode.UNSUPPORTED, "LEFT JOIN at line 3"))
    found = attention(replace(SHOP, tables=(full,)), NOW)
    assert found.needs == ()
    assert found.hints == (f"{fresh.name} is refreshed fully: LEFT JOIN at line 3",)


def test_spark_and_the_scheduler_are_named_when_they_are_missing() -> None:
    broken = replace(
        SHOP,
        spark=SparkStatus(SparkPhase.FAILED, "no Java 17 found\nat …"),
        scheduler=SchedulerStatus(SchedulerPlace.NOBODY),
    )
    first, second, *_ = attention(broken, NOW).needs
    assert (first.table, first.text) == ("", "no Java 17 found")
    assert second.text == "nobody refreshes: no scheduler runs"


def test_a_spark_that_ended_by_itself_is_named_and_refreshes_stay_possible() -> None:
    lost = replace(SHOP, spark=SparkStatus(SparkPhase.LOST, "Spark ended by itself"))
    first, *_ = attention(lost, NOW).needs
    assert (first.text, first.hint) == ("Spark ended by itself", "the next refresh starts it again")


def test_lines_fit_and_say_how_many_are_left_out() -> None:
    lines = events.attention_lines(attention(SHOP, NOW), 60, 3, lambda action: actions.BY_ID[action].shown_key)
    assert [width(line) <= 60 for line in lines] == [True] * 3
    assert plain(lines[-1]) == "and 2 more; the list has them on top"
