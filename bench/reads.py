"""What Spark read while something ran, and what the driver looked through: rows and bytes are steadier than seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import pyarrow.parquet as pq

from bench.stage import Stage
from engine.lake import lookups

LONGEST_WAIT_MS = 10_000


@dataclass
class Reads:
    """From files; what went from task to task is not in it, nor the changes that delta-rs read by itself."""

    rows: int = 0
    bytes: int = 0


@contextmanager
def counted(stage: Stage) -> Iterator[Reads]:
    found = Reads()
    before = _seen(stage)

    def add(files: Sequence[str], columns: Sequence[str]) -> None:
        for file in files:
            rows, size = _looked_through(file, frozenset(columns))
            found.rows += rows
            found.bytes += size

    lookups.listeners.append(add)
    try:
        yield found
    finally:
        lookups.listeners.remove(add)
    for stage_id, (rows, size) in _seen(stage).items():
        if stage_id not in before:
            found.rows += rows
            found.bytes += size


@lru_cache(10_000)
def _looked_through(file: str, columns: frozenset[str]) -> tuple[int, int]:
    """All rows of a file, and the bytes of these columns: keys are anywhere."""
    found = pq.read_metadata(file)
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    return found.num_rows, sum(each.total_compressed_size for each in chunks if each.path_in_schema in columns)


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
