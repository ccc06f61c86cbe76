"""A moment written in place of calls that read the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.compile.functions import FunctionRules, VolatileFunctionPolicy, at_moment, clock_calls
from engine.compile.parse import parse
from engine.compile.pipeline import Request, compile_query
from engine.compile.plan import MaintenancePlan
from engine.errors import Position, VolatileFunction
from engine.lake.sql_functions import SqlFunction
from engine.records import Column, ReasonCode
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import same_rows

MOMENT = datetime(2024, 2, 29, 23, 59, 58, 1_234, tzinfo=UTC)
TABLES = {"t": (Column("id", "int"), Column("day", "date"), Column("s", "string"))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT now() FROM t", "SELECT TIMESTAMP_LTZ '2024-02-29 23:59:58.001234 UTC' FROM t"),
        ("SELECT Current_Date, id FROM t", "SELECT DATE '2024-02-29', id FROM t"),
        ("SELECT current_date ( ) FROM t", "SELECT DATE '2024-02-29' FROM t"),
        ("SELECT localtimestamp() FROM t", "SELECT TIMESTAMP_NTZ '2024-02-29 23:59:58.001234' FROM t"),
        ("SELECT unix_timestamp() - 1 FROM t", "SELECT 1709251198L - 1 FROM t"),
        ("SELECT current_timezone() FROM t", "SELECT 'UTC' FROM t"),
        (
            "SELECT id -- now()\nFROM t WHERE day < curdate() AND s <> 'now()' AND day > current_date",
            "SELECT id -- now()\nFROM t WHERE day < DATE '2024-02-29' AND s <> 'now()' AND day > DATE '2024-02-29'",
        ),
        ("SELECT a.current_date, current_date FROM t", "SELECT a.current_date, DATE '2024-02-29' FROM t"),
        # a column, and what is asked of an argument
        ("SELECT t.now, `current_date` FROM t", "SELECT t.now, `current_date` FROM t"),
        ("SELECT unix_timestamp(day) FROM t", "SELECT unix_timestamp(day) FROM t"),
    ],
)
def test_calls_are_replaced_where_they_stand(text: str, expected: str) -> None:
    assert at_moment(text, clock_calls(parse(text).tree, text), MOMENT) == expected


def test_what_may_be_a_column_is_left_alone() -> None:
    text = "SELECT current_date, Current_Timestamp, now() FROM t"
    found = at_moment(text, clock_calls(parse(text).tree, text, {"current_date"}), MOMENT)
    assert found.startswith("SELECT current_date, TIMESTAMP_LTZ '2024-02-29")
    assert found.endswith("UTC' FROM t")


def compiled(query: str, analyzer: DuckAnalyzer | None = None, **request: object) -> MaintenancePlan:
    return compile_query(Request(query, TABLES, **request), analyzer or DuckAnalyzer(TABLES))  # type: ignore[arg-type]


def test_what_reads_the_clock_is_recomputed_and_can_be_computed_again() -> None:
    plan = compiled("SELECT id FROM t\nWHERE day = current_date()")
    assert plan.kept is None
    assert plan.full_reason is not None
    assert (plan.full_reason.code, plan.full_reason.position) == (ReasonCode.STABLE, Position(2, 13))
    assert [notice.text for notice in plan.notices] == [
        "current_date reads the clock: it is recomputed each time it is due"
    ]
    assert plan.query_at(MOMENT) == "SELECT id FROM t\nWHERE day = DATE '2024-02-29'"
    assert plan.replay is not None
    assert plan.replay.obstacle is None


def test_ties_are_broken_there_too() -> None:
    plan = compiled("SELECT id, current_date() AS today FROM t ORDER BY day LIMIT 3")
    assert plan.made_unique
    assert "DATE '2024-02-29'" in plan.query_at(MOMENT)
    assert "CURRENT_DATE" not in plan.query_at(MOMENT).upper()


def test_what_depends_on_the_order_of_rows_is_seen_beside_a_clock() -> None:
    with pytest.raises(VolatileFunction, match="order of rows"):
        compiled("SELECT percentile_approx(id, 0.5), max(current_date()) FROM t")
    plan = compiled("SELECT percentile_approx(id, 0.5), max(current_date()) FROM t", full=True)
    assert plan.full_reason is not None
    assert plan.full_reason.code is ReasonCode.VOLATILE
    assert plan.replay is None


def test_a_word_of_the_clock_cannot_be_computed_again() -> None:
    plan = compiled("SELECT id FROM t WHERE day < DATE 'today'")
    assert plan.replay is not None
    assert "'today'" in (plan.replay.obstacle or "")
    assert plan.query_at(MOMENT) == plan.query


def test_who_asks_is_remembered_where_it_matters() -> None:
    plan = compiled("SELECT id, current_user() AS me FROM t")
    assert plan.replay is not None
    assert plan.replay.asks_session
    assert not compiled("SELECT now() AS n FROM t").replay.asks_session  # type: ignore[union-attr]


def test_the_policy_refuses() -> None:
    with pytest.raises(VolatileFunction, match="current_date reads the clock") as caught:
        compiled("SELECT current_date() FROM t", functions=FunctionRules(VolatileFunctionPolicy.REJECT))
    assert caught.value.position == Position(1, 8)


# -- functions of one's own ----------------------------------------------------------------------------------


def made(**bodies: str) -> DuckAnalyzer:
    analyzer = DuckAnalyzer(TABLES)
    analyzer.made = {name: SqlFunction(name, True, False, False, body) for name, body in bodies.items()}
    return analyzer


def test_a_function_with_a_body_is_maintained_and_its_inner_functions_are_watched() -> None:
    analyzer = made(later="sooner(x) + 1", sooner="x * 2")
    query = "SELECT id, later(id) AS o FROM t"
    plan = compiled(query, analyzer)
    assert plan.full_reason is None
    assert plan.kept is not None
    assert plan.functions == ("later", "sooner")
    analyzer.made["sooner"] = replace(analyzer.made["sooner"], body="x * 3")
    assert compiled(query, analyzer).fingerprint != plan.fingerprint


def test_the_settings_declare_a_function() -> None:
    query = "SELECT id, shop.tax(id) AS tax FROM t"
    with pytest.raises(VolatileFunction, match="nobody has declared it immutable") as caught:
        compiled(query)
    assert caught.value.position == Position(1, 17)
    assert compiled(query, functions=FunctionRules(immutable=("shop.tax",))).kept is not None
    in_full = compiled(query, full=True)
    assert in_full.full_reason is not None
    assert in_full.full_reason.code is ReasonCode.VOLATILE
    assert in_full.fingerprint != compiled(query, full=True, functions=FunctionRules(immutable=("tax",))).fingerprint


def test_a_body_that_reads_the_clock_has_it_read() -> None:
    plan = compiled("SELECT id FROM t WHERE day = due(id)", made(due="date_add(current_date(), x)"))
    assert plan.full_reason is not None
    assert plan.full_reason.text == "due calls current_date, which reads the clock"


def test_a_body_that_runs_code_is_refused_whatever_is_declared_of_it() -> None:
    analyzer = made(odd="reflect('java.lang.Math', 'abs', x)")
    for rules in (FunctionRules(), FunctionRules(immutable=("odd",))):
        with pytest.raises(VolatileFunction, match="never allowed"):
            compiled("SELECT odd(id) AS o FROM t", analyzer, functions=rules, full=True)


# -- aggregates of one's own ---------------------------------------------------------------------------------

OWN = FunctionRules(immutable=("spread",))


def spread() -> DuckAnalyzer:
    analyzer = DuckAnalyzer(TABLES)
    analyzer.aggregates = {"spread"}
    return analyzer


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s, CAST(spread(id) AS INT) AS x, COUNT(*) AS n FROM t GROUP BY s",
        "SELECT CAST(spread(id + 1) AS INT) AS x FROM t",
        "SELECT s, CAST(spread(id) AS INT) + 1 AS x FROM t GROUP BY s HAVING COUNT(*) > 1",
    ],
)
def test_an_aggregate_of_ones_own_is_computed_again_for_touched_groups(query: str) -> None:
    plan = compiled(query, spread(), functions=OWN)
    assert plan.kept is not None, plan.full_reason
    lake = FakeLake(TABLES)
    lake.db.execute("CREATE MACRO spread(x) AS max(x) - min(x)")
    try:
        lake.run("INSERT INTO t VALUES (1, NULL, 'a'), (5, NULL, 'a'), (7, NULL, 'b')")
        table = FakeStreamTable(lake, plan)
        table.populate()
        for change in ("INSERT INTO t VALUES (9, NULL, 'a'), (8, NULL, 'b')", "DELETE FROM t WHERE id = 1"):
            lake.run(change)
            table.refresh()
            assert same_rows(table.visible(), lake.recompute(query, plan.visible))
    finally:
        lake.db.execute("DROP MACRO spread")


@pytest.mark.parametrize(
    "call", ["spread(DISTINCT id)", "spread(id) FILTER (WHERE id > 1)", "spread(id) OVER (PARTITION BY s)"]
)
def test_what_is_not_known_of_it_is_recomputed(call: str) -> None:
    plan = compiled(f"SELECT {call} AS x FROM t", spread(), functions=OWN)
    assert plan.full_reason is not None
    assert plan.full_reason.code is ReasonCode.UNSUPPORTED
    assert "the aggregate function spread" in plan.full_reason.text
