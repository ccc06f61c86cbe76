"""Random views against recompute: `python -m tests.properties.fuzz --cases 10000 --seed 1`.

A failure is cut down to what still fails and printed as a `.test` file, ready to be kept under tests/views.
"""

from __future__ import annotations

import argparse
import atexit
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from tests.properties import record
from tests.properties.case import Case
from tests.properties.features import GROUPS, Weights, weights
from tests.properties.generator.queries import Generator
from tests.properties.judge import Engine, Outcome, Settings, judge, kind_of, on_duckdb
from tests.properties.shrink import TRIES_MAX, shrink
from tests.properties.tally import Tally
from tests.properties.texts import check_texts, is_valid
from tests.support.garbage import collect_seldom

#: seeds that a process is given at once
CHUNK = 25
#: after so many another process goes on: one that ran 8,000 cases held 3 GB
CHUNKS_OF_A_PROCESS = 100
PROGRESS_S = 30


@dataclass(frozen=True)
class Failure:
    seed: int
    case: Case
    error: BaseException

    def __str__(self) -> str:
        file = self.case.as_view_test(f"Found by chance, seed {self.seed}.", "?")
        return f"seed {self.seed}: {kind_of(self.error)}: {self.error}\n\n{file}"


def check(seed: int, engine: Engine = on_duckdb, chosen: Weights | None = None) -> Outcome:
    """Runs one seed. Raises an AssertionError with the failure's text, already cut down."""
    failure = failure_of(seed, engine, chosen)
    if isinstance(failure, Outcome):
        return failure
    raise AssertionError(str(failure)) from failure.error


def failure_of(seed: int, engine: Engine = on_duckdb, chosen: Weights | None = None) -> Outcome | Failure:
    settings = Settings.of(seed, engine, chosen)
    case = Generator(seed, settings.weights).case()
    try:
        return judge(case, settings)
    except Exception as error:
        return cut_down(Failure(seed, case, error), lambda each: judge(each, settings))


def texts_of(seed: int, chosen: Weights) -> Outcome | Failure:
    """Holds only the texts against DuckDB; nothing is compiled."""
    case = Generator(seed, chosen).case()

    def look(each: Case) -> None:
        check_texts(each, seed, chosen)

    try:
        look(case)
    except Exception as error:
        return cut_down(Failure(seed, case, error), look)
    return Outcome("valid")


def cut_down(failure: Failure, run: Callable[[Case], object], tries_max: int = TRIES_MAX) -> Failure:
    """The smallest case found that fails in the same way, and is still a query that DuckDB understands."""
    kind, last = kind_of(failure.error), failure.error
    was_valid = is_valid(failure.case)

    def fails(case: Case) -> bool:
        nonlocal last
        try:
            run(case)
        except Exception as error:
            if kind_of(error) != kind or (was_valid and not is_valid(case)):
                return False
            last = error
            return True
        return False

    case = shrink(failure.case, fails, tries_max)
    return replace(failure, case=case, error=last)


# ---------------------------------------------------------------- many


@dataclass(frozen=True)
class Job:
    """What each process is told; it makes its own engine of it."""

    weights: Weights
    spark: bool = False
    texts: bool = False


def run_seeds(job: Job, seeds: range) -> Tally:
    collect_seldom()
    tally = Tally()
    engine = on_spark() if job.spark else on_duckdb
    for seed in seeds:
        found = texts_of(seed, job.weights) if job.texts else failure_of(seed, engine, job.weights)
        if isinstance(found, Failure):
            tally.cases += 1
            tally.failures.append(str(found))
        else:
            tally.add(found, Generator(seed, job.weights).case().features)
    return tally


def run_all(job: Job, seeds: range, processes: int) -> Iterator[Tally]:
    """The results as they come, chunk by chunk."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if processes <= 1:
        for chunk in chunks:
            yield run_seeds(job, chunk)
        return
    # Never more handed out than is worked on, so that stopping does not have to wait for the rest.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=CHUNKS_OF_A_PROCESS) as pool:
        running: set[Future[Tally]] = set()
        left = iter(chunks)
        while True:
            for chunk in left:
                running.add(pool.submit(run_seeds, job, chunk))
                if len(running) > processes:
                    break
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                yield each.result()


_SPARK: list[Engine] = []


def on_spark() -> Engine:
    """A Spark of its own, for as long as the program runs."""
    if not _SPARK:
        from engine import config
        from engine.lake.session import SparkHost
        from tests.support.spark_lake import computed_by, tuned_for_tiny

        folder = Path(tempfile.mkdtemp(prefix="trickle-fuzz-"))
        host = SparkHost(config.load(folder, env={}), folder)
        host.start()
        host.wait_ready(240)
        atexit.register(host.stop)
        tuned_for_tiny(host)
        _SPARK.append(computed_by(host))
    return _SPARK[0]


def main(arguments: list[str] | None = None) -> int:
    given = _options().parse_args(arguments)
    try:
        chosen = weights(_list(given.only), _list(given.without), spark=given.spark)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if given.record and (given.only or given.without or given.texts):
        print("--record is for runs of everything", file=sys.stderr)
        return 2
    job = Job(chosen, given.spark, given.texts)
    total, began = Tally(), time.monotonic()
    told = began

    def keep(tally: Tally) -> None:
        if given.record:
            engine = "Spark" if given.spark else "DuckDB"
            record.write(record.run_of(engine, given.seed, tally, time.monotonic() - began))

    for part in run_all(job, range(given.seed, given.seed + given.cases), given.processes):
        for failure in part.failures:
            print(f"{failure}\n{'-' * 60}", flush=True)
            if given.write is not None:
                _write(given.write, failure)
        total.merge(part)
        now = time.monotonic()
        if now - told > PROGRESS_S:
            told = now
            print(total.line(now - began), flush=True)
            keep(total)
        if len(total.failures) >= given.stop_after:
            print(f"stopped after {len(total.failures)} failures")
            break
    print(total.summary(time.monotonic() - began))
    keep(total)
    return 1 if total.failures else 0


def _options() -> argparse.ArgumentParser:
    groups = ", ".join(GROUPS)
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0, help="the first seed")
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--only", default="", help=f"features or groups of them, with commas between: {groups}")
    options.add_argument("--without", default="", help="features or groups that do not come")
    options.add_argument("--stop-after", type=int, default=5, help="failures")
    options.add_argument("--write", type=Path, help="a folder for the failures, each as a .test file")
    options.add_argument("--record", action="store_true", help="the run becomes a row of docs/fuzz")
    options.add_argument("--texts", action="store_true", help="the generator against DuckDB alone; nothing is compiled")
    options.add_argument("--spark", action="store_true", help="Spark computes everything, instead of DuckDB")
    return options


def _list(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _write(folder: Path, failure: str) -> None:
    """The part of a failure that is a file, under the number of its seed."""
    folder.mkdir(parents=True, exist_ok=True)
    head, _, file = failure.partition("\n\n# ")
    number = head.partition(":")[0].removeprefix("seed ")
    (folder / f"seed_{number}.test").write_text(f"# {file}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
