"""Small plots: what is usual stays low, what is not is lifted, and nothing leaves its box."""

from __future__ import annotations

import pytest

from trickle_tui import plots
from trickle_tui.paint import plain, width


def test_a_sparkline_of_the_usual_stays_low() -> None:
    drawn = plots.sparkline([10.0] * 20)
    assert plain(drawn) == "▃" * 20
    assert {span.role for span in drawn} == {"spark"}


def test_an_outlier_is_lifted_and_reaches_the_top() -> None:
    drawn = plots.sparkline([10.0] * 19 + [40.0])
    assert drawn[-1] == ("█", "stale")
    assert [span.role for span in drawn] == ["spark", "stale"]


def test_few_values_stand_at_the_right_and_none_leave_it_blank() -> None:
    assert plain(plots.sparkline([1.0, 1.0], 6)) == "    ▃▃"
    assert plain(plots.sparkline([], 6)) == " " * 6
    assert plain(plots.sparkline([0.0, 0.0], 2)) == "▁▁"


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, "─────"), (0.01, "╸────"), (0.5, "━━╸──"), (0.6, "━━━──"), (1, "━━━━━"), (7, "━━━━━"), (-1, "─────")],
)
def test_a_meter_is_thick_as_far_as_it_goes(share: float, drawn: str) -> None:
    assert plain(plots.meter(share, 5)) == drawn


@pytest.mark.parametrize("largest", [0.0, 0.03, 1, 7, 99, 412_006, 1e9])
def test_an_axis_ends_above_its_largest_value(largest: float) -> None:
    top = plots.Axis.over([largest]).top
    assert top >= largest
    assert top <= max(1.0, largest * 2.1)


def test_braille_fills_its_box_and_marks_what_is_over() -> None:
    rows = plots.braille([1, 1, 1, 4], room=4, height=2, top=4, unusual_over=3)
    assert [width(row) for row in rows] == [4, 4]
    assert rows[0][-1].role == "stale"
    assert plain(rows[1]).strip()


def test_a_gap_in_the_values_is_a_gap_in_the_line() -> None:
    (row,) = plots.braille([1, 1, None, None, 1, 1], room=3, height=1, top=1)
    assert plain(row)[1] == " "


def test_bars_grow_in_eighths() -> None:
    rows = plots.bars([0, 1, 8, 16], room=4, height=2, top=16)
    assert [plain(row) for row in rows] == ["   █", " ▁██"]


def test_the_threshold_lies_behind_the_line() -> None:
    rows = plots.threshold(plots.bars([4, 0], room=2, height=4, top=4), value=2, top=4)
    assert [plain(row) for row in rows] == ["█ ", "█╌", "█ ", "█ "]


def test_buckets_keep_the_largest_and_the_newest_is_last() -> None:
    assert plots.bucketed([(1, 5.0), (2, 9.0), (95, 1.0), (200, 7.0)], 100, 10) == [1.0, *[None] * 8, 9.0]
    assert plots.held([None, 1.0, None, 2.0, None]) == [None, 1.0, 1.0, 2.0, 2.0]


def test_a_frame_has_its_labels_at_the_edges() -> None:
    rows = [plain(row) for row in plots.framed(plots.bars([1] * 20, 20, 4, 2), ("2s", "1s", "0s"), ("-1h", "now"), 4)]
    assert rows[0].startswith("  2s┤")
    assert rows[2].startswith("  1s┤")
    assert rows[4].startswith("  0s└")
    assert rows[5].split() == ["-1h", "now"]
    assert {len(row) for row in rows} == {25}
