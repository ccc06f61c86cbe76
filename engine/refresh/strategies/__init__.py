"""Ways to bring a change set into the stored table: one file each, tried in this order.

`fits` says whether the way can be taken, `run` takes it. A way that finds its result larger than expected raises
TooLarge, and the next one has its turn. The last one always fits.
"""

from __future__ import annotations

from typing import Protocol

from engine.refresh.job import Applied, Differential
from engine.refresh.strategies.append_by_spark import AppendBySpark
from engine.refresh.strategies.append_from_driver import AppendFromDriver
from engine.refresh.strategies.merge_by_spark import MergeBySpark
from engine.refresh.strategies.merge_from_driver import MergeFromDriver


class Strategy(Protocol):
    name: str

    def fits(self, work: Differential) -> bool: ...

    def run(self, work: Differential) -> Applied: ...


STRATEGIES: tuple[Strategy, ...] = (
    AppendFromDriver(),  # cheapest: a file and a log entry
    MergeFromDriver(),  # a small change replaces rows of few files
    AppendBySpark(),  # many new rows, nothing to look up
    MergeBySpark(),  # fits everything
)
