"""What Spark read while something ran: rows and bytes are steadier than seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.stage import Stage

LONGEST_WAIT_MS = 10_000


@dataclass
class Reads:
    """From files; what went from task to task is not in it, nor what delta-rs read by itself."""

    rows: int = 0
    bytes: int = 0


@contextmanager
def counted(stage: Stage) -> Iterator[Reads]:
    found = Reads()
    before = _seen(stage)
    yield found
    for stage_id, (rows, size) in _seen(stage).items():
        if stage_id not in before:
            found.rows += rows
            found.bytes += size


def _seen(stage: Stage) -> dict[int, tuple[int, int]]:
    """By stage, what it read. Spark keeps its last thousand stages, more than one refresh has."""
    context = stage.spark.sparkContext
    jvm, spark = context._jvm, context._jsc.sc()
    spark.listenerBus().waitUntilEmpty(LONGEST_WAIT_MS)
    no_quantiles = context._gateway.new_array(jvm.double, 0)
    listed = spark.statusStore().stageList(
        jvm.java.util.ArrayList(), False, False, no_quantiles, jvm.java.util.ArrayList()
    )
    found = (listed.apply(number) for number in range(listed.size()))
    return {each.stageId(): (each.inputRecords(), each.inputBytes()) for each in found}
