"""What is painted for given records: the list at any width, the header, plans and history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.records import SchedulerPlace, SchedulerStatus, SparkPhase, SparkStatus, State
from engine.results import tree_leads
from tests.tui.fake import DELTA_SQL, NOW, SHOP, _history, explanation, shop
from trickle_tui import sql_text, state
from trickle_tui.paint import plain, width
from trickle_tui.views import answers, header, history, plan, tables
from trickle_tui.views.tables import Moment

OVERVIEW = shop()
MOMENT = Moment(NOW, NOW)


@pytest.mark.parametrize("room", [36, 50, 60, 76, 100, 120, 210])
def test_rows_fill_the_room_and_never_lose_name_state_staleness(room: int) -> None:
    shape = tables.layout(OVERVIEW.tables, room)
    assert {"state", "name", "stale"} <= set(shape.order)
    for table in OVERVIEW.tables:
        painted = tables.row(shape, table, MOMENT, selected=False, marked=False)
        assert width(painted) <= room
        if room >= 50:
            assert table.name in plain(painted)


def test_columns_leave_in_their_order() -> None:
    before: set[str] = set()
    for room in range(30, 200, 2):
        shown = set(tables.layout(OVERVIEW.tables, room).order)
        assert before <= shown
        before = shown
    assert {"note", "trend", "rows", "mode"} <= before


def test_a_mode_nobody_asked_for_is_lifted_with_its_reason() -> None:
    shape = tables.layout(OVERVIEW.tables, 100)
    row = {table.name: tables.row(shape, table, MOMENT, False, False) for table in OVERVIEW.tables}
    assert "full cost" in plain(row["top_products"])
    assert ("cost", "stale") in [(span.text.strip(), span.role) for span in row["top_products"]]
    # asked for FULL: nothing to say
    assert "full " in plain(row["cohort_retention"])
    assert ("full", "dim") in row["cohort_retention"]


def test_staleness_grows_between_two_pictures() -> None:
    table = next(table for table in OVERVIEW.tables if table.name == "revenue_by_region")
    shape = tables.layout(OVERVIEW.tables, 100)
    later = Moment(NOW, NOW.replace(second=36))
    assert "12s/30s" in plain(tables.row(shape, table, MOMENT, False, False))
    assert "17s/30s" in plain(tables.row(shape, table, later, False, False))


def test_marks_and_cursor_read_without_colour() -> None:
    shape = tables.layout(OVERVIEW.tables, 100)
    leads = [
        plain(tables.row(shape, OVERVIEW.tables[0], MOMENT, selected, marked))[0]
        for selected in (False, True)
        for marked in (False, True)
    ]
    assert leads == [" ", "•", "▌", "█"]


def test_the_header_names_the_states_where_there_is_room() -> None:
    assert "✖ 1 failed" in plain(header.facts(OVERVIEW, NOW, 140))
    narrow = plain(header.facts(OVERVIEW, NOW, 80))
    assert "✖ 1   ◆ 1   ▲ 2   ● 10   worst 3m12s" in narrow
    assert len(narrow) == 80


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (SchedulerStatus(SchedulerPlace.HERE), "scheduler ● here"),
        (SchedulerStatus(SchedulerPlace.ELSEWHERE, 4711), "scheduler ○ held by 4711"),
        (SchedulerStatus(SchedulerPlace.NOBODY), "scheduler ○ off"),
        (SchedulerStatus(SchedulerPlace.PAUSED), "scheduler ○ paused"),
    ],
)
def test_the_header_says_who_refreshes(place: SchedulerStatus, text: str) -> None:
    assert text in plain(header.facts(replace(OVERVIEW, scheduler=place), NOW, 140))


@pytest.mark.parametrize("phase", SparkPhase)
def test_the_header_says_how_spark_is(phase: SparkPhase) -> None:
    said = plain(header.facts(replace(OVERVIEW, spark=SparkStatus(phase)), NOW, 140))
    assert phase.value in said


def test_every_state_has_its_own_sign() -> None:
    twins = {State.LATE, State.FROZEN}
    signs = [state.glyph(each) for each in State if each not in twins]
    assert len(signs) == len(set(signs))


def test_ascii_keeps_widths() -> None:
    for table in OVERVIEW.tables:
        painted = plain(tables.row(tables.layout(OVERVIEW.tables, 100), table, MOMENT, True, True))
        plain_text = state.to_ascii(painted)
        assert plain_text.isascii()
        assert len(plain_text) == len(painted)


def test_a_plan_has_a_dash_where_nothing_was_measured() -> None:
    record = _history(next(made for made in SHOP if made.name == "customer_ltv"))[-1]
    rows = [plain(each) for each in plan.operator_lines(record, 136)]
    assert rows[0].split() == ["OPERATOR", "RULE", "Δ", "IN", "Δ", "OUT", "EST", "TIME", "EST", "SHARE"]
    assert "79 %" in rows[3]
    assert rows[7].rstrip().endswith("—        —")
    unmeasured = replace(record, operators=(replace(record.operators[0], rows_out=None, duration_ms=None),))
    assert plain(plan.operator_lines(unmeasured, 136)[1]).count("—") == 2


@pytest.mark.parametrize("room", [60, 76, 106, 136, 240])
def test_plans_fit_any_room(room: int) -> None:
    records = _history(next(made for made in SHOP if made.name == "customer_ltv"))
    for painted in (
        *plan.operator_lines(records[-1], room),
        *plan.refresh_lines(records, 30, NOW, room),
        *plan.explanation_lines(explanation(), room),
        *plan.why_lines(records[-1], room),
    ):
        assert width(painted) <= room


def test_the_slow_operator_has_the_only_warm_row() -> None:
    record = _history(next(made for made in SHOP if made.name == "customer_ltv"))[-1]
    hot = [any("on hot" in span.role for span in row) for row in plan.operator_lines(record, 136)]
    assert hot == [False, False, False, True, *[False] * 5]


def test_tree_lines_start_go_on_and_end() -> None:
    assert tree_leads([0, 1, 2, 3, 3, 1]) == ("", "├─ ", "│  └─ ", "│     ├─ ", "│     └─ ", "└─ ")


def test_the_refresh_shown_is_the_newest_that_did_work() -> None:
    records = _history(next(made for made in SHOP if made.name == "shipments_open"))
    assert records[plan.chosen_index(records, None) or 0].operators
    assert plan.chosen_index(records, records[3].number) == 3
    assert plan.chosen_index((), None) is None


@pytest.mark.parametrize("room", [76, 106, 136])
def test_history_rows_stand_below_their_heads(room: int) -> None:
    head = plain(history.head(room))
    record = _history(SHOP[5])[-1]
    row = plain(history.row(record, NOW, room, False))
    assert row.index("0.21s") + 5 == head.index("TOOK") + 4
    assert row.index("differential") == head.index("OUTCOME")


def test_sql_is_coloured_by_what_it_is() -> None:
    (first, *_), roles = sql_text.highlight(DELTA_SQL), {}
    for painted in sql_text.highlight(DELTA_SQL):
        roles |= {span.text: span.role for span in painted}
    assert plain(first).startswith("WITH d_orders AS (")
    assert roles["SELECT"] == "accent"
    assert roles["'void'"] == "string"
    assert roles["SUM"] == "text bold"
    assert roles["-- Δ orders 403→404, insert-only"] == "dim italic"


def test_sql_keeps_every_character_and_folds_long_lines() -> None:
    assert "\n".join(plain(each) for each in sql_text.highlight(DELTA_SQL)) == DELTA_SQL
    long = "select " + ", ".join(f"column_{n}" for n in range(40)) + " from t where a = 'it''s; -- no comment'"
    lines = sql_text.numbered(long, 60)
    assert len(lines) > 5
    assert all(width(each) <= 60 for each in lines)
    joined = "".join(plain(each)[6:] for each in lines)
    assert "".join(joined.split()) == "".join(long.split())


def test_dropping_names_what_goes_with_it() -> None:
    text = " ".join(plain(each) for each in answers.about_drop(("a",), ("b", "c")))
    assert "2 stream tables below go too: b, c." in text
    assert "Nothing reads it." in " ".join(plain(each) for each in answers.about_drop(("a",), ()))
