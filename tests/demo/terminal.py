"""A real terminal for tests: tmux, what its screen shows as text, and the processes started in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Terminal:
    """Runs one command in a tmux of its own. Everything started in it carries a mark in its environment."""

    def __init__(
        self, command: Sequence[str], columns: int = 140, rows: int = 45, env: Mapping[str, str] | None = None
    ) -> None:
        self.mark = f"trickle-{uuid.uuid4().hex}"
        settings = {"TRICKLE_TEST_MARK": self.mark, "COLORTERM": "truecolor", **(env or {})}
        assignments = [f"{name}={value}" for name, value in settings.items()]
        # test runners leave a size in the environment, which programs believe more than the terminal
        line = shlex.join(["env", "-u", "COLUMNS", "-u", "LINES", *assignments, *command])
        # tmux forgets the status of some processes that it kept the pane of
        self._status = Path(tempfile.gettempdir()) / f"{self.mark}.status"
        line = f"{line}; echo $? > {shlex.quote(str(self._status))}"
        size = ("-x", str(columns), "-y", str(rows))
        # kept after its end, so that the last screen and the exit status can be read
        self._tmux("new-session", "-d", *size, line, ";", "set", "remain-on-exit", "on")

    def _tmux(self, *arguments: str) -> str:
        # a server of its own, which no configuration of the user's shapes
        command = ["tmux", "-L", self.mark, "-f", os.devnull, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    @property
    def exit_status(self) -> int | None:
        """None while the command runs."""
        try:
            said = self._status.read_text()
        except FileNotFoundError:
            return None
        return int(said) if said.strip() else None

    def wait_for(self, what: str, condition: Callable[[str], object], within_s: float) -> float:
        """Waits until the screen fulfils the condition and returns for how long; else shows the screen."""
        began = time.monotonic()
        while not condition(screen := self.screen()):
            waited_s = time.monotonic() - began
            assert self.exit_status is None, f"ended with {self.exit_status} before {what}:\n{screen}"
            assert waited_s < within_s, f"waited {within_s:.0f}s for {what}; the screen:\n{screen}"
            time.sleep(0.1)
        return time.monotonic() - began

    def wait_for_exit(self, within_s: float) -> float:
        began = time.monotonic()
        while self.exit_status is None:
            waited_s = time.monotonic() - began
            assert waited_s < within_s, f"still running after {within_s}s; the screen:\n{self.screen()}"
            time.sleep(0.01)
        return time.monotonic() - began

    def processes(self) -> dict[int, str]:
        """What runs with our mark, tmux itself apart: pid to command line."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    environment = (folder / "environ").read_bytes()
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue  # it has just ended
                if f"TRICKLE_TEST_MARK={self.mark}".encode() in environment:
                    found[int(folder.name)] = command
        return found

    def close(self) -> None:
        for pid in self.processes():
            os.kill(pid, 9)
        subprocess.run(["tmux", "-L", self.mark, "kill-server"], capture_output=True, check=False)
