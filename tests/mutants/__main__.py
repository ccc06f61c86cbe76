"""Breaks each rule in turn and counts what is noticed: `python -m tests.mutants [--every 5] [--only join.py]`.

All take some hours, most of them those of `lower`; `--without lower` leaves the rules of maintenance, an hour.
What is not noticed is printed with its place. A change that changes nothing (a plan that is slower and as right, a
guard that only saves work) stands in `same.txt` with its reason, and is not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.operators import Mutant, mutants
from tests.mutants.victim import CHEAPER, DRAWN, ROOT, broken_files

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
    line = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    return f"{mutant.path} | {line} | {mutant.what}"


def lines_run() -> dict[str, dict[str, list[int]]]:
    """Who looks, and the lines that they ran while nothing was changed: everybody has to be content then."""
    command = [sys.executable, "-m", "tests.mutants.victim"]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


def who_can_tell(mutant: Mutant, lines: dict[str, dict[str, list[int]]]) -> list[str]:
    """Those who run the changed statement; the others do the same as before."""
    asked = {name: files for name, files in lines.items() if CHEAPER in mutant.path or not name.endswith(DRAWN)}
    if mutant.statement is None:
        return list(asked)
    first, last = mutant.statement
    return [name for name, files in asked.items() if any(first <= line <= last for line in files.get(mutant.path, ()))]


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
    given = options.parse_args()
    chosen = [each for each in all_mutants() if given.only in each.path and not _is_left_out(each, given.without)]
    chosen = chosen[given.start :: given.every]
    if given.list:
        print("\n".join(map(str, chosen)))
        return 0
    lines = lines_run()
    who = [who_can_tell(each, lines) for each in chosen]
    began, noticed, missed = time.monotonic(), 0, []
    with ThreadPoolExecutor(given.processes) as pool:
        for mutant, (is_known, said) in zip(chosen, pool.map(is_noticed, chosen, who), strict=True):
            noticed += is_known
            if not is_known:
                missed.append(mutant)
            print(f"{'noticed' if is_known else 'MISSED '}  {mutant}  ({said})", flush=True)
    share = noticed / max(len(chosen), 1)
    print(f"\n{noticed} of {len(chosen)} noticed, {share:.1%}, in {time.monotonic() - began:.0f} s")
    for each in missed:
        print(key_of(each))
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
