"""Breaks each rule in turn and counts what is noticed: `python -m tests.mutants [--every 5] [--only join.py]`.

With `--record` a verdict is kept in docs/mutants for as long as its file stays as it is: a run may be stopped at any
time, and the next one makes only what is new. `--without lower` leaves the rules of maintenance.
What is not noticed is printed with its place. A change that changes nothing (a plan that is slower and as right, a
guard that only saves work) stands in `same.txt` with its reason, and is not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants import record
from tests.mutants.operators import Mutant, mutants
from tests.mutants.record import Verdict
from tests.mutants.victim import CHEAPER, DRAWN, ROOT, Seen, broken_files
from tests.properties.record import commit

SAME = Path(__file__).with_name("same.txt")
#: who takes longer never ends
TIMEOUT_S = 600
#: of what is noticed
LEAST = 0.95


def all_mutants() -> list[Mutant]:
    made = [
        mutant
        for file in broken_files()
        for mutant in mutants(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    ]
    same = known_same()
    return [each for each in made if key_of(each) not in same]


def known_same() -> frozenset[str]:
    """Lines are `path | the source line | what`, with a reason above."""
    if not SAME.exists():
        return frozenset()
    lines = SAME.read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def key_of(mutant: Mutant) -> str:
    """Goes by the line's text: its number changes with every line above it."""
    return f"{mutant.path} | {record.line_of(mutant)} | {mutant.what}"


def lines_run(processes: int) -> dict[str, Seen]:
    """Who looks, and the lines that they ran while nothing was changed: everybody has to be content then."""

    def share(number: int) -> dict[str, Seen]:
        command = [sys.executable, "-m", "tests.mutants.victim", "--lines", str(number), str(processes)]
        told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        return {name: Seen(**seen) for name, seen in json.loads(told).items()}

    with ThreadPoolExecutor(processes) as pool:
        return {name: seen for part in pool.map(share, range(processes)) for name, seen in part.items()}


def who_can_tell(mutant: Mutant, known: dict[str, Seen]) -> list[str]:
    """Those who run the changed statement, the others do the same as before; who will tell soonest comes first.

    That is whose view is about little else in this file, and quick.
    """
    asked = {name: seen for name, seen in known.items() if mutant.path.startswith(CHEAPER) or not name.endswith(DRAWN)}
    if mutant.statement is not None:
        first, last = mutant.statement
        asked = {
            name: seen
            for name, seen in asked.items()
            if any(first <= line <= last for line in seen.lines.get(mutant.path, ()))
        }
    return sorted(asked, key=lambda name: asked[name].took_s * (1 + len(asked[name].lines.get(mutant.path, ()))))


def is_noticed(mutant: Mutant, who: list[str]) -> tuple[bool, str]:
    if not who:
        return False, "nobody runs this line"
    command = [sys.executable, "-m", "tests.mutants.victim", mutant.path, str(mutant.number)]
    try:
        found = subprocess.run(
            command, cwd=ROOT, input="\n".join(who), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True, "does not end"
    if found.returncode == 0:
        return False, f"by none of {len(who)}"
    said = (found.stdout.strip() or found.stderr.strip()).splitlines()
    return True, said[-1] if said else f"exit code {found.returncode}"


def _is_left_out(mutant: Mutant, without: str) -> bool:
    return bool(without) and without in mutant.path


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--every", type=int, default=1, help="only every n-th")
    options.add_argument("--from", dest="start", type=int, default=0, help="…beginning with this one")
    options.add_argument("--only", default="", help="places with this in their path")
    options.add_argument("--without", default="", help="places with this in their path are left out")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--list", action="store_true", help="only list them")
    options.add_argument("--record", action="store_true", help="keep verdicts in docs/mutants, make only what is new")
    options.add_argument("--again", action="store_true", help="with --record: also what was not noticed")
    given = options.parse_args()
    every = all_mutants()
    chosen = [each for each in every if given.only in each.path and not _is_left_out(each, given.without)]
    chosen = chosen[given.start :: given.every]
    known = record.current(record.read(), every) if given.record else {}
    new = [each for each in chosen if not _is_settled(known.get((each.path, each.number)), given.again)]
    if given.list:
        print("\n".join(map(str, new)))
        return 0
    began, at = time.monotonic(), commit()
    for mutant, (is_known, said) in _made(new, given.processes):
        print(f"{'noticed' if is_known else 'MISSED '}  {mutant}  ({said})", flush=True)
        known[mutant.path, mutant.number] = record.verdict(mutant, is_known, said, at)
        if given.record:
            record.write(known, every)
    return _told([known[each.path, each.number] for each in chosen], len(new), time.monotonic() - began)


def _is_settled(verdict: Verdict | None, again: bool) -> bool:
    return verdict is not None and (verdict.noticed or not again)


def _made(chosen: list[Mutant], processes: int) -> Iterator[tuple[Mutant, tuple[bool, str]]]:
    """As they are done."""
    if not chosen:
        return
    seen = lines_run(processes)
    with ThreadPoolExecutor(processes) as pool:
        running = {pool.submit(is_noticed, each, who_can_tell(each, seen)): each for each in chosen}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _told(verdicts: list[Verdict], made: int, took_s: float) -> int:
    noticed = sum(each.noticed for each in verdicts)
    share = noticed / max(len(verdicts), 1)
    print(f"\n{noticed} of {len(verdicts)} noticed, {share:.1%}; {made} were made now, in {took_s:.0f} s")
    for each in verdicts:
        if not each.noticed:
            print(f"{each.path} | {each.line} | {each.what}")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
