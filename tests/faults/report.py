"""What a run of the real ring found, for people and for programs."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import machine
from engine.engine import Engine
from tests.faults.real import OF_DEFINITIONS, Result, Way
from tests.faults.real_world import CASES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "faults"


def facts(engine: Engine, took_s: float) -> dict[str, Any]:
    """What it ran on, asked at its end; where Java lies is this machine's own business."""
    known = machine.facts(engine)
    load = known.pop("load_before")
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=DOCS, capture_output=True, text=True, check=True).stdout.strip()
    return {
        "took_s": round(took_s),
        "load": load,
        "commit": commit,
        **{key: value for key, value in known.items() if key != "java"},
    }


def table(results: Iterable[Result]) -> str:
    """How many held of how many, by way and strategy, as Markdown."""
    tried, held = Counter[tuple[Way, str]](), Counter[tuple[Way, str]]()
    for result in results:
        tried[_way(result)] += 1
        held[_way(result)] += result.broken is None
    columns = [case.strategy for case in CASES]
    lines = ["| fault | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for way in Way:
        cells = [f"{held[way, name]} of {tried[way, name]}" if tried[way, name] else "" for name in columns]
        lines.append(f"| {way.value} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _way(result: Result) -> tuple[Way, str]:
    return result.combo.way, result.combo.case.strategy


def write(results: list[Result], found: dict[str, Any]) -> None:
    rows = [json.dumps(_row(result), ensure_ascii=False) for result in results]
    listed = ",\n    ".join(rows)
    about = json.dumps(found, indent=2, ensure_ascii=False).removesuffix("\n}")
    (DOCS / "real.json").write_text(f'{about},\n  "combos": [\n    {listed}\n  ]\n}}\n', encoding="utf-8")
    (DOCS / "real.md").write_text(page(results, found), encoding="utf-8")


def _row(result: Result) -> dict[str, Any]:
    combo = result.combo
    return {
        "fault": combo.way.value,
        "strategy": combo.case.strategy,
        "point": combo.point.value,
        "delay_s": combo.delay_s,
        "own_jvm": combo.own_jvm,
        "ended": result.ended,
        "landed": result.landed,
        "recovery": result.recovery,
        "tries": result.tries,
        "seconds": result.seconds,
        "broken": result.broken,
    }


def page(results: list[Result], found: dict[str, Any]) -> str:
    broken = [f"- {result.combo}: {result.broken}" for result in results if result.broken]
    minutes = found["took_s"] / 60
    return f"""# Faults on real Spark

<!-- written by: python -m tests.faults real -->

{len(results)} times a process met a fault while it refreshed, made or dropped a stream table; {len(broken)} times
something did not hold. After each fault another process looked at the table as it was left, mended it with one ordinary
refresh, and looked again. What must hold: the rows are the query's at the frontier of the last stamp, no frontier goes
back, no commit is lost, each refresh has one stamp and each change one commit, the next refresh has nothing to do, and
neither files nor processes are left over. `tests/faults/real.py` says how; each combo stands in
[real.json](real.json).

## Held

{table(results)}

## When the change was in the log

Who was killed or stopped had committed before that was looked at, or its JVM did so after its death and while another
process recovered, or its work was thrown away and done again by who came next.

{landings(results)}

## How who met the fault ended

{endings(results)}

## What did not hold

{"".join(f"{line}{chr(10)}" for line in broken) or "Nothing."}

## Measured on

It took {minutes:.0f} minutes on {found["cores"]} cores of {found["cpu"]}, {found["memory_gb"]} GB,
Linux {found["kernel"]}, at a load of {found["load"]}:
Python {found["python"]}, Spark {found["spark"]}, Delta {found["delta"]}, delta-rs {found["deltalake"]}.
Trickle was at commit {found["commit"]}.
"""


def landings(results: Iterable[Result]) -> str:
    of_refreshes = (result for result in results if result.combo.way not in OF_DEFINITIONS)
    return _counted(["fault", "landed"], ((result.combo.way.value, result.landed) for result in of_refreshes))


def endings(results: Iterable[Result]) -> str:
    return _counted(["fault", "ended with"], ((result.combo.way.value, result.ended) for result in results))


def _counted(heads: list[str], pairs: Iterable[tuple[str, str]]) -> str:
    counts = Counter(pair for pair in pairs if all(pair))
    lines = [f"| {' | '.join(heads)} | times |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {one} | {other} | {count} |" for (one, other), count in counts.items())])
