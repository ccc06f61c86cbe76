"""What a run came to, as Markdown: `python -m bench.report RESULT.json` writes the tables of docs/PERFORMANCE.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "PERFORMANCE.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def sections(numbers: dict[str, Any]) -> str:
    """Only of what was measured."""
    machine = numbers["machine"]
    parts = [
        f"Measured {machine['measured_at'][:10]} on {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gb']:g} GB, Spark {machine['spark']}, Delta {machine['delta']}, Java {machine['java']}. "
        "Seconds are this machine's; ratios are what to compare.",
        _headlines(numbers),
    ]
    if "tpch" in numbers:
        parts += [f"### TPC-H, scale {numbers['tpch_sf']:g}", _tpch(numbers["tpch"], numbers["tpch_change_fraction"])]
        parts += ["Where recomputing begins to pay:", _by_fraction(numbers["tpch"])]
    if "scenarios" in numbers:
        parts += ["### One operator at a time", _scenarios(numbers["scenarios"])]
    if "small_change_aggregate_phases_ms" in numbers:
        parts += ["### Where the time of a small change goes", _phases(numbers)]
    return "\n\n".join(parts)


def _headlines(numbers: dict[str, Any]) -> str:
    shown = [(key, value) for key, value in numbers.items() if isinstance(value, int | float)]
    return _table(("number", "measured"), ((f"`{key}`", f"{value:,.2f}") for key, value in shown), "lr")


def _tpch(cases: Sequence[dict[str, Any]], fraction: float) -> str:
    rows = (
        (
            case["query"], case["outcome"].lower(), f"{case['refresh_ms']:,.0f}", f"{case['full_ms']:,.0f}",
            f"{case['speedup']:.1f} ×", f"{case['duckdb_ms']:,.0f}", f"{case['rows_read']:,}",
            _size(case["bytes_read"]),
        )
        for case in cases
        if case["fraction"] == fraction and case["changed"]
    )  # fmt: skip
    head = ("query", "refresh was", "refresh ms", "full ms", "faster by", "DuckDB ms", "rows read", "bytes read")
    return _table(head, rows, "llrrrrrr")


def _by_fraction(cases: Sequence[dict[str, Any]]) -> str:
    rows = []
    for fraction in sorted({case["fraction"] for case in cases}):
        of = [case for case in cases if case["fraction"] == fraction and case["changed"]]
        refresh_ms, full_ms = (sum(case[key] for case in of) for key in ("refresh_ms", "full_ms"))
        slower = sum(case["refresh_ms"] > 1.1 * case["full_ms"] for case in of)
        full = sum(case["outcome"] == "FULL" for case in of)
        rows.append(
            (f"{100 * fraction:g} %", f"{refresh_ms / 1000:.1f}", f"{full_ms / 1000:.1f}",
             f"{full_ms / refresh_ms:.1f} ×", f"{full} of {len(of)}", f"{slower}")
        )  # fmt: skip
    head = ("changed", "refreshes s", "recomputing s", "faster by", "AUTO went full", "slower than full by > 10 %")
    return _table(head, rows, "rrrrrr")


def _scenarios(cases: Sequence[dict[str, Any]]) -> str:
    fractions = sorted({case["fraction"] for case in cases})
    rows = []
    for scenario, size in dict.fromkeys((case["scenario"], case["rows"]) for case in cases):
        of = {case["fraction"]: case for case in cases if (case["scenario"], case["rows"]) == (scenario, size)}
        told = [f"{of[f]['speedup']:.1f} × ({of[f]['refresh_ms']:,.0f} ms)" if f in of else "" for f in fractions]
        any_case = next(iter(of.values()))
        told += [f"{any_case['full_ms']:,.0f}", f"{any_case['duckdb_ms']:,.0f}"]
        rows.append((scenario.replace("_", " "), f"{size:,}", *told))
    changed = [f"{100 * fraction:g} % changed" for fraction in fractions]
    return _table(("query", "rows", *changed, "full ms", "DuckDB ms"), rows, "lr" + "r" * (len(fractions) + 2))


def _phases(numbers: dict[str, Any]) -> str:
    phases = numbers["small_change_aggregate_phases_ms"]
    return _table(("phase", "ms"), ((name, f"{ms:.1f}") for name, ms in phases.items()), "lr")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], sides: str) -> str:
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"


def main() -> int:
    numbers = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{sections(numbers)}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
