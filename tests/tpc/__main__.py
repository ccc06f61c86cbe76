"""TPC-H and TPC-DS as stream tables: which queries are maintained differentially, how, and what it costs.

python -m tests.tpc report                      both benchmarks
python -m tests.tpc report --tpch --queries 1,5,9 --cycles 50 --seed 3
python -m tests.tpc report --write-expected     also writes what the tests expect
python -m tests.tpc report --tpch --spark --cycles 3 --queries 1,6    Spark computes everything, instead of DuckDB
python -m tests.tpc touched --tpcds             how many rows each query gives, and how many of them cycles change
python -m tests.tpc agree --tpch                whether Spark gives the rows that DuckDB gives, after the cycles
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.properties.fuzz import on_spark
from tests.support.spark_lake import SparkLake
from tests.tpc import expected
from tests.tpc.run import (
    CHANGES,
    DIFFERENTIAL,
    Engine,
    Verdict,
    apply,
    disagreement,
    judge,
    live,
    on_duckdb,
    touched,
)
from tests.tpc.suite import SUITES, Suite

CYCLES = {"tpch": 20, "tpcds": 3}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tpc", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("report", "touched", "agree"):
        given = verbs.add_parser(verb)
        for name in SUITES:
            given.add_argument(f"--{name}", dest="suites", action="append_const", const=name, help="only this one")
        given.add_argument("--cycles", type=int, help="20 for TPC-H, 3 for TPC-DS")
        given.add_argument("--seed", type=int, default=0)
        given.add_argument("--queries", default="", help="numbers, with commas between them")
        if verb == "report":
            given.add_argument("--write-expected", action="store_true", help="what is found becomes what tests expect")
            given.add_argument("--spark", action="store_true", help="Spark computes everything, instead of DuckDB")
    options = parser.parse_args()
    engine = on_spark() if options.verb == "agree" or getattr(options, "spark", False) else on_duckdb
    failures = 0
    for name in options.suites or SUITES:
        suite, cycles = SUITES[name], options.cycles or CYCLES[name]
        numbers = [int(number) for number in options.queries.split(",") if number] or list(suite.numbers)
        print(f"\n{suite.name}, {cycles} cycles, seed {options.seed}")
        if options.verb == "touched":
            show_touched(suite, numbers, cycles, options.seed)
        elif options.verb == "agree":
            failures += show_agreement(suite, numbers, cycles, options.seed, engine)
        else:
            verdicts, wrong = report(suite, numbers, cycles, options.seed, engine)
            failures += wrong
            if options.write_expected:
                expected.write(suite, verdicts)
    return 1 if failures else 0


def show_touched(suite: Suite, numbers: list[int], cycles: int, seed: int) -> None:
    total_ms = 0.0
    print(f"{'query':6} {'ms':>6}  rows at first and after each cycle; rows that each cycle changed")
    for number in numbers:
        counts, changes, took_ms = touched(suite, number, cycles, seed)
        total_ms += took_ms
        line = f"{' '.join(map(str, counts))}; {' '.join(map(str, changes))}"
        print(f"q{number:02}    {took_ms:6.0f}  {line}{'' if any(changes) else '   NEVER CHANGED'}", flush=True)
    print(f"all    {total_ms:6.0f}")


def show_agreement(suite: Suite, numbers: list[int], cycles: int, seed: int, engine: Engine) -> int:
    """Prints a line for each query; how many Spark answers otherwise."""
    _, lake = engine(suite.relations)
    assert isinstance(lake, SparkLake)
    suite.fill(lake)
    for _, cycle in zip(range(cycles), CHANGES[suite](seed), strict=False):
        apply(lake, cycle)
    failures = 0
    for number in numbers:
        began = time.perf_counter()
        try:
            other = disagreement(suite, number, lake)
        except Exception as error:  # Spark may refuse what DuckDB does, and the report goes on
            other = f"{type(error).__name__}: {str(error)[:300]}"
        failures += other is not None
        print(f"q{number:02}    {(time.perf_counter() - began) * 1000:6.0f}  {other or 'the same'}", flush=True)
    return failures


def report(
    suite: Suite, numbers: list[int], cycles: int, seed: int, engine: Engine = on_duckdb
) -> tuple[list[tuple[int, str]], int]:
    """Prints a line for each query; the verdicts, and how many queries did not hold."""
    print(f"{'query':6} {'plan ms':>8} {'refresh':>8} {'recompute':>10} {'rows':>6} {'changed':>8}  kept, or why not")
    verdicts, failures, began = [], 0, time.perf_counter()
    analyzer, _ = engine(suite.relations)
    for number in numbers:
        started = time.perf_counter()
        try:
            verdict = judge(suite, number, analyzer)
        except Exception as error:  # whatever goes wrong in one query, the report goes on
            verdict = Verdict(number, f"broken: {type(error).__name__}: {str(error).splitlines()[0]}")
        planned = f"q{number:02}    {(time.perf_counter() - started) * 1000:8.0f}"
        verdicts.append((number, verdict.text))
        if verdict.plan is None or verdict.plan.kept is None:
            where = f"  ({verdict.position})" if verdict.position else ""
            print(f"{planned} {'':35}  {verdict.text}{where}", flush=True)
            continue
        try:
            lived = live(suite, verdict.plan, cycles, seed, engine)
        except Exception as error:
            failures += 1
            print(f"{planned} {'':35}  WRONG: {type(error).__name__}: {error}", flush=True)
            continue
        numbers_told = f"{lived.refresh_ms:8.1f} {lived.recompute_ms:10.1f} {lived.rows:6} {lived.changed:8}"
        print(f"{planned} {numbers_told}  {verdict.plan.kept.rule.name}", flush=True)
    _summary([text for _, text in verdicts], failures, time.perf_counter() - began)
    return verdicts, failures


def _summary(verdicts: list[str], failures: int, took_s: float) -> None:
    differential = sum(text == DIFFERENTIAL for text in verdicts)
    print(f"\n{differential} of {len(verdicts)} differential, {failures} of them wrong, in {took_s:.0f} s")
    for text, count in Counter(text for text in verdicts if text != DIFFERENTIAL).most_common():
        print(f"{count:5} × {text}")


if __name__ == "__main__":
    sys.exit(main())
