"""`trickle demo` as people see it: in a terminal, on the real engine, read from the screen."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest

from engine.demo.stream_tables import DEFINITIONS
from engine.engine import Engine
from tests.demo.terminal import Terminal

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("tmux") is None and os.environ.get("CI") != "true",
        reason="tmux is not installed; it is what reads the real screen",
    ),
]

#: the program as it is installed beside this Python
TRICKLE = str(Path(sys.executable).with_name("trickle"))
#: from the key to the end of all processes, on a machine whose cores are all busy with refreshes
QUIT_S = 2.5
NAMES = [definition.name for definition in DEFINITIONS]


@pytest.fixture
def start():
    terminals = []

    def begin(*command: str, columns: int = 140, rows: int = 45) -> Terminal:
        terminals.append(Terminal([TRICKLE, *command], columns, rows))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        terminal.close()


def row_of(screen: str, name: str) -> str:
    """The line of the table, not one of the events or the side panel's title: glyph, state, name."""
    row = re.compile(rf"^│ *▌? *\S \w+ +{name}\b")
    return next((line for line in screen.splitlines() if row.search(line)), "")


def refreshed(folder: Path) -> int:
    """How many refreshes the workspace has seen, read by another process as other people would."""
    with Engine.open(folder, read_only=True) as engine:
        return max((record.number for record in engine.history(limit=5)), default=0)


def test_the_demo_from_first_paint_to_quit(start, tmp_path):
    folder = tmp_path / "demo"
    terminal = start("demo", "--dir", str(folder))
    first_paint_s = terminal.wait_for("the dashboard", lambda screen: "Overview" in screen, 60)
    # a first start makes 100,000 rows before it opens the dashboard: alive within seconds, not minutes
    assert first_paint_s < 15

    def all_are_there(screen: str) -> bool:
        return all(re.search(r"fresh|running|stale", row_of(screen, name)) for name in NAMES)

    terminal.wait_for("every stream table to be filled", all_are_there, 500)
    terminal.wait_for("one to be fresh", lambda screen: "fresh" in row_of(screen, "open_orders"), 60)
    screen = terminal.screen()
    assert "diff" in row_of(screen, "open_orders")
    assert "diff" in row_of(screen, "top_products")

    before = refreshed(folder)
    shown = terminal.screen()
    terminal.wait_for("the screen to move on", lambda screen: screen != shown, 10)
    deadline = time.monotonic() + 30
    while refreshed(folder) < before + 3:
        assert time.monotonic() < deadline, terminal.screen()
        time.sleep(0.5)

    started = terminal.processes()
    assert any("engine.demo.writer" in command for command in started.values()), started
    assert any("java" in command for command in started.values()), started
    terminal.press("q")
    # the terminal is given back at once; until the process has ended, a JVM in full work has to be ended too
    assert terminal.wait_for_exit(10) < QUIT_S
    assert terminal.exit_status == 0
    deadline = time.monotonic() + 2
    while terminal.processes():
        assert time.monotonic() < deadline, f"left behind: {terminal.processes()}"
        time.sleep(0.05)


def test_a_killed_demo_takes_its_processes_with_it_and_continues_later(start, tmp_path):
    folder = tmp_path / "demo"
    first = start("demo", "--dir", str(folder), columns=80, rows=24)
    first.wait_for("the first stream table", lambda screen: "fresh" in row_of(screen, NAMES[0]), 180)
    main = next(pid for pid, command in first.processes().items() if "trickle demo" in command)
    os.kill(main, 9)
    deadline = time.monotonic() + 10
    while first.processes():
        assert time.monotonic() < deadline, f"left behind: {first.processes()}"
        time.sleep(0.05)
    before = refreshed(folder)

    second = start("demo", "--dir", str(folder), columns=80, rows=24)
    # what was there before is on the first screen, long before Spark is
    assert second.wait_for("what was known", lambda screen: row_of(screen, NAMES[0]), 10) < 5
    deadline = time.monotonic() + 180
    while refreshed(folder) <= before:
        assert time.monotonic() < deadline, second.screen()
        time.sleep(0.5)
    second.press("q")
    assert second.wait_for_exit(10) < QUIT_S
