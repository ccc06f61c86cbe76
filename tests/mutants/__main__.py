"""Breaks each rule in turn and counts what is noticed: `python -m tests.mutants [--every 5] [--only join.py]`.

What is not noticed is printed with its place. A change that changes nothing (a plan that is slower and as right, a
guard that only saves work) stands in `same.txt` with its reason, and is not counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.operators import Mutant, mutants
from tests.mutants.victim import ROOT

#: what maintains: derived, stored, bound, made cheaper
PLACES = (
    "engine/compile/differentiate", "engine/compile/keep", "engine/compile/optimize", "engine/compile/bind.py",
    "engine/compile/steps.py", "engine/algebra/trees.py",
)  # fmt: skip
SAME = Path(__file__).with_name("same.txt")
#: who takes longer never ends
TIMEOUT_S = 600
#: of what is noticed
LEAST = 0.95


def all_mutants() -> list[Mutant]:
    files = [file for place in PLACES for file in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]]
    made = [
        mutant
        for file in files
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


def is_noticed(mutant: Mutant | None) -> tuple[bool, str]:
    """Without a mutant: does anything raise anyway?"""
    command = [sys.executable, "-m", "tests.mutants.victim"]
    command += [mutant.path, str(mutant.number)] if mutant else []
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return True, "does not end"
    said = (found.stdout.strip() or found.stderr.strip()).splitlines()
    return found.returncode != 0, said[-1] if said else f"exit code {found.returncode}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--every", type=int, default=1, help="only every n-th")
    options.add_argument("--from", dest="start", type=int, default=0, help="…beginning with this one")
    options.add_argument("--only", default="", help="places with this in their path")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--list", action="store_true", help="only list them")
    given = options.parse_args()
    chosen = [each for each in all_mutants() if given.only in each.path][given.start :: given.every]
    if given.list:
        print("\n".join(map(str, chosen)))
        return 0
    raised, said = is_noticed(None)
    if raised:
        print(f"nothing is changed, and something raises all the same: {said}")
        return 2
    began, noticed, missed = time.monotonic(), 0, []
    with ThreadPoolExecutor(given.processes) as pool:
        for mutant, (is_known, said) in zip(chosen, pool.map(is_noticed, chosen), strict=True):
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
