"""Starting the writer as a process that cannot outlive its owner."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import InternalError

#: the first start makes some 100,000 rows; a slow disk gets its time
SOURCES_READY_WITHIN_S = 120.0


@contextmanager
def writer_process(lake: Path, log: Path, pause_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A writer that works until the context, or this process, ends.

    It watches its standard input: we hold the other end, which the kernel closes even if we are killed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "engine.demo.writer", str(lake), "--pause", str(pause_s)]
    with log.open("wb") as errors:
        writer = subprocess.Popen(  # noqa: S603 - our own module, no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C in the terminal is for whoever owns the screen
            start_new_session=True,
        )
    try:
        wait_for_sources(writer, log)
        yield writer
    finally:
        writer.kill()
        writer.wait()


def wait_for_sources(writer: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the writer says that its tables are there."""
    answers: list[bytes] = []

    def listen() -> None:
        if writer.stdout is not None:
            answers.append(writer.stdout.readline())

    # a pipe cannot be read with a timeout, a thread can be joined with one
    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    reader.join(SOURCES_READY_WITHIN_S)
    if not answers or not answers[0]:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise InternalError(
            "the demo's writer did not make its tables",
            detail=said[-1] if said else f"nothing was heard of it for {SOURCES_READY_WITHIN_S:.0f} s",
            hint=f"its log is {log}; is the disk full, or the folder read-only?",
        )
