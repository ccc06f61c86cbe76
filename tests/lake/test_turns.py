"""Turns at a source: one after the other, among threads and processes, and never held by the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.errors import CommitConflict
from engine.lake.turns import Turns

ROOT = Path(__file__).parents[2]

HOLDS = """
import sys, time
from pathlib import Path
from engine.lake.turns import Turns
with Turns(Path(sys.argv[1]), 10).taken({sys.argv[2]}):
    print("has it", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def turns(tmp_path: Path) -> Turns:
    return Turns(tmp_path / "turns", wait_s=10)


def test_one_after_the_other(turns: Turns, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count() -> None:
        with turns.taken({"a"}):
            seen = int(counter.read_text())
            time.sleep(0.002)
            counter.write_text(str(seen + 1))

    threads = [threading.Thread(target=count) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "30"


def test_other_sources_have_turns_of_their_own(turns: Turns) -> None:
    with turns.taken({"a"}):
        assert turns.is_taken("a")
        assert not turns.is_taken("b")
        with turns.taken({"b", "c"}):
            assert turns.is_taken("c")
    assert not turns.is_taken("a")


def test_a_link_to_a_folder_is_that_folder(turns: Turns, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with turns.taken({str(tmp_path / "there")}):
        assert turns.is_taken(str(tmp_path / "link"))


def test_who_wants_several_never_waits_for_who_wants_them_too(turns: Turns) -> None:
    def both() -> None:
        for _ in range(20):
            with turns.taken({"a", "b"}):
                pass

    threads = [threading.Thread(target=both) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads)


def test_a_dead_process_has_no_turn(turns: Turns, tmp_path: Path) -> None:
    folder = str(tmp_path / "turns")
    child = subprocess.Popen([sys.executable, "-c", HOLDS, folder, "a"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "has it\n"
        with (
            pytest.raises(CommitConflict) as caught,
            Turns(tmp_path / "turns", wait_s=0.05).taken({"a"}),
        ):
            pytest.fail("two have it")
        assert f"process {child.pid}" in (caught.value.detail or "")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        with turns.taken({"a"}):
            assert turns.is_taken("a")
    finally:
        child.kill()
        child.wait()
