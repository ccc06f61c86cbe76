"""A refresh that finds nothing to do, with ten local sources: its time, and the proof that Spark was left alone."""

from __future__ import annotations

from typing import Any

from bench.stage import Stage, spread, timed_ms
from engine.records import Outcome

SOURCES = 10
ROUNDS = 200


def measure(stage: Stage) -> dict[str, Any]:
    engine = stage.engine
    names = [f"part_{n}" for n in range(SOURCES)]
    for name in names:
        path = str(stage.folder / name)
        rows = stage.spark.range(100).selectExpr("id", f"id * 2 AS {name}_value")
        rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
        engine.add_source(name, path)
    joins = "\n".join(f"JOIN {name} ON {name}.id = {names[0]}.id" for name in names[1:])
    values = ", ".join(f"{name}.{name}_value" for name in names)
    query = f"SELECT {names[0]}.id, {values}\nFROM {names[0]}\n{joins}"
    engine.create_stream_table("parts", query, schedule="1h")

    def refresh() -> None:
        record = engine.refresh_stream_table("parts")
        assert record.outcome is Outcome.NO_DATA, record

    refresh()
    jobs = stage.jobs_so_far()
    measured = [timed_ms(refresh) for _ in range(ROUNDS)]
    started = stage.jobs_so_far() - jobs
    assert started == 0, f"{started} Spark jobs ran although nothing had changed"
    return {
        "no_data_ms": spread(measured).p50_ms,
        "no_data_p95_ms": spread(measured).p95_ms,
        "no_data_sources": SOURCES,
        "no_data_spark_jobs": started,
    }
