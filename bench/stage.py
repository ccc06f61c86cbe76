"""The stage of a benchmark: a workspace of its own, the engine, and the very Spark that the engine uses."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.engine import Engine
from engine.lake.session import SparkHost

#: small commits of a warm JVM get faster for a while: so many of them are not counted
FLOOR_WARM_UPS = 15
FLOOR_ROUNDS = 50


@dataclass(frozen=True)
class Stage:
    folder: Path
    engine: Engine
    #: shares the engine's JVM and its settings: what is measured beside it runs under the same conditions
    host: SparkHost

    @property
    def spark(self) -> Any:
        return self.host.session()

    def jobs_so_far(self) -> int:
        """How many Spark jobs this JVM has started, by anybody."""
        return int(self.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@contextmanager
def open_stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="trickle-bench-") as name:
        folder = Path(name)
        Engine.init(folder / "workspace", name="bench")
        with Engine.open(folder / "workspace", start_spark=True) as engine:
            engine.wait_for_spark()
            host = SparkHost(engine.settings, engine.workspace.logs)
            host.start()
            host.wait_ready()
            try:
                yield Stage(folder, engine, host)
            finally:
                host.stop()


class Floor:
    """The floor: one-row Spark appends to a fresh Delta table without Change Data Feed."""

    def __init__(self, stage: Stage) -> None:
        self._spark = stage.spark
        self._path = str(stage.folder / "floor")
        self._number = 0
        for _ in range(FLOOR_WARM_UPS):
            self.append_ms()

    def append_ms(self) -> float:
        self._number += 1
        rows = self._spark.createDataFrame([(self._number, "one row")], "id bigint, text string")
        return timed_ms(lambda: rows.write.format("delta").mode("append").save(self._path))


def timed_ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


@dataclass(frozen=True)
class Spread:
    """Many measurements of one thing."""

    p50_ms: float
    p95_ms: float
    rounds: int


def spread(measured_ms: Sequence[float]) -> Spread:
    ordered = sorted(measured_ms)
    return Spread(statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], len(ordered))
