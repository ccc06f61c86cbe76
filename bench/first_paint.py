"""From the start of the process to the first frame that shows what the catalog knows, in a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

from bench.stage import spread

ROUNDS = 7
LONGEST_S = 20.0


def measure(workspace: Path, name: str) -> dict[str, Any]:
    """`name` is a stream table of the workspace: its name on the screen is what we wait for."""
    measured = [paint_ms(workspace, name) for _ in range(ROUNDS)]
    return {
        # a first run reads the programs from the disk; people's second start is what they feel
        "first_paint_ms": spread(measured[1:]).p50_ms,
        "first_paint_cold_ms": measured[0],
    }


def paint_ms(workspace: Path, name: str) -> float:
    program = [str(Path(sys.executable).with_name("trickle")), "-w", str(workspace), "ui", "--read-only"]
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(program[0], program)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
    seen = b""
    try:
        while name.encode() not in seen:
            left_s = began + LONGEST_S - time.perf_counter()
            ready, _, _ = select.select([terminal], [], [], max(0.0, left_s))
            if not ready:
                raise TimeoutError(f"no first paint within {LONGEST_S:.0f}s; seen: {seen[-2000:]!r}")
            seen += os.read(terminal, 65_536)
        return (time.perf_counter() - began) * 1000
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
