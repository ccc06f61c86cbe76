"""Every way to fail, at every point of a refresh, over every view: the promise holds and the next refresh mends it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.simulation import Tally, World, faults, live
from tests.support.view_test import read_view_test

VIEWS = Path(__file__).parents[1] / "views"
FILES = [path for path in sorted(VIEWS.rglob("*.test")) if path.parent.name != "refused"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="trickle-faults-", dir=memory if memory.is_dir() else None))
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_view_survives(path: Path, folder: Path) -> None:
    number = FILES.index(path)
    in_turn = itertools.islice(itertools.cycle(faults()), 2 * number, None)
    live(World(folder, read_view_test(path), by_spark=number % 4 > 1), lambda: next(in_turn), Tally())
