"""A long simulated run, and the record of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from engine.errors import UnsupportedOperator
from engine.failpoints import Failpoint
from tests.faults.life import fails_at_any_moment, live, of_test
from tests.faults.simulation import Setup
from tests.faults.troubles import REFRESH_POINTS, Fault, Tally, Trouble, all_faults, in_turn
from tests.properties.features import weights
from tests.properties.generator.queries import Generator
from tests.support.view_test import read_view_test

ROOT = Path(__file__).parents[2]
VIEWS = ROOT / "tests" / "views"
RECORD = ROOT / "docs" / "faults" / "simulated"
MAINTAINED = [path for path in sorted(VIEWS.rglob("*.test")) if path.parent.name != "refused"]


def is_told_by_its_text(path: Path) -> bool:
    """What is stored is compared with the query as it is written, by DuckDB: it must say what it means."""
    test = read_view_test(path)
    return not test.ties and not test.means


FILES = [path for path in MAINTAINED if is_told_by_its_text(path)]

PROCESSES = 2
#: worlds between two looks at how far it is
BATCH = 6


def setups(seed: int) -> Setup:
    """Every third one is a view that somebody wrote; the others are made up, with more steps."""
    polled = seed % 13 in (1, 4, 8)
    by_spark, chained, recomputed, by_files = seed % 4 > 1, seed % 5 == 0, seed % 7 == 0, seed % 11 < 4
    if seed % 3 == 0:
        path = FILES[seed // 3 % len(FILES)]
        ways = {"by_spark": by_spark, "chained": chained, "recomputed": recomputed, "by_files": by_files}
        return of_test(read_view_test(path), **ways, retries=2 * (seed % 13 == 12), polled=polled)
    # delta-rs makes no table with moments that have no zone
    generator = Generator(seed, weights(["covered"], without=["moments"]))
    case = generator.case()
    steps = (*case.steps, *(generator.step(case.tables) for _ in range(2)))
    return Setup(
        f"generated {seed}",
        case.relations,
        {table.name: table.rows for table in case.tables},
        case.query.sql(),
        tuple(step.sql() for step in steps),
        by_spark,
        recomputed,
        chained,
        by_files=by_files,
        polled=polled,
    )


def lives(seeds: range) -> tuple[Tally, list[str]]:
    """The lives of these seeds; what broke is told with the seed that shows it again."""
    tally, broken = Tally(), []
    faults = all_faults()
    for seed in seeds:
        try:
            setup = setups(seed)
            live(setup, in_turn(faults, seed * 7, len(faults)), tally, seed)
            if seed % 3 == 0 and seed // 3 < len(FILES):
                fails_at_any_moment(setup, tally)
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


def never(tally: Tally) -> list[str]:
    """What no life met, although it should have: then nothing is shown about it."""
    points = [f"{point.value} was never passed" for point in Failpoint if not tally.passed[point]]
    return points + [f"{fault} never happened" for fault in all_faults() if not tally.fired[fault]]


def record(tally: Tally, broken: list[str], began_at: datetime, took_s: float) -> None:
    by_trouble: dict[str, Counter[str]] = {}
    for fault, times in tally.fired.items():
        by_trouble.setdefault(fault.trouble.value, Counter())[fault.point.value] += times
    said = {
        "began_at": began_at.isoformat(timespec="seconds"),
        "took_s": round(took_s),
        "faults": tally.steps,
        "worlds": tally.worlds,
        "broken": broken,
        "never": never(tally),
        "by_trouble_and_point": {name: dict(sorted(points.items())) for name, points in sorted(by_trouble.items())},
        "points_passed": {point.value: times for point, times in sorted(tally.passed.items())},
    }
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    RECORD.with_suffix(".md").write_text(page(tally, broken, took_s), encoding="utf-8")


def page(tally: Tally, broken: list[str], took_s: float) -> str:
    troubles = [trouble for trouble in Trouble if any(fault.trouble is trouble for fault in tally.fired)]
    rows = [
        f"| {trouble.value} | " + " | ".join(str(tally.fired[Fault(trouble, at)] or "") for at in REFRESH_POINTS) + " |"
        for trouble in troubles
    ]
    heads = f"| | {' | '.join(point.value for point in REFRESH_POINTS)} |\n|---|{'---|' * len(REFRESH_POINTS)}"
    listed = "\n".join(f"- {line.splitlines()[0]}" for line in broken) or "Nothing."
    missed = "\n".join(f"- {line}" for line in never(tally)) or "Every fault did, and every failpoint was passed."
    lines = "\n".join(rows)
    return f"""# Faults in simulated lives

<!-- written by: python -m tests.faults simulated -->

{tally.steps:,} faults in {tally.worlds:,} workspaces, in {took_s / 60:.0f} minutes; {len(broken)} times something did
not hold. Each stood in the way of a refresh of one or two stream tables, or of their creation or end, over views that
people wrote and views that a generator made. After each fault the table was looked at from outside: its rows are the
query's at the frontier of its last stamp, no frontier goes back, each refresh has one stamp, sequences have no gaps,
nothing is left over. At the end of each step one refresh must catch up, and a second one must find nothing to do.
Each view that people wrote was also failed, in each of its steps, at the first moment of the refresh, at the second,
and so on until none was left: by the end of the process, by an error, and by a commit whose answer was lost.
Between steps catalogs were lost, weeks went by, sources were compacted, replaced, rewritten and lost their history.
`tests/faults/simulation.py` says how, `tests/faults/test_breaks.py` shows that a broken protocol is noticed.

## Faults, by what went wrong and where

{heads}
{lines}

## What did not hold

{listed}

## What never happened

{missed}
"""


def main(faults: int, first_seed: int) -> int:
    began_at, began = datetime.now(UTC), time.monotonic()
    tally, broken = run(faults, first_seed)
    record(tally, broken, began_at, time.monotonic() - began)
    for line in never(tally):
        print(line, flush=True)
    return 1 if broken or never(tally) else 0
