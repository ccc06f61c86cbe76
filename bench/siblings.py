"""Five stream tables over one source of 1,000,000 rows, refreshed one after the other: with one read of the change for
all of them, and with one for each.

Each round is one commit as in `small_change`, once with and once without the memory for shared changes.
"""

from __future__ import annotations

import random
from typing import Any

from bench.small_change import COLUMNS, changes, make_source
from bench.stage import Stage, spread, timed_ms
from engine.lake import changes as reading
from engine.lake.demo_tables import DemoTable
from engine.records import Outcome

SIBLINGS = 5
ROUNDS = 12
WARM_UPS = 3


def measure(stage: Stage, rounds: int = ROUNDS) -> dict[str, Any]:
    engine = stage.engine
    source_path = stage.folder / "shared_sales"
    make_source(stage, str(source_path))
    engine.add_source("shared_sales", str(source_path))
    names = [f"shared_by_{n}" for n in range(SIBLINGS)]
    for number, name in enumerate(names):
        query = f"SELECT customer % {10 + number} AS part, SUM(quantity) AS pieces FROM shared_sales GROUP BY 1"
        engine.create_stream_table(name, query, schedule="1h")
    source = DemoTable(source_path, COLUMNS, ("id",))
    pending = changes(random.Random(12))
    compute = engine._core.refresher._compute
    shared = compute._shared
    read_ms: dict[bool, list[float]] = {True: [], False: []}
    all_ms: dict[bool, list[float]] = {True: [], False: []}
    reads: dict[bool, list[int]] = {True: [], False: []}
    counted = _counted_reads()

    def one_round(sharing: bool) -> None:
        compute._shared = shared if sharing else None
        source.commit(**next(pending))
        began = counted()

        def refresh() -> None:
            for name in names:
                record = engine.refresh_stream_table(name)
                assert record.outcome is Outcome.DIFFERENTIAL, record
                spent_ms.append(record.phases_ms.get("read change", 0.0))

        spent_ms: list[float] = []
        all_ms[sharing].append(timed_ms(refresh))
        read_ms[sharing].append(sum(spent_ms))
        reads[sharing].append(counted() - began)

    for number in range(2 * (WARM_UPS + rounds)):
        if number == 2 * WARM_UPS:
            for told in (*all_ms.values(), *read_ms.values(), *reads.values()):
                told.clear()
        one_round(sharing=number % 2 == 0)
    compute._shared = shared
    assert all(engine.verify(name).equal for name in names)
    return {
        "siblings": SIBLINGS,
        "siblings_reads_shared": max(reads[True]),
        "siblings_reads_apart": max(reads[False]),
        "siblings_read_change_shared_ms": spread(read_ms[True]).p50_ms,
        "siblings_read_change_apart_ms": spread(read_ms[False]).p50_ms,
        "siblings_refresh_shared_ms": spread(all_ms[True]).p50_ms,
        "siblings_refresh_apart_ms": spread(all_ms[False]).p50_ms,
    }


def _counted_reads() -> Any:
    """How often a change was read from its files so far."""
    count = [0]
    real = reading._read

    def counted(*given: Any, **named: Any) -> Any:
        count[0] += 1
        return real(*given, **named)

    reading._read = counted  # type: ignore[assignment]
    return lambda: count[0]
