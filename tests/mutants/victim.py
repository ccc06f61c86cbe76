"""`python -m tests.mutants.victim PATH NUMBER`: does anything notice this one change? Exit code 1 when it does.

Who looks is read from stdin, a name in each line, and looks in this order. With `--lines SHARE SHARES` nothing is
changed, and nothing may be noticed; then everybody of that share looks, and which lines each of them ran in which time
is written to stdout as JSON.

The file is changed while Python reads it, on its way from the disk; nothing is written.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from tests.mutants.operators import mutated
from tests.support.garbage import collect_seldom

ROOT = Path(__file__).parents[2]
#: what a query is taken for, and what maintains it: derived, stored, bound, made cheaper
PLACES = (
    "engine/compile/lower", "engine/compile/differentiate", "engine/compile/keep", "engine/compile/optimize",
    "engine/compile/bind.py", "engine/compile/steps.py", "engine/compile/narrow.py", "engine/compile/gather.py",
    "engine/compile/keyed_reads.py", "engine/compile/origins.py",
    "engine/algebra/trees.py", "engine/compile/truth.py", "engine/compile/equalities.py",
)  # fmt: skip
#: who looks at pictures of what makes a plan cheaper, and what they are asked of
DRAWN = " as drawn"
CHEAPER = (
    "engine/compile/optimize/",
    "engine/compile/narrow.py",
    "engine/compile/gather.py",
    "engine/compile/origins.py",
    "engine/compile/steps.py",
)
#: random cases, of everything and of what has to be maintained
SEEDS = 250


def broken_files() -> list[Path]:
    return [file for place in PLACES for file in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]]


class _Changed(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, number: int) -> None:
        super().__init__(name, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType:
        """Never from what was compiled before."""
        return compile(mutated(Path(self.path).read_text(encoding="utf-8"), self._number), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, path: Path, number: int) -> None:
        self._name, self._path, self._number = name, path, number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Changed(fullname, str(self._path), self._number)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


def change(path: str, number: int) -> None:
    parts = Path(path).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    sys.meta_path.insert(0, _Finder(name, ROOT / path, number))


def witnesses() -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that looks at rows. Pictures of plans notice each change, and say nothing.

    But a rule that makes a plan cheaper does so for certain plans, which its own pictures show.
    """
    from tests.golden.test_golden import LARGE, RULES, test_large_sources, test_rule
    from tests.properties.features import weights
    from tests.properties.generator.queries import Generator
    from tests.properties.judge import Settings, judge
    from tests.support.contradictions import contradict
    from tests.support.view_runner import Variant, run_view_test
    from tests.support.view_test import read_view_test

    files = sorted((ROOT / "tests" / "views").rglob("*.test"))
    for variant in (Variant.OPTIMIZED, Variant.IN_STEPS, Variant.AS_DERIVED):
        for file in files:
            yield (
                f"{file.name} {variant}",
                lambda file=file, variant=variant: run_view_test(read_view_test(file), variant),
            )
    for file in files:
        yield f"{file.name} contradicted", lambda file=file: contradict(read_view_test(file))
    for path in RULES:
        yield f"{path.stem}{DRAWN}", lambda path=path: test_rule(path)
    for path in LARGE:
        yield f"large: {path.stem}{DRAWN}", lambda path=path: test_large_sources(path)
    covered = weights(["covered"])
    for seed in range(SEEDS):
        settings = Settings.of(seed, chosen=covered)
        yield (
            f"seed {seed}",
            lambda seed=seed, settings=settings: judge(Generator(seed, settings.weights).case(), settings),
        )


@dataclass(frozen=True)
class Seen:
    """What one who looks runs while nothing is changed."""

    #: of a processor
    took_s: float
    #: by file
    lines: dict[str, list[int]]


class Lines:
    """Notes which lines run of the files that are broken."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self.seen: set[tuple[str, int]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> Lines | None:
        if frame.f_code.co_filename not in self._files:
            return None
        self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self


def lines_run(share: int, shares: int) -> dict[str, Seen]:
    """For each who looks, of every `shares`-th: the lines that it needs."""
    files = {str(file): file.relative_to(ROOT).as_posix() for file in broken_files()}
    found: dict[str, Seen] = {}
    for name, look in islice(witnesses(), share, None, shares):
        lines = Lines(frozenset(files))
        began = time.process_time()
        sys.settrace(lines)
        try:
            look()
        finally:
            sys.settrace(None)
        by_file: dict[str, list[int]] = {}
        for path, line in sorted(lines.seen):
            by_file.setdefault(files[path], []).append(line)
        found[name] = Seen(time.process_time() - began, by_file)
    return found


def main() -> int:
    collect_seldom()
    if sys.argv[1] == "--lines":
        found = lines_run(int(sys.argv[2]), int(sys.argv[3]))
        print(json.dumps({name: asdict(seen) for name, seen in found.items()}))
        return 0
    change(sys.argv[1], int(sys.argv[2]))
    chosen = sys.stdin.read().splitlines()
    doing = "importing"
    try:
        every = dict(witnesses())
        for doing in chosen:
            every[doing]()
    except Exception as error:
        print(f"{doing}: {type(error).__name__}: {' '.join(str(error).split())[:150]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
