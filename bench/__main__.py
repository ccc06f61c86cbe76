"""`make bench`: measures, prints a table and writes bench/results/latest.json."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import first_paint, full, machine, no_data, scenarios, siblings, small_change, tpch
from bench.stage import FLOOR_ROUNDS, Stage, open_stage

RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"

#: what each headline number must not exceed, and the unit it is told in
BOUNDS: dict[str, tuple[float | None, str]] = {
    "floor_ms": (None, "ms"),
    "small_change_aggregate_ratio": (0.8, "× floor"),
    "no_data_ms": (10.0, "ms"),
    "full_over_ctas_ratio": (1.1, "× CTAS"),
    "first_paint_ms": (500.0, "ms"),
    "growth_aggregate_ratio": (1.5, "× at a tenth"),
    "growth_join_ratio": (3.0, "× at a tenth"),
}
#: what must be reached, of numbers that are better when they are larger
REACHED: dict[str, float] = {"tpch_speedup_sum": 5.0, "tpch_speedup_min": 0.9}

#: TPC-H by default, and all that `--full` measures: scale, fractions of changed orders, scales for growth
SHORT_TPCH = (0.1, (0.001,))
FULL_TPCH = (1.0, (0.001, 0.0001, 0.01, 0.05, 0.25))
GROWTH = (0.1, 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rounds, sizes and changes: about an hour")
    parser.add_argument("--only", default="", help=f"parts, with commas between: {', '.join(PARTS)}")
    parser.add_argument("--scale", type=float, help="of TPC-H; 10 needs an hour, and some gigabytes")
    parser.add_argument("--to", type=Path, default=RESULTS, help="where the numbers go")
    given = parser.parse_args()
    parts = [part for part in given.only.split(",") if part] or list(PARTS)
    unknown = set(parts) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    began = time.monotonic()
    numbers: dict[str, Any] = {}
    with open_stage() as stage:
        numbers["machine"] = machine.facts(stage.engine)
        for part in parts:
            what, measure = PARTS[part]
            say(what)
            numbers |= measure(stage, given.full, given.scale)
    given.to.parent.mkdir(parents=True, exist_ok=True)
    given.to.write_text(json.dumps(numbers, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print()
    print(table(numbers))
    print(f"\n{given.to.name}, {time.monotonic() - began:.0f} s in all")
    return 0


def _small_change(stage: Stage, full_run: bool, _: float | None) -> dict[str, Any]:
    return small_change.measure(stage, FLOOR_ROUNDS * (3 if full_run else 1))


def _full(stage: Stage, full_run: bool, _: float | None) -> dict[str, Any]:
    return full.measure(stage, full.ROUNDS * (3 if full_run else 1))


def _first_paint(stage: Stage, full_run: bool, _: float | None) -> dict[str, Any]:
    path, name = str(stage.folder / "few"), "first_seen"
    stage.spark.range(10).write.format("delta").save(path)
    stage.engine.add_source("few", path)
    stage.engine.create_stream_table(name, "SELECT id FROM few", schedule="1h", enable_cdf=False)
    return first_paint.measure(stage.engine.workspace.root, name)


def _tpch(stage: Stage, full_run: bool, scale: float | None) -> dict[str, Any]:
    usual, fractions = FULL_TPCH if full_run else SHORT_TPCH
    return tpch.measure(stage, scale or usual, fractions)


def _growth(stage: Stage, full_run: bool, _: float | None) -> dict[str, Any]:
    return tpch.growth(stage, *GROWTH) if full_run else {}


def _scenarios(stage: Stage, full_run: bool, _: float | None) -> dict[str, Any]:
    sizes = scenarios.ALL_SIZES if full_run else scenarios.SIZES
    return scenarios.measure(stage, sizes, scenarios.ALL_FRACTIONS if full_run else scenarios.FRACTIONS)


#: in this order: what is measured in milliseconds first, while little is kept in memory
PARTS: dict[str, tuple[str, Callable[[Stage, bool, float | None], dict[str, Any]]]] = {
    "no_data": ("a refresh without data", lambda stage, *_: no_data.measure(stage)),
    "small_change": ("a small change of a large source, beside the floor", _small_change),
    "siblings": (
        "stream tables that share one read of a change",
        lambda stage, full_run, _: siblings.measure(stage, siblings.ROUNDS * (3 if full_run else 1)),
    ),
    "full": ("a full refresh, beside the plain CTAS", _full),
    "first_paint": ("the first paint", _first_paint),
    "scenarios": ("one operator at a time", _scenarios),
    "tpch": ("TPC-H", _tpch),
    "growth": ("TPC-H at two scales", _growth),
}


def say(what: str) -> None:
    print(f"· {what}", file=sys.stderr, flush=True)


def table(numbers: Mapping[str, Any]) -> str:
    lines = [f"{'NUMBER':<34}{'MEASURED':>12}  {'BOUND':>10}"]
    for key, value in numbers.items():
        if isinstance(value, int | float):
            bound, unit = BOUNDS.get(key, (None, "ms" if key.endswith("_ms") else ""))
            least = REACHED.get(key)
            verdict = "" if bound is None else ("  ok" if value <= bound else "  over")
            if least is not None:
                verdict = "  ok" if value >= least else "  not reached"
            shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
            limit = f"≤ {bound:g}" if bound is not None else f"≥ {least:g}" if least is not None else ""
            lines.append(f"{key:<34}{shown:>12}  {limit:>10}  {unit}{verdict}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
