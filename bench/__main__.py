"""`make bench`: measures, prints a table and writes bench/results/latest.json."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import first_paint, full, machine, no_data, small_change
from bench.stage import FLOOR_ROUNDS, open_stage

RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"

#: what each headline number must not exceed, and the unit it is told in
BOUNDS: dict[str, tuple[float | None, str]] = {
    "floor_ms": (None, "ms"),
    "small_change_aggregate_ratio": (1.3, "× floor"),
    "no_data_ms": (10.0, "ms"),
    "full_over_ctas_ratio": (1.1, "× CTAS"),
    "first_paint_ms": (500.0, "ms"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rounds")
    given = parser.parse_args()
    began = time.monotonic()
    numbers: dict[str, Any] = {}
    with open_stage() as stage:
        numbers["machine"] = machine.facts(stage.engine)
        say("a refresh without data")
        numbers |= no_data.measure(stage)
        say("a small change of a large source, beside the floor")
        numbers |= small_change.measure(stage, FLOOR_ROUNDS * (3 if given.full else 1))
        say("a full refresh, beside the plain CTAS")
        numbers |= full.measure(stage, full.ROUNDS * (3 if given.full else 1))
        say("the first paint")
        numbers |= first_paint.measure(stage.engine.workspace.root, "sales_by_customer")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(numbers, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print()
    print(table(numbers))
    print(
        f"\n{RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}"
        f", {time.monotonic() - began:.0f}s in all"
    )
    return 0


def say(what: str) -> None:
    print(f"· {what}", file=sys.stderr, flush=True)


def table(numbers: Mapping[str, Any]) -> str:
    lines = [f"{'NUMBER':<34}{'MEASURED':>12}  {'BOUND':>10}"]
    for key, value in numbers.items():
        if isinstance(value, int | float):
            bound, unit = BOUNDS.get(key, (None, "ms" if key.endswith("_ms") else ""))
            verdict = "" if bound is None else ("  ok" if value <= bound else "  over")
            shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
            limit = "" if bound is None else f"≤ {bound:g}"
            lines.append(f"{key:<34}{shown:>12}  {limit:>10}  {unit}{verdict}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
