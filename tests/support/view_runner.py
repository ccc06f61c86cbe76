"""Runs a `.test` file on DuckDB: compile, populate, then each step by its change and by recompute."""

from __future__ import annotations

from enum import StrEnum

from engine.compile.bind import STATEMENT_RULES
from engine.compile.optimize import PLAN_RULES
from engine.compile.pipeline import Request, compile_query
from engine.compile.plan import MaintenancePlan
from engine.errors import TrickleError
from engine.records import ReasonCode
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import net_change, same_change, same_rows, written, written_change
from tests.support.spark_types import UNKNOWN
from tests.support.stepping_lake import SteppingLake
from tests.support.view_test import Refusal, Row, Step, ViewTest, parse_change, parse_rows


class Variant(StrEnum):
    """The same must come out of every one."""

    OPTIMIZED = "optimized"
    AS_DERIVED = "as derived"  # no rule of the optimizer is applied
    IN_STEPS = "in steps"  # what is used twice is computed first and kept
    RESTARTED = "restarted"  # before each step everything but the stored table is made anew from the text


def run_view_test(test: ViewTest, variant: Variant) -> None:
    if test.refusal is not None:
        check_refusal(test, test.refusal)
        return
    lake = SteppingLake if variant is Variant.IN_STEPS else FakeLake
    run_steps(test, variant, planned(test, variant), lake(test.relations), texts_for_duckdb(test))


def texts_for_duckdb(test: ViewTest) -> tuple[str, ...]:
    """What is recomputed: nothing where the text leaves open which of several rows it means."""
    return () if test.ties else (test.means or test.query,)


def texts_for_spark(test: ViewTest) -> tuple[str, ...]:
    """There the two texts of a view are shown to mean the same."""
    return () if test.ties else (test.query, test.means) if test.means else (test.query,)


def run_steps(
    test: ViewTest,
    variant: Variant,
    plan: MaintenancePlan,
    lake: FakeLake,
    texts: tuple[str, ...],
    *,
    hidden_each_step: bool = True,
) -> None:
    for table in test.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, plan)
    view.populate()
    check_against_recompute(view, "after the first full refresh", texts)
    if test.rows is not None:
        expected = parse_rows(test.rows, plan.visible, str(test.path))
        expect(view.visible(), expected, "the first rows")
    for number, step in enumerate(test.steps, start=1):
        if variant is Variant.RESTARTED:
            again = planned(test, variant)
            assert again.fingerprint == plan.fingerprint, "the same text has another fingerprint after a restart"
            view.plan = again
        run_step(test, step, view, variant, texts, hidden=hidden_each_step or number == len(test.steps))


def planned(test: ViewTest, variant: Variant, analyzer: DuckAnalyzer | None = None) -> MaintenancePlan:
    rules = () if variant is Variant.AS_DERIVED else PLAN_RULES
    request = Request(test.query, test.relations, rules=rules)
    plan = compile_query(request, analyzer or DuckAnalyzer(test.relations))
    assert plan.kept is not None, f"refused: {plan.full_reason}"
    unknown = [column.name for column in plan.columns if column.type == UNKNOWN]
    assert not unknown, f"tests/support/spark_types.py does not know Spark's type of {', '.join(unknown)}"
    # Which way fits is decided on the optimized tree: a filter that moved below the groups leaves more to choose from.
    assert variant is Variant.AS_DERIVED or plan.kept.rule.name == test.kept, (
        f"kept {plan.kept.rule.name}, not {test.kept}"
    )
    return plan


def run_step(
    test: ViewTest,
    step: Step,
    view: FakeStreamTable,
    variant: Variant,
    texts: tuple[str, ...],
    *,
    hidden: bool = True,
) -> None:
    where = f"{test.path.name}:{step.line}, step {step.title!r}"
    before = view.visible()
    view.lake.run(step.dml)
    view.refresh(() if variant is Variant.AS_DERIVED else STATEMENT_RULES)
    check_against_recompute(view, where, texts, hidden=hidden or test.ties)
    if step.change is not None:
        expected = parse_change(step.change, view.plan.visible, f"{test.path}:{step.line}")
        actual = net_change(before, view.visible())
        assert same_change(actual, expected), (
            f"{where}: another change\n  expected\n{written_change(expected)}\n  actual\n{written_change(actual)}"
        )


def check_against_recompute(view: FakeStreamTable, where: str, texts: tuple[str, ...], *, hidden: bool = True) -> None:
    """Visible rows as the texts say, hidden columns as a full refresh would make them."""
    for text in texts:
        expect(view.visible(), view.lake.recompute(text, view.plan.visible), where)
    if hidden:
        expect(view.stored(), view.full(), f"{where}, with hidden columns")
    view.check_identities()


def expect(actual: list[Row], expected: list[Row], where: str) -> None:
    assert same_rows(actual, expected), (
        f"{where}: other rows\n  expected\n{written(expected)}\n  actual\n{written(actual)}"
    )


def check_refusal(test: ViewTest, expected: Refusal) -> None:
    actual = refusal_of(test)
    assert actual is not None, "the query is maintained, not refused"
    assert actual == expected, f"refused in another way\n  expected {expected}\n  actual   {actual}"


def refusal_of(test: ViewTest) -> Refusal | None:
    """What the compiler says against the query, as an error or as the reason of a full refresh."""
    try:
        plan = compile_query(Request(test.query, test.relations), DuckAnalyzer(test.relations))
    except TrickleError as error:
        return Refusal(error.code, error.position, error.message)
    if plan.full_reason is None:
        return None
    codes = {ReasonCode.UNSUPPORTED: "UnsupportedOperator", ReasonCode.STABLE: "Stable"}
    return Refusal(codes[plan.full_reason.code], plan.full_reason.position, plan.full_reason.text)
