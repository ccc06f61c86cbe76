"""What is expected of each query: `differential`, or the words in which it is refused; one line each, in a file.

A query that becomes differential, or stops being it, fails a test until its line is changed:
`python -m tests.tpc report --write-expected` writes them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.tpc.suite import Suite


def path(suite: Suite) -> Path:
    return suite.folder / "expected.txt"


def read(suite: Suite) -> dict[int, str]:
    found = {}
    for line in path(suite).read_text(encoding="utf-8").splitlines():
        name, _, verdict = line.partition(" ")
        found[int(name.removeprefix("q"))] = verdict.strip()
    return found


def write(suite: Suite, verdicts: Iterable[tuple[int, str]]) -> None:
    """Changes the lines of these queries and leaves the others."""
    known = read(suite) if path(suite).exists() else {}
    known |= dict(verdicts)
    lines = [f"q{number:02} {known[number]}\n" for number in sorted(known)]
    path(suite).write_text("".join(lines), encoding="utf-8")
