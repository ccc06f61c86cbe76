"""Random views against recompute: `python -m tests.properties.fuzz --cases 10000 --seed 1`.

A failure is cut down to what still fails and printed as a `.test` file, ready to be kept under tests/views.
"""

from __future__ import annotations

import argparse
import atexit
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.compile.bind import STATEMENT_RULES
from engine.compile.optimize import PLAN_RULES
from engine.compile.pipeline import Analyzer, Request, compile_query
from engine.errors import QueryError, TrickleError
from engine.records import ReasonCode
from tests.properties.case import Case, smaller
from tests.properties.generate import Generator
from tests.support.duck_analyzer import DuckAnalyzer, Relations
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.spark_types import UNKNOWN
from tests.support.view_runner import check_against_recompute

#: how much a failing case is cut down, at most
SHRINK_TRIES_MAX = 2_000


@dataclass(frozen=True)
class Failure:
    seed: int
    case: Case
    error: BaseException

    def __str__(self) -> str:
        file = self.case.as_view_test("Found by chance.", "?")
        return f"seed {self.seed}: {_kind(self.error)}: {self.error}\n\n{file}"


#: what computes a case: who answers the compiler's questions, and a lake
Engine = Callable[[Relations], tuple[Analyzer, FakeLake]]


def on_duckdb(relations: Relations) -> tuple[Analyzer, FakeLake]:
    return DuckAnalyzer(relations), FakeLake(relations)


def run(case: Case, *, optimized: bool = True, engine: Engine = on_duckdb) -> str:
    """How the view was kept, or `refused`. Raises where it is not what recompute gives."""
    rules = PLAN_RULES if optimized else ()
    analyzer, lake = engine(case.relations)
    plan = compile_query(Request(case.query.sql(), case.relations, rules=rules), analyzer)
    if plan.kept is None:
        assert plan.full_reason is not None
        assert plan.full_reason.code is ReasonCode.UNSUPPORTED
        return "refused"
    assert UNKNOWN not in {column.type for column in plan.columns}
    for table in case.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, plan)
    view.populate()
    check_against_recompute(view, "at first")
    for number, step in enumerate(case.steps, start=1):
        lake.run(";\n".join(step.statements))
        view.refresh(STATEMENT_RULES if optimized else ())
        check_against_recompute(view, f"after step {number}")
    return plan.kept.rule.name


def check(seed: int, engine: Engine = on_duckdb) -> str:
    """Runs one seed; every fifth without the optimizer. Raises a Failure's text, already cut down."""
    case, optimized = Generator(seed).case(), seed % 5 != 0
    try:
        return run(case, optimized=optimized, engine=engine)
    except Exception as error:
        raise AssertionError(str(shrink(Failure(seed, case, error), optimized, engine))) from error


def shrink(failure: Failure, optimized: bool, engine: Engine = on_duckdb) -> Failure:
    """The smallest case found that fails in the same way."""
    tries = 0
    found = True
    while found:
        found = False
        for candidate in smaller(failure.case):
            tries += 1
            if tries > SHRINK_TRIES_MAX:
                return failure
            error = _error_of(candidate, optimized, engine)
            if error is not None and _kind(error) == _kind(failure.error):
                failure = Failure(failure.seed, candidate, error)
                found = True
                break
    return failure


def _error_of(case: Case, optimized: bool, engine: Engine) -> BaseException | None:
    try:
        run(case, optimized=optimized, engine=engine)
    except QueryError:
        return None  # cut too far: it is no query any more
    except Exception as error:
        return error
    return None


def _kind(error: BaseException) -> str:
    return error.code if isinstance(error, TrickleError) else type(error).__name__


def on_spark() -> Engine:
    """A Spark of its own, for as long as the program runs."""
    from engine import config
    from engine.lake.session import SparkHost
    from tests.support.spark_lake import computed_by, tuned_for_tiny

    folder = Path(tempfile.mkdtemp(prefix="trickle-fuzz-"))
    host = SparkHost(config.load(folder, env={}), folder)
    host.start()
    host.wait_ready(240)
    atexit.register(host.stop)
    tuned_for_tiny(host)
    return computed_by(host)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0, help="the first seed")
    options.add_argument("--stop-after", type=int, default=5, help="failures")
    options.add_argument("--spark", action="store_true", help="Spark computes everything, instead of DuckDB")
    given = options.parse_args()
    engine = on_spark() if given.spark else on_duckdb
    ways: Counter[str] = Counter()
    failures, began = 0, time.monotonic()
    for seed in range(given.seed, given.seed + given.cases):
        try:
            ways[check(seed, engine)] += 1
        except AssertionError as error:
            failures += 1
            print(f"{error}\n{'-' * 60}", flush=True)
            if failures >= given.stop_after:
                break
    took_s = time.monotonic() - began
    print(f"{sum(ways.values())} cases in {took_s:.0f} s, {failures} failures; {dict(ways.most_common())}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
