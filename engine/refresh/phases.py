"""How long each part of a refresh took, and where it is now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Phases:
    """A stopwatch over named phases. `on_enter` hears each as it begins, and may refuse it."""

    ORDER = ("version check", "read change", "plan", "run", "commit", "bookkeeping")

    def __init__(self) -> None:
        self.on_enter: Callable[[str], None] = lambda phase: None
        self._began = time.perf_counter()
        self.spent_ms: dict[str, float] = {}
        self._in_vain_ms = 0.0

    def begin_anew(self) -> None:
        """What was done so far was for nothing."""
        self._in_vain_ms = sum(self.spent_ms.values())

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.on_enter(name)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent_ms[name] = self.spent_ms.get(name, 0.0) + (time.perf_counter() - began) * 1000

    @property
    def worked_ms(self) -> float:
        """In phases, by what was not in vain: without waiting for Spark to start, for example."""
        return sum(self.spent_ms.values()) - self._in_vain_ms

    @property
    def total_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000
