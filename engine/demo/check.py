"""The demo without a screen: refresh, verify, tell. What `make demo CHECK=1` runs."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.demo.stream_tables import Definition
from engine.demo.workspace import create_stream_tables, open_demo
from engine.durations import format_took
from engine.engine import Engine
from engine.records import Outcome, ReasonCode, RefreshRecord, SparkStatus
from engine.results import CreateResult, VerifyResult

#: between two rounds of refreshes, so that the shop has changed
PAUSE_S = 1.5
#: the writer is quicker than in the dashboard: every round shall find changes
WRITER_PAUSE_S = 0.4

#: full refreshes that are right even where differential ones are possible
ACCEPTED_FULL = frozenset(
    {ReasonCode.COST, ReasonCode.CHANGE_RATIO, ReasonCode.NOT_POPULATED, ReasonCode.REQUESTED_FULL}
)


@dataclass(frozen=True)
class Checked:
    """What one stream table did in this run."""

    definition: Definition
    refreshes: tuple[RefreshRecord, ...]
    verified: VerifyResult

    @property
    def problems(self) -> tuple[str, ...]:
        name = self.definition.name
        found = [f"{name}: {r.error or 'failed'}" for r in self.refreshes if r.outcome is Outcome.FAILED]
        if not self.verified.equal:
            found.append(
                f"{name}: differs from its query; {self.verified.missing} rows missing, "
                f"{self.verified.unexpected} unexpected"
            )
        found += [
            f"{name}: refreshed fully: {r.reason.text}"
            for r in self.refreshes
            if r.outcome in {Outcome.FULL, Outcome.REINITIALIZE} and r.reason.code not in ACCEPTED_FULL
        ]
        return tuple(found)


def check(folder: Path, refreshes: int, overrides: Mapping[str, str], say: Callable[[str], None]) -> tuple[str, ...]:
    """Runs it and tells what happens; returns what went wrong, nothing when all is well."""
    began = time.monotonic()
    with (
        open_demo(folder, WRITER_PAUSE_S) as (workspace, definitions),
        Engine.open(workspace.root, overrides=overrides) as engine,
    ):
        say(f"trickle demo --check: {folder}, {len(definitions)} stream tables, each refreshed {refreshes} ×")
        say(f"  sources   {', '.join(status.source.name for status in engine.sources())}")
        engine.start_spark()
        tell_spark(engine, say)
        for definition, created in create_stream_tables(engine, definitions):
            say(creation_line(definition, created))
        records: dict[str, list[RefreshRecord]] = {definition.name: [] for definition in definitions}
        for turn in range(1, refreshes + 1):
            time.sleep(PAUSE_S)
            done = engine.refresh_all()
            for record in done:
                records.setdefault(record.st, []).append(record)
            say(f"  refresh {turn}/{refreshes}   {outcomes(done)}")
        checked = [
            Checked(definition, tuple(records[definition.name]), engine.verify(definition.name))
            for definition in definitions
        ]
    say("")
    for line in report(checked):
        say(line)
    problems = [problem for each in checked for problem in each.problems]
    if not any(r.outcome is Outcome.DIFFERENTIAL for each in checked for r in each.refreshes):
        problems.append("no refresh was differential")
    say("")
    verdict = "all stream tables equal their queries" if not problems else f"{len(problems)} problems"
    say(f"{verdict}, {time.monotonic() - began:.1f}s in all")
    return tuple(problems)


def tell_spark(engine: Engine, say: Callable[[str], None]) -> None:
    """Says what Spark's start is at, as it goes; a first start fetches its jars and may take minutes."""
    began = time.monotonic()
    last: SparkStatus | None = None
    while (status := engine.spark_status()).ready_at is None and status.phase.value not in ("failed", "lost"):
        if last is None or (status.phase, status.detail) != (last.phase, last.detail):
            say(f"  spark     {status.phase.value}{': ' if status.detail else ''}{status.detail}")
        last = status
        time.sleep(0.1)
    # raises what went wrong, with its hint
    engine.wait_for_spark()
    version = engine.version()
    took_s = time.monotonic() - began
    say(f"  spark     {version.spark}, Delta {version.delta}, {version.java}, ready after {took_s:.1f}s")


def creation_line(definition: Definition, created: CreateResult) -> str:
    if not created.created or created.refresh is None:
        return f"  kept      {definition.name}"
    rows = created.refresh.rows_inserted
    took = format_took(created.refresh.duration_ms)
    full = created.table.full_reason
    why = f"; full: {full.text}" if full else ""
    return f"  created   {definition.name}, {rows:,} rows in {took}{why}"


def outcomes(records: Sequence[RefreshRecord]) -> str:
    """'5 differential, 2 full, 1 no data', most frequent first."""
    counted = Counter(record.outcome for record in records).most_common()
    return ", ".join(f"{count} {outcome.value.lower().replace('_', ' ')}" for outcome, count in counted)


def report(checked: Sequence[Checked]) -> list[str]:
    """A table: one line a stream table, text left, numbers right."""
    head = ("STREAM TABLE", "REFRESHES", "ROWS IN", "INSERTED", "UPDATED", "DELETED", "MEDIAN", "VERIFIED")
    lines = [head, *(report_line(each) for each in checked)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    left = {0, 1, len(head) - 1}
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def report_line(each: Checked) -> tuple[str, ...]:
    worked = [r for r in each.refreshes if r.outcome is not Outcome.NO_DATA]
    median = format_took(statistics.median(r.duration_ms for r in worked)) if worked else "—"
    verdict = "equal" if each.verified.equal else "DIFFERS"
    return (
        each.definition.name,
        outcomes(each.refreshes) or "none",
        f"{sum(r.rows_in for r in each.refreshes):,}",
        f"{sum(r.rows_inserted for r in each.refreshes):,}",
        f"{sum(r.rows_updated for r in each.refreshes):,}",
        f"{sum(r.rows_deleted for r in each.refreshes):,}",
        median,
        f"{verdict}, {each.verified.rows:,} rows",
    )
