"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trickle_tui import format


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"), (0, "0s"), (12.9, "12s"), (59, "59s"), (60, "1m00s"), (192, "3m12s"), (599, "9m59s"),
        (600, "10m"), (3599, "59m"), (3600, "1h00m"), (7512, "2h05m"), (61200, "17h"), (86400, "1d00h"),
        (273600, "3d04h"), (864000, "10d"), (-5, "0s"),
    ],
)  # fmt: skip
def test_an_age_has_two_units_at_most(seconds: float | None, text: str) -> None:
    assert format.age(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "500ms"), (30, "30s"), (60, "1m"), (90, "1m30s"), (300, "5m"), (3600, "1h"), (5400, "1h30m"),
     (86400, "24h"), (172800, "2d")],
)  # fmt: skip
def test_a_schedule_reads_as_it_was_written(seconds: float, text: str) -> None:
    assert format.interval(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(None, "—"), (0, "0ms"), (0.4, "<1ms"), (3, "3ms"), (99, "99ms"), (99.6, "0.10s"), (210, "0.21s"),
     (4100, "4.10s"), (9996, "10.0s"), (38400, "38.4s"), (59960, "59s"), (192000, "3m12s")],
)  # fmt: skip
def test_work_is_measured_to_what_matters(milliseconds: float | None, text: str) -> None:
    assert format.took(milliseconds) == text


def test_counts_have_commas_and_a_true_minus() -> None:
    assert format.count(412006) == "412,006"
    assert format.count(-3) == "−3"
    assert format.count(None) == "—"
    assert format.changes(1204, 38) == "+1,204 −38"
    assert format.changes(1, 0, 7) == "+1 −0 ~7"


def test_sizes_shares_and_plurals() -> None:
    assert [format.size(n) for n in (None, 12, 38_000_000, 4e12)] == ["—", "12 B", "38 MB", "4 TB"]
    assert format.percent(0.123) == "12 %"
    assert [format.short_count(n) for n in (0, 940, 2000, 1.5e6)] == ["0", "940", "2k", "1.5M"]
    assert [format.plural(1, "row"), format.plural(2, "row"), format.plural(2, "refresh", "refreshes")] == [
        "1 row", "2 rows", "2 refreshes",
    ]  # fmt: skip


def test_a_moment_of_another_day_says_which() -> None:
    now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
    assert format.moment(datetime(2026, 5, 4, 9, 40, 1, tzinfo=UTC), now) == "09:40:01"
    assert format.moment(datetime(2026, 5, 3, 9, 40, tzinfo=UTC), now) == "3 May 09:40"
    assert format.moment(None, now) == "—"


def test_a_path_is_cut_from_its_middle() -> None:
    short = format.short_path("/srv/shop/.trickle/warehouse/customer_ltv", 24)
    assert len(short) == 24
    assert short.startswith("/srv/sh")
    assert short.endswith("/customer_ltv")
    assert format.short_path("/a", 24) == "/a"
    assert format.path_within("/srv/shop/.trickle/x", "/srv/shop") == ".trickle/x"
    assert format.path_within("/srv/shopping/x", "/srv/shop") == "/srv/shopping/x"
