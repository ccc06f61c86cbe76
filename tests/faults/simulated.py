"""A long simulated run: `python -m tests.faults.simulated 100000` suffers that many faults, and records it."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from engine.errors import UnsupportedOperator
from tests.faults.life import live, of_test
from tests.faults.simulation import Setup
from tests.faults.troubles import Tally, all_faults, in_turn
from tests.properties.generate import Generator
from tests.support.view_test import read_view_test

ROOT = Path(__file__).parents[2]
VIEWS = ROOT / "tests" / "views"
RECORD = ROOT / "docs" / "faults" / "simulated.json"
FILES = [path for path in sorted(VIEWS.rglob("*.test")) if path.parent.name != "refused"]

PROCESSES = 2
#: worlds between two looks at how far it is
BATCH = 6


def setups(seed: int) -> Setup:
    """Every third one is a view that somebody wrote; the others are made up, with more steps."""
    by_spark, chained = seed % 4 > 1, seed % 5 == 0
    if seed % 3 == 0:
        path = FILES[seed // 3 % len(FILES)]
        return of_test(read_view_test(path), by_spark=by_spark, chained=chained)
    generator = Generator(seed)
    case = generator.case()
    steps = (*case.steps, *(generator.step(case.tables) for _ in range(2)))
    return Setup(
        f"generated {seed}",
        case.relations,
        {table.name: table.rows for table in case.tables},
        case.query.sql(),
        tuple("; ".join(step.statements) for step in steps),
        by_spark,
        chained,
    )


def lives(seeds: range) -> tuple[Tally, list[str]]:
    """The lives of these seeds; what broke is told with the seed that shows it again."""
    tally, broken = Tally(), []
    faults = all_faults()
    for seed in seeds:
        try:
            live(setups(seed), in_turn(faults, seed * 7, len(faults)), tally, seed)
        except Exception as error:
            if isinstance(error.__cause__, UnsupportedOperator):
                continue  # the generator makes some that are refused
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    return tally, broken


def run(steps: int, first_seed: int = 0) -> tuple[Tally, list[str]]:
    tally, broken = Tally(), []
    with ProcessPoolExecutor(PROCESSES) as pool:
        for found, wrong in _batches(pool, first_seed):
            tally.add(found)
            broken += wrong
            print(f"{tally.steps:,} of {steps:,} faults in {tally.worlds:,} worlds, {len(broken)} broken", flush=True)
            for line in wrong:
                print(line, flush=True)
            if tally.steps >= steps:
                pool.shutdown(wait=False, cancel_futures=True)
                return tally, broken
    raise AssertionError("there is always another batch")


def _batches(pool: ProcessPoolExecutor, first_seed: int) -> Iterator[tuple[Tally, list[str]]]:
    starts = count(first_seed, BATCH)
    waiting = [pool.submit(_batch, next(starts)) for _ in range(PROCESSES)]
    while True:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for each in done:
            waiting.remove(each)
            waiting.append(pool.submit(_batch, next(starts)))
            yield each.result()


def _batch(start: int) -> tuple[Tally, list[str]]:
    return lives(range(start, start + BATCH))


def record(tally: Tally, broken: list[str], began_at: datetime, took_s: float) -> None:
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    by_trouble: dict[str, Counter[str]] = {}
    for fault, times in tally.fired.items():
        by_trouble.setdefault(fault.trouble.value, Counter())[fault.point.value] += times
    said = {
        "began_at": began_at.isoformat(timespec="seconds"),
        "took_minutes": round(took_s / 60, 1),
        "faults": tally.steps,
        "worlds": tally.worlds,
        "broken": broken,
        "by_trouble_and_point": {name: dict(sorted(points.items())) for name, points in sorted(by_trouble.items())},
        "points_passed": {point.value: times for point, times in sorted(tally.passed.items())},
    }
    RECORD.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def main(words: list[str]) -> int:
    steps = int(words[0]) if words else 100_000
    first_seed = int(words[1]) if len(words) > 1 else 0
    began_at, began = datetime.now(UTC), time.monotonic()
    tally, broken = run(steps, first_seed)
    record(tally, broken, began_at, time.monotonic() - began)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
