"""The `/` language and the orders of the list."""

from __future__ import annotations

import pytest

from tests.tui.fake import shop
from trickle_tui import filtering

TABLES = shop().tables


def kept(text: str) -> list[str]:
    return [table.name for table in TABLES if filtering.parse(text).keeps(table)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fx", ["fx_exposure"]),
        ("ORDERS enr", ["orders_enriched"]),
        ("state:failed", ["fx_exposure"]),
        ("state:st", ["top_products"]),
        ("mode:full", ["top_products", "cohort_retention", "audit_2019"]),
        ("mode:full !state:frozen", ["top_products", "cohort_retention"]),
        ("stale:>2h", ["payments_daily", "cohort_retention"]),
        ("stale:<4s", ["stock_live", "refunds_by_reason"]),
        ("last:>2s", ["top_products", "supplier_scorecard", "cohort_retention"]),
        ("name~ord", ["orders_enriched"]),
        ("reads:lines", ["top_products", "lines_clean", "basket_affinity"]),
        ("owner:nobody", []),
    ],
)
def test_terms_keep_what_they_say(text: str, names: list[str]) -> None:
    assert kept(text) == names
    assert filtering.parse(text).problems == ()


@pytest.mark.parametrize(
    ("text", "start", "end", "word"),
    [
        ("fx state:flaky", 3, 14, "no state 'flaky'"),
        ("stale:soon", 0, 10, "comparison such as >5m"),
        ("colour:red", 0, 10, "no field 'colour'"),
        ("state:", 0, 6, "wants a value"),
        ("mode:sideways", 0, 13, "no mode"),
    ],
)
def test_what_means_nothing_is_pointed_at_and_filters_nothing(text: str, start: int, end: int, word: str) -> None:
    (problem,) = filtering.parse(text).problems
    assert (problem.start, problem.end) == (start, end)
    assert word in problem.text
    assert kept(text) == kept(text[:start])


def arranged(name: str, reverse: bool = False) -> list[str]:
    order = next(order for order in filtering.ORDERS if order.name == name)
    return [table.name for table in filtering.arrange(TABLES, filtering.parse(""), order, reverse)]


def test_severity_comes_first_by_default() -> None:
    assert filtering.ORDERS[0].name == "severity"
    assert arranged("severity")[:5] == ["fx_exposure", "payments_daily", "top_products", "stock_live", "customer_ltv"]
    assert arranged("severity")[-1] == "audit_2019"


def test_orders_start_with_what_people_look_for() -> None:
    assert arranged("name")[0] == "audit_2019"
    assert arranged("staleness")[0] == "cohort_retention"
    assert arranged("duration")[0] == "cohort_retention"
    assert arranged("rows")[0] == "cohort_retention"
    assert arranged("name", reverse=True) == list(reversed(arranged("name")))
