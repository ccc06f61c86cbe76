"""What became of each mutant, in docs/mutants, so that several sittings add up.

A verdict holds as long as the file from which the mutant was made: of one that changed, all are made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tests.mutants.operators import Mutant
from tests.mutants.victim import PLACES, ROOT

DOCS = ROOT / "docs" / "mutants"
HEAD = """# Rules with a mistake

<!-- written by: python -m tests.mutants --record -->

Each rule is broken in every way that `tests/mutants/operators.py` knows: a wrong sign, a term less, new for old. A
mutant is noticed when a view, a contradiction or a random case fails. Counted are the mutants of the sources as they
are; a verdict stands until its file changes, with the commit at which it was found. Changes that change no rows
stand with their reasons in `tests/mutants/same.txt`, and are not counted.

| where | mutants | made | noticed | share |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Verdict:
    path: str
    #: which of the changes of this file
    number: int
    #: of the file that was changed
    source: str
    #: the line's text, as the README and `same.txt` spell it
    line: str
    what: str
    noticed: bool
    #: by whom, or how many had looked
    said: str
    commit: str

    @property
    def key(self) -> tuple[str, int]:
        return self.path, self.number


Verdicts = Mapping[tuple[str, int], Verdict]


def line_of(mutant: Mutant) -> str:
    return (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()


def verdict(mutant: Mutant, noticed: bool, said: str, commit: str) -> Verdict:
    source = source_of(mutant.path)
    return Verdict(mutant.path, mutant.number, source, line_of(mutant), mutant.what, noticed, said, commit)


@cache
def source_of(path: str) -> str:
    """Of the file as it was when it was first asked for: a run is about one state of the sources."""
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


def read(folder: Path = DOCS) -> dict[tuple[str, int], Verdict]:
    file = folder / "verdicts.json"
    if not file.exists():
        return {}
    found = [Verdict(**each) for each in json.loads(file.read_text(encoding="utf-8"))]
    return {each.key: each for each in found}


def current(known: Verdicts, mutants: Iterable[Mutant]) -> dict[tuple[str, int], Verdict]:
    """What is known of these mutants, and was found out about the file that is there."""
    found = (known.get((each.path, each.number)) for each in mutants)
    return {each.key: each for each in found if each is not None and each.source == source_of(each.path)}


def write(known: Verdicts, mutants: list[Mutant], folder: Path = DOCS) -> None:
    """Of all the mutants that there are now. What is known of others is forgotten."""
    folder.mkdir(parents=True, exist_ok=True)
    held = current(known, mutants)
    listed = ",\n".join(json.dumps(asdict(held[key])) for key in sorted(held))
    _replace(folder / "verdicts.json", f"[\n{listed}\n]\n")
    _replace(folder / "README.md", page(held, mutants))


def page(held: Verdicts, mutants: list[Mutant]) -> str:
    rows = [_row(place, [each for each in mutants if each.path.startswith(place)], held) for place in PLACES]
    missed = [each for each in held.values() if not each.noticed]
    commits = ", ".join(sorted({each.commit for each in held.values()})) or "none"
    listed = "\n".join(
        f"- {each.path} | `{each.line}` | {each.what} ({each.said})"
        for each in sorted(missed, key=lambda each: each.key)
    )
    text = HEAD + "\n".join([*rows, _row("all", mutants, held)]) + f"\n\nCommits: {commits}.\n"
    return text + (f"\nNot noticed:\n\n{listed}\n" if missed else "")


def _row(where: str, mutants: list[Mutant], held: Verdicts) -> str:
    made = [held[each.path, each.number] for each in mutants if (each.path, each.number) in held]
    noticed = sum(each.noticed for each in made)
    share = f"{noticed / len(made):.1%}" if made else ""
    return f"| {where} | {len(mutants)} | {len(made)} | {noticed} | {share} |"


def _replace(file: Path, text: str) -> None:
    """A run that is stopped leaves a whole file."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, file)
