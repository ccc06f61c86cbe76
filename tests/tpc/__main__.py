"""TPC-H and TPC-DS as stream tables: which queries are maintained differentially, how, and what it costs.

python -m tests.tpc report                      both benchmarks
python -m tests.tpc report --tpch --queries 1,5,9 --cycles 50 --seed 3
python -m tests.tpc report --write-expected     also writes what the tests expect
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.tpc import expected
from tests.tpc.run import DIFFERENTIAL, judge, live
from tests.tpc.suite import SUITES, Suite

CYCLES = {"tpch": 20, "tpcds": 3}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tpc", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    given = verbs.add_parser("report")
    for name in SUITES:
        given.add_argument(f"--{name}", dest="suites", action="append_const", const=name, help="only this benchmark")
    given.add_argument("--cycles", type=int, help="20 for TPC-H, 3 for TPC-DS")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--queries", default="", help="numbers, with commas between them")
    given.add_argument("--write-expected", action="store_true", help="what is found becomes what the tests expect")
    options = parser.parse_args()
    numbers = {int(number) for number in options.queries.split(",") if number}
    failures = 0
    for name in options.suites or SUITES:
        failures += report(SUITES[name], numbers, options.cycles or CYCLES[name], options.seed, options.write_expected)
    return 1 if failures else 0


def report(suite: Suite, numbers: set[int], cycles: int, seed: int, write: bool) -> int:
    """Prints a line for each query; how many did not hold."""
    print(f"\n{suite.name}, {cycles} cycles, seed {seed}")
    print(f"{'query':6} {'plan ms':>8} {'refresh':>8} {'recompute':>10} {'rows':>6} {'changed':>8}  kept, or why not")
    verdicts, failures, began = [], 0, time.perf_counter()
    for number in suite.numbers:
        if numbers and number not in numbers:
            continue
        started = time.perf_counter()
        verdict = judge(suite, number)
        planned = f"q{number:02}    {(time.perf_counter() - started) * 1000:8.0f}"
        verdicts.append((number, verdict.text))
        if verdict.plan is None or verdict.plan.kept is None:
            where = f"  ({verdict.position})" if verdict.position else ""
            print(f"{planned} {'':35}  {verdict.text}{where}", flush=True)
            continue
        try:
            lived = live(suite, verdict.plan, cycles, seed)
        except Exception as error:  # whatever goes wrong in one query, the report goes on
            failures += 1
            print(f"{planned} {'':35}  WRONG: {type(error).__name__}: {error}", flush=True)
            continue
        numbers_told = f"{lived.refresh_ms:8.1f} {lived.recompute_ms:10.1f} {lived.rows:6} {lived.changed:8}"
        print(f"{planned} {numbers_told}  {verdict.plan.kept.rule.name}", flush=True)
    _summary([text for _, text in verdicts], failures, time.perf_counter() - began)
    if write:
        expected.write(suite, verdicts)
    return failures


def _summary(verdicts: list[str], failures: int, took_s: float) -> None:
    differential = sum(text == DIFFERENTIAL for text in verdicts)
    print(f"\n{differential} of {len(verdicts)} differential, {failures} of them wrong, in {took_s:.0f} s")
    for text, count in Counter(text for text in verdicts if text != DIFFERENTIAL).most_common():
        print(f"{count:5} × {text}")


if __name__ == "__main__":
    sys.exit(main())
