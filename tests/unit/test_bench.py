"""The benchmark's arithmetic: what is told of numbers, and which of them got worse."""

from __future__ import annotations

from bench.compare import worse
from bench.report import sections

MACHINE = {
    "measured_at": "2026-01-02T03:04:05+00:00", "cpu": "a processor", "cores": 2, "memory_gb": 25.2,
    "spark": "4.2.0", "delta": "4.4.0", "java": "17",
}  # fmt: skip


def case(query: str, fraction: float, refresh_ms: float, full_ms: float, outcome: str = "DIFFERENTIAL") -> dict:
    return {
        "query": query, "scale": 1.0, "fraction": fraction, "changed": query != "q02", "refresh_ms": refresh_ms,
        "full_ms": full_ms, "duckdb_ms": 20.0, "speedup": full_ms / refresh_ms, "outcome": outcome,
        "rows_read": 1_200, "bytes_read": 2_500_000,
    }  # fmt: skip


def test_what_was_measured_is_told_and_nothing_else() -> None:
    cases = [
        case("q01", 0.001, 100.0, 1_000.0), case("q02", 0.001, 5.0, 900.0), case("q03", 0.001, 400.0, 1_000.0),
        case("q01", 0.25, 1_200.0, 1_000.0), case("q03", 0.25, 1_050.0, 1_000.0, "FULL"),
    ]  # fmt: skip
    text = sections({"machine": MACHINE, "tpch_sf": 1.0, "tpch_change_fraction": 0.001, "tpch": cases})
    assert "| q01 | differential | 100 | 1,000 | 10.0 × | 20 | 1,200 | 2.5 MB |" in text
    assert "q02" not in text  # nothing that it reads had changed
    assert "| 0.1 % | 0.5 | 2.0 | 4.0 × | 0 of 2 | 0 |" in text
    assert "| 25 % | 2.2 | 2.0 | 0.9 × | 1 of 2 | 1 |" in text
    assert "One operator" not in text
    assert "2026-01-02 on 2 cores (a processor)" in text


def test_what_got_worse_by_more_than_a_fifth() -> None:
    saved = {"no_data_ms": 1.0, "tpch_speedup_sum": 6.0, "floor_ms": 100, "tpch_sf": 1, "machine": {}, "gone": 5.0}
    assert worse(saved, saved) == []
    assert worse(saved, {**saved, "no_data_ms": 1.19, "tpch_speedup_sum": 5.1, "floor_ms": 900}) == []
    assert worse(saved, {"no_data_ms": 1.5, "tpch_speedup_sum": 4.0}) == [
        "no_data_ms: 1.00 → 1.50, worse by 50 %",
        "tpch_speedup_sum: 6.00 → 4.00, worse by 50 %",
    ]
