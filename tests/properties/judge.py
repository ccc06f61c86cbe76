"""Runs one case and says whether what is maintained is right: against recompute, in parts, without optimization, and
after each rule of the optimizer by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from engine.compile.bind import STATEMENT_RULES
from engine.compile.optimize import PLAN_RULES
from engine.compile.pipeline import Analyzer, Request, compile_query
from engine.errors import QueryParseError, TrickleError
from engine.records import ReasonCode
from tests.properties.case import Case
from tests.properties.features import COVERED, DECIDED, Weights, weights
from tests.properties.oracles import partitions, unoptimized
from tests.properties.rule_by_rule import check_each_rule
from tests.properties.tree import Query
from tests.support.duck_analyzer import DuckAnalyzer, Relations
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import same_rows, written
from tests.support.spark_types import UNKNOWN
from tests.support.stepping_lake import Cut, SteppingLake
from tests.support.view_runner import check_against_recompute
from tests.support.view_test import Row

#: what computes a case: who answers the compiler's questions, and a lake
Engine = Callable[[Relations], tuple[Analyzer, FakeLake]]
#: how a query that is not maintained is counted
REFUSED = "refused"
#: the query itself fails on some of the data, so that nothing can be maintained
NO_ANSWER = "fails"


def on_duckdb(relations: Relations) -> tuple[Analyzer, FakeLake]:
    return DuckAnalyzer(relations), FakeLake(relations)


def in_steps(seed: int) -> Engine:
    def engine(relations: Relations) -> tuple[Analyzer, FakeLake]:
        return DuckAnalyzer(relations), SteppingLake(relations, Cut.by_chance(relations, seed))

    return engine


@dataclass(frozen=True)
class Settings:
    """How a case is judged. A seed decides what is looked at besides recompute, so that everything has its share."""

    engine: Engine = on_duckdb
    optimized: bool = True
    weights: Weights = field(default_factory=weights)
    seed: int = 0
    in_parts: bool = False
    plainly: bool = False
    rule_by_rule: bool = False
    #: are hidden columns compared with a full refresh after each step, or after the last one?
    hidden_each_step: bool = True
    covered: frozenset[str] = COVERED

    @staticmethod
    def of(seed: int, engine: Engine = on_duckdb, chosen: Weights | None = None) -> Settings:
        given = weights() if chosen is None else chosen
        is_cheap = engine is on_duckdb
        engine = in_steps(seed) if is_cheap and seed % 3 == 1 else engine
        return Settings(
            engine,
            seed % 5 != 0,
            given,
            seed,
            in_parts=seed % 10 == 3,
            plainly=seed % 10 == 7,
            rule_by_rule=seed % 20 == 11,
            hidden_each_step=is_cheap,
        )


@dataclass(frozen=True)
class Outcome:
    #: how the view was kept, or `refused`
    way: str
    #: why it is not maintained
    reason: str = ""
    #: the further oracles that were asked
    asked: tuple[str, ...] = ()


class WrongRows(AssertionError):
    """An oracle has other rows than the maintained view."""


class RefusedAlthoughCovered(AssertionError):
    """Everything in the query is said to be maintained, but the query is not."""


class NoAnswer(Exception):
    """The text fails as well as the view."""


#: DuckDB does not look through a full join for what a row has to do with the query around, refuses to order by what it
#: finds to be a constant, and forgets the names of a struct in UNNEST in which one of its macros reads the row: it
#: cannot be an oracle then
BEYOND_DUCKDB = (
    "Unsupported join type for flattening correlated subquery",
    "ORDER BY non-integer literal",
    "Need named argument for struct pack",
)
#: Spark does not always find the keys of grouping sets in HAVING beside a subquery
KEYS_IN_HAVING = "subquery_in_having"
GROUPING_SETS = frozenset({"rollup", "cube", "grouping_sets"})
#: a correlated subquery as a key of groups, of which no output speaks
CORRELATED_KEY = "MUST_AGGREGATE_CORRELATED_SCALAR_SUBQUERY"


def judge(case: Case, settings: Settings) -> Outcome:
    """How the case went. Raises where something is wrong."""
    try:
        return _judged(case, settings)
    except (duckdb.NotImplementedException, duckdb.BinderException) as error:
        beyond = next((words for words in BEYOND_DUCKDB if words in str(error)), None)
        if beyond is None:
            raise
        return Outcome(REFUSED, beyond)
    except QueryParseError as error:
        if not _is_beyond_spark(error, case):
            raise
        return Outcome(REFUSED, error.message)
    except NoAnswer as error:
        return Outcome(NO_ANSWER, str(error))


def _is_beyond_spark(error: QueryParseError, case: Case) -> bool:
    """Texts with one meaning, which Spark refuses all the same."""
    if "There is no column" in error.message:
        return KEYS_IN_HAVING in case.features and bool(case.features & GROUPING_SETS)
    return CORRELATED_KEY in (error.detail or "") and "subquery_below_groups" in case.features


def _judged(case: Case, settings: Settings) -> Outcome:
    history: list[list[Row]] = []
    outcome = maintain(case, settings, history, compare=True)
    if outcome.way == REFUSED:
        decided = any(words in outcome.reason for words in DECIDED)
        if case.features <= settings.covered and not decided:
            raise RefusedAlthoughCovered(outcome.reason)
        return outcome
    asked = []
    if settings.rule_by_rule:
        check_each_rule(case, *settings.engine(case.relations))
        asked.append("rule by rule")
    if case.ties:
        return Outcome(outcome.way, asked=tuple(asked))
    if settings.in_parts and (three := partitions(case, settings.seed, settings.weights)) is not None:
        asked.append(_compare(case, settings, history, "in parts", *three))
    if settings.plainly:
        asked.append(_compare(case, settings, history, "without optimization", unoptimized(case.query)))
    return Outcome(outcome.way, asked=tuple(asked))


def _compare(case: Case, settings: Settings, history: list[list[Row]], how: str, *queries: Query) -> str:
    """Maintains other queries over the same changes: together they must show the same at every moment."""
    together: list[list[Row]] = [[] for _ in history]
    for query in queries:
        found: list[list[Row]] = []
        if maintain(case.with_query(query), settings, found, compare=False).way == REFUSED:
            return f"{how}: refused"
        for rows, more in zip(together, found, strict=True):
            rows += more
    for number, (expected, actual) in enumerate(zip(history, together, strict=True)):
        if not same_rows(expected, actual):
            texts = "\n".join(f"  {query.sql()}" for query in queries)
            raise WrongRows(
                f"other rows {how}, after step {number}\n{texts}\n"
                f"  the view\n{written(expected)}\n  the others\n{written(actual)}"
            )
    return how


def maintain(case: Case, settings: Settings, history: list[list[Row]], *, compare: bool) -> Outcome:
    """Keeps the view up to date through all steps, and what it shows after each in `history`."""
    rules = PLAN_RULES if settings.optimized else ()
    analyzer, lake = settings.engine(case.relations)
    plan = compile_query(Request(case.query.sql(), case.relations, rules=rules), analyzer)
    if plan.kept is None:
        assert plan.full_reason is not None
        assert plan.full_reason.code is ReasonCode.UNSUPPORTED
        return Outcome(REFUSED, plan.full_reason.text)
    unknown = [column.name for column in plan.columns if column.type == UNKNOWN]
    assert not unknown, f"tests/support/spark_types.py does not know Spark's type of {', '.join(unknown)}"
    for table in case.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, plan)
    with _as_the_text_does(view):
        view.populate()
        _look(case, view, "at first", history, compare, hidden=settings.hidden_each_step)
    for number, step in enumerate(case.steps, start=1):
        step.run(lake)
        with _as_the_text_does(view):
            view.refresh(STATEMENT_RULES if settings.optimized else ())
            hidden = settings.hidden_each_step or number == len(case.steps)
            _look(case, view, f"after step {number}", history, compare, hidden)
    return Outcome(plan.kept.rule.name)


@contextmanager
def _as_the_text_does(view: FakeStreamTable) -> Iterator[None]:
    """It may fail where its text does: a sum that overflows, a correlation of what does not vary."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        try:
            view.lake.recompute(view.plan.query, view.plan.visible)
        except Exception as same:
            raise NoAnswer(kind_of(same)) from error
        raise


def _look(case: Case, view: FakeStreamTable, where: str, history: list[list[Row]], compare: bool, hidden: bool) -> None:
    if compare:
        # Where the text leaves a choice, the plan has made one, and only what it chose can be compared.
        check_against_recompute(view, where, () if case.ties else (view.plan.query,), hidden=hidden or case.ties)
    history.append(view.visible())


def kind_of(error: BaseException) -> str:
    if isinstance(error, TrickleError):
        return error.code
    condition = re.search(r"\[([A-Z_]+)[.\]]", str(error)) if type(error).__module__.startswith("py") else None
    return condition[1] if condition else type(error).__name__
