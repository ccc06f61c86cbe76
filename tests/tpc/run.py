"""One query of a benchmark from end to end: compiled, filled, and refreshed through cycles of changes.

After every refresh the view must hold what its query gives over the changed tables, as a multiset of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.compile.parse import parse
from engine.compile.pipeline import Analyzer, Request, compile_query
from engine.compile.plan import MaintenancePlan
from engine.errors import Position, TrickleError
from engine.records import ReasonCode
from tests.properties.fuzz import Engine
from tests.support.duck_analyzer import DuckAnalyzer, Relations
from tests.support.exact_lake import ExactLake, exactly, install
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import net_change, same_rows, written_change
from tests.support.spark_lake import SparkLake
from tests.support.spark_types import UNKNOWN
from tests.support.view_test import Row
from tests.tpc import tpcds_changes, tpch_changes
from tests.tpc.changes import Cycle, Cycles
from tests.tpc.suite import TPCDS, TPCH, Suite

DIFFERENTIAL = "differential"
#: of rows that differ, so many are shown
SHOWN = 20

CHANGES: dict[Suite, Callable[[int], Cycles]] = {TPCH: tpch_changes.cycles, TPCDS: tpcds_changes.cycles}


def on_duckdb(relations: Relations) -> tuple[Analyzer, FakeLake]:
    return DuckAnalyzer(relations), ExactLake(relations)


@dataclass(frozen=True)
class Verdict:
    """What the compiler says to a query: differential, or why not."""

    number: int
    text: str
    position: Position | None = None
    plan: MaintenancePlan | None = None

    @property
    def is_differential(self) -> bool:
        return self.plan is not None


@dataclass(frozen=True)
class Lived:
    """A differential query that held through all cycles, and what it took."""

    cycles: int
    refresh_ms: float
    recompute_ms: float
    #: rows at the end
    rows: int
    #: rows of the change sets, all together
    changed: int


def judge(suite: Suite, number: int, analyzer: Analyzer | None = None) -> Verdict:
    request = Request(suite.query(number), suite.relations)
    try:
        plan = compile_query(request, analyzer or DuckAnalyzer(suite.relations))
    except TrickleError as error:
        return Verdict(number, f"{error.code}: {_line(error.message)}", error.position)
    if plan.kept is None:
        assert plan.full_reason is not None
        assert plan.full_reason.code is ReasonCode.UNSUPPORTED, plan.full_reason
        return Verdict(number, f"refused: {_line(plan.full_reason.text)}", plan.full_reason.position)
    unknown = [column.name for column in plan.columns if column.type == UNKNOWN]
    assert not unknown, f"tests/support/spark_types.py does not know Spark's type of {', '.join(unknown)}"
    return Verdict(number, DIFFERENTIAL, plan=plan)


def live(suite: Suite, plan: MaintenancePlan, cycles: int, seed: int = 0, engine: Engine = on_duckdb) -> Lived:
    """Raises where the view is not what recompute gives."""
    _, lake = engine({name: suite.relations[name] for name in plan.sources})
    suite.fill(lake)
    view = FakeStreamTable(lake, plan)
    view.populate()
    recompute_ms = _check(view, "at first", hidden=False)
    refresh_ms, changed = 0.0, 0
    for number, cycle in zip(range(1, cycles + 1), CHANGES[suite](seed), strict=False):
        apply(lake, cycle)
        began = time.perf_counter()
        view.refresh()
        refresh_ms += _ms_since(began)
        changed += sum(view.last_ops.values())
        recompute_ms += _check(view, f"after cycle {number}", hidden=number == cycles)
    return Lived(cycles, refresh_ms / max(cycles, 1), recompute_ms / (cycles + 1), len(view.visible()), changed)


def touched(suite: Suite, number: int, cycles: int, seed: int = 0) -> tuple[list[int], list[int], float]:
    """How many rows a query gives at first and after each cycle, how many change in each, and the time of one run.

    Whether anything is proved by a query that holds: nothing, where data and changes pass it by.
    """
    tables = sources_of(suite, number)
    lake = ExactLake({name: suite.relations[name] for name in tables})
    suite.fill(lake)
    columns = DuckAnalyzer(suite.relations).describe(suite.query(number))
    began, spent_ms = time.perf_counter(), 0.0
    rows = lake.recompute(suite.query(number), columns)
    spent_ms += _ms_since(began)
    counts, changes = [len(rows)], []
    for _, cycle in zip(range(cycles), CHANGES[suite](seed), strict=False):
        apply(lake, cycle)
        began = time.perf_counter()
        before, rows = rows, lake.recompute(suite.query(number), columns)
        spent_ms += _ms_since(began)
        counts.append(len(rows))
        changes.append(sum(abs(weight) for weight, _ in net_change(before, rows)))
    return counts, changes, spent_ms / (cycles + 1)


def disagreement(suite: Suite, number: int, lake: SparkLake) -> str | None:
    """Where DuckDB, which stands in for Spark when views are compared, answers a query otherwise than Spark does."""
    text = suite.query(number)
    columns = DuckAnalyzer(suite.relations).describe(text)
    install(lake.db)
    stand_in = lake.rows(exactly(lake.recomputation(text, columns), suite.relations))
    spark = lake.recompute(text, columns)
    return None if same_rows(stand_in, spark) else f"(-) Spark, (+) DuckDB\n{_difference(spark, stand_in)}"


def sources_of(suite: Suite, number: int) -> tuple[str, ...]:
    """The tables that a query reads."""
    return parse(suite.query(number)).sources


def apply(lake: FakeLake, cycle: Cycle) -> None:
    """The part of a cycle that concerns the tables of a lake."""
    for statement in cycle:
        if statement.table in lake.tables:
            lake.run(statement.sql)


def _check(view: FakeStreamTable, where: str, *, hidden: bool) -> float:
    began = time.perf_counter()
    expected = view.lake.recompute(view.plan.query, view.plan.visible)
    took_ms = _ms_since(began)
    _expect(view.visible(), expected, where)
    if hidden:
        _expect(view.stored(), view.full(), f"{where}, with hidden columns")
    view.check_identities()
    return took_ms


def _expect(actual: Sequence[Row], expected: Sequence[Row], where: str) -> None:
    if same_rows(actual, expected):
        return
    raise AssertionError(
        f"{where}: {len(actual)} rows, recompute gives {len(expected)}; missing (-) and wrong (+) are"
        f"\n{_difference(expected, actual)}"
    )


def _difference(expected: Sequence[Row], actual: Sequence[Row]) -> str:
    difference = net_change(expected, actual)
    more = f"\n    and {len(difference) - SHOWN} more" if len(difference) > SHOWN else ""
    return f"{written_change(difference[:SHOWN])}{more}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
