"""Processes that are there to be killed: their start, orders for them, and their certain end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.failpoints import Failpoint
from tests.faults.real_child import KEPT
from tests.faults.witness import Broken

ROOT = Path(__file__).resolve().parents[2]

#: the slowest of what is waited for is the start of a JVM on a busy machine
PATIENCE_S = 120.0

#: a JVM that will be killed in a minute need not learn to be fast
_SHORT_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


class Child:
    """A process with an engine, and orders for it."""

    def __init__(self, folder: Path, gateway: Mapping[str, str] | None = None) -> None:
        temporary = folder / "temporary"
        temporary.mkdir(exist_ok=True)
        with (folder / "children.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.real_child", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, **_SHORT_LIVED, "TMPDIR": str(temporary), **(gateway or {})},
                start_new_session=True,
            )
        self.owns_jvm = gateway is None
        self.jvm = 0
        self.gateway: Mapping[str, str] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_ready(self) -> Child:
        if not self.jvm:
            said = self.hear("ready")
            self.jvm, self.gateway = said["jvm"], {**said["gateway"], KEPT: str(said["jvm"])}
        return self

    def order(self, do: str, name: str = "", failpoints: str = "", **more: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "name": name, "failpoints": failpoints, **more}) + "\n")
        self.process.stdin.flush()

    def hear(self, *wanted: str) -> dict[str, Any]:
        """The next thing that it says of these kinds. One that is silent for too long is killed."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                said: dict[str, Any] = json.loads(line)
                if said["said"] in wanted:
                    return said
        finally:
            watchdog.cancel()
        raise Broken(f"the child ended with {self.process.wait()} and had not said {' or '.join(wanted)}")

    def hear_passing(self, point: Failpoint) -> None:
        while (said := self.hear("passed", "done", "failed"))["said"] == "passed":
            if said["point"] == point.value:
                return
        raise Broken(f"the child did not pass {point.value}: {said}")

    def stopped_at(self, point: Failpoint) -> None:
        self.hear_passing(point)
        _until(lambda: _state(self.pid) == "T", f"the child stops at {point.value}")

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def killed_at(self, point: Failpoint) -> None:
        """It did so itself."""
        self.hear_passing(point)
        if self.process.wait(PATIENCE_S) != -signal.SIGKILL:
            raise Broken(f"the child was to be killed at {point.value} and ended with {self.process.returncode}")

    def kill(self, *, with_jvm: bool = False) -> None:
        """Its JVM is in a group of its own, so that Ctrl-C does not reach it: both groups, then."""
        groups = [self.pid, *(_children(self.pid) if with_jvm else ())]
        for group in groups:
            os.killpg(group, signal.SIGKILL)
        self.process.wait()

    def wait_gone(self) -> None:
        """A JVM that nobody killed ends by itself when its Python is gone."""
        if self.owns_jvm and self.jvm:
            _until(lambda: _state(self.jvm) in (None, "Z"), "the JVM ends with its process")

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.kill(with_jvm=True)


class Nursery:
    """Children of one workspace. The next one with a JVM of its own starts while the last one is at work."""

    def __init__(self, folder: Path, coming: int) -> None:
        """`coming`: how many with a JVM of their own will be asked for, after all that have none."""
        self._folder = folder
        self._coming = max(coming, 1)
        self._started: deque[Child] = deque()
        self.all: list[Child] = []
        self._start_next()
        #: in whose JVM others live; it is the last to be asked for
        self.keeper = self._started.popleft()
        self._start_next()

    def alone(self) -> Child:
        """A child with a JVM that dies with it."""
        if not self._started:
            return self.keeper.wait_ready()
        child = self._started.popleft().wait_ready()
        self._start_next()
        return child

    def guest(self) -> Child:
        """A child in the keeper's JVM, which outlives it."""
        return self._child(self.keeper.wait_ready().gateway).wait_ready()

    def _start_next(self) -> None:
        if self._coming > 0:
            self._coming -= 1
            self._started.append(self._child())

    def _child(self, gateway: Mapping[str, str] | None = None) -> Child:
        child = Child(self._folder, gateway)
        self.all.append(child)
        return child

    def close(self) -> None:
        for child in self.all:
            child.clean_up()
        for child in self.all:
            child.wait_gone()


def _state(pid: int) -> str | None:
    """As the kernel calls it: T is stopped, Z is dead and not yet asked for; None is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Broken(f"waited {PATIENCE_S:g} s until {what}")
        time.sleep(0.01)
