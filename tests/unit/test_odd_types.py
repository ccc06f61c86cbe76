"""Types that Spark computes with and Delta does not store."""

from __future__ import annotations

import pytest

from engine.algebra.types import has_unreadable_changes, is_unknown_to_delta_rs, unstorable
from engine.lake.tables import columns_of


@pytest.mark.parametrize(
    ("spelled", "odd"),
    [
        ("interval day to second", "interval"),
        ("interval", "interval"),
        ("array<interval year to month>", "interval"),
        ("time(6)", "time"),
        ("struct<at:time(6)>", "time"),
        ("map<string,void>", "void"),
        ("string collate UTF8_LCASE", "collate"),
        ("geometry(4326)", "geometry"),
        ("timestamp", None),
        ("timestamp_ntz", None),
        ("struct<time:int,interval:string,`geometry`:date>", None),
        ("decimal(12,2)", None),
        ("array<variant>", None),
    ],
)
def test_what_delta_does_not_store(spelled: str, odd: str | None) -> None:
    assert unstorable(spelled) == odd


def test_spans_of_days_can_be_read_all_the_same() -> None:
    assert not has_unreadable_changes("interval day to second")
    assert has_unreadable_changes("interval year to month")
    assert has_unreadable_changes("interval")
    assert is_unknown_to_delta_rs("time(6)")
    assert not is_unknown_to_delta_rs("interval day")


def test_a_collation_is_part_of_a_sources_type() -> None:
    fields = [
        {"name": "a", "type": "string", "metadata": {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}},
        {"name": "b", "type": "string", "metadata": {}},
    ]
    assert [column.type for column in columns_of({"fields": fields})] == ["string collate UTF8_LCASE", "string"]
