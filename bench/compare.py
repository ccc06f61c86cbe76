"""`python -m bench.compare SAVED.json [NEW.json]`: which headline number got worse by more than a fifth."""

from __future__ import annotations

import json
import sys
from pathlib import Path

LATEST = Path(__file__).resolve().parent / "results" / "latest.json"
ALLOWED = 1.2
#: of these, more is better; seconds and ratios to something are better when less
MORE_IS_BETTER = ("tpch_speedup_sum", "tpch_speedup_geomean", "tpch_speedup_min")
#: facts about what was measured, and what a machine happens to need
NOT_COMPARED = ("tpch_sf", "tpch_change_fraction", "floor_ms", "no_data_sources", "growth_changed_orders")


def worse(saved: dict[str, object], new: dict[str, object]) -> list[str]:
    found = []
    for key in saved.keys() & new.keys() - set(NOT_COMPARED):
        before, after = saved[key], new[key]
        if not isinstance(before, int | float) or not isinstance(after, int | float) or before <= 0 or after <= 0:
            continue
        factor = before / after if key in MORE_IS_BETTER else after / before
        if factor > ALLOWED:
            found.append(f"{key}: {before:,.2f} → {after:,.2f}, worse by {100 * (factor - 1):.0f} %")
    return sorted(found)


def main() -> int:
    files = [Path(each) for each in sys.argv[1:]]
    saved, new = (json.loads(file.read_text(encoding="utf-8")) for file in (files[0], (files[1:] or [LATEST])[0]))
    found = worse(saved, new)
    print("\n".join(found) if found else f"nothing got worse by more than {100 * (ALLOWED - 1):.0f} %")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
