"""What long runs of random views came to, in docs/fuzz: each run a row, so that several sittings add up.

A run is known by its commit, its engine and its first seed; while it goes on its row is written anew.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tests.properties.judge import NO_ANSWER, REFUSED
from tests.properties.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "fuzz"
HEAD = """# Random views

<!-- written by: python -m tests.properties.fuzz --record -->

A case is a few small tables, a query of every operator to a depth of 6, and steps of changes; after each step what is
maintained is compared with recomputing, and further oracles are asked ([how](../../tests/properties/README.md)).
Refused are queries that cannot be maintained by decision, and texts that the engine of the test itself cannot read.
A case without an answer fails as its text does: a sum that overflows, say.

| engine | commit | seeds | cases | refused | without an answer | failures | minutes | what they were |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Run:
    engine: str
    commit: str
    first_seed: int
    cases: int
    refused: int
    no_answer: int
    failures: int
    took_s: int
    #: what became of the failures, written by hand
    note: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.engine, self.commit, self.first_seed

    def row(self) -> str:
        seeds = f"{self.first_seed:,} – {self.first_seed + self.cases - 1:,}"
        counts = f"{self.cases:,} | {self.refused:,} | {self.no_answer:,} | {self.failures}"
        return f"| {self.engine} | {self.commit} | {seeds} | {counts} | {self.took_s / 60:.0f} | {self.note} |"


def run_of(engine: str, first_seed: int, tally: Tally, took_s: float) -> Run:
    refused, no_answer = tally.ways[REFUSED], tally.ways[NO_ANSWER]
    return Run(engine, commit(), first_seed, tally.cases, refused, no_answer, len(tally.failures), round(took_s))


def write(run: Run, folder: Path = DOCS) -> None:
    """Puts the run among those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.json"
    known = [Run(**each) for each in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []
    runs = list({each.key: each for each in (*known, run)}.values())
    listed = ",\n".join(json.dumps(asdict(each)) for each in runs)
    file.write_text(f"[\n{listed}\n]\n", encoding="utf-8")
    (folder / "README.md").write_text(page(runs), encoding="utf-8")


def page(runs: list[Run]) -> str:
    sums = []
    for engine in sorted({each.engine for each in runs}):
        of_it = [each for each in runs if each.engine == engine]
        cases, failures = sum(each.cases for each in of_it), sum(each.failures for each in of_it)
        sums.append(f"{engine}: {cases:,} cases, {failures} failures.")
    return HEAD + "\n".join(each.row() for each in runs) + "\n\n" + "\n".join(sums) + "\n"


@cache
def commit() -> str:
    """Of what is tested, as it was when the run began."""
    changed = _git("status", "--porcelain", "--", "engine", "tests")
    return _git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
