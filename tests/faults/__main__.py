"""Faults, far more of them than fit into a test run, with a record of what came of them in docs/faults.

python -m tests.faults real                  every combo on real Spark: 20 minutes
python -m tests.faults simulated 100000      so many in simulated lives: an hour
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults import report, simulated
from tests.faults.children import Nursery
from tests.faults.real import Combo, Result, all_combos, run
from tests.faults.real_world import World, make_workspace

#: what pays for a handful of rows: no optimising compiler, no generated code
USER_FILE = """\
[spark]
driver_memory = "1g"

[spark.conf]
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.driver.extraJavaOptions" = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    rings = parser.add_subparsers(dest="ring", required=True)
    real = rings.add_parser("real")
    real.add_argument("--only", default="", help="combos whose description contains this; writes no report")
    lives = rings.add_parser("simulated")
    lives.add_argument("faults", nargs="?", type=int, default=100_000)
    lives.add_argument("--from-seed", type=int, default=0)
    given = parser.parse_args()
    # who ends the run ends its children
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if given.ring == "simulated":
        return simulated.main(given.faults, given.from_seed)
    return run_real(given.only)


def run_real(only: str) -> int:
    combos = [combo for combo in all_combos() if only in str(combo)]
    with tempfile.TemporaryDirectory(prefix="trickle-faults-") as folder:
        use_only(Path(folder))
        began = time.monotonic()
        workspace = make_workspace(Path(folder) / "workspace")
        nursery = Nursery(workspace, coming=sum(combo.own_jvm for combo in combos))
        world = World(workspace, dict.fromkeys(combo.case for combo in combos))
        try:
            results = run_all(world, nursery, combos)
            facts = report.facts(world.engine, time.monotonic() - began)
        finally:
            nursery.close()
            world.close()
    print(report.table(results))
    if not only:
        report.write(results, facts)
    return 1 if any(result.broken for result in results) else 0


def use_only(folder: Path) -> None:
    """No settings of the user's: engines here and in children are the same everywhere."""
    (folder / "user" / "trickle").mkdir(parents=True)
    (folder / "user" / "trickle" / "trickle.toml").write_text(USER_FILE, encoding="utf-8")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "user")


def run_all(world: World, nursery: Nursery, combos: list[Combo]) -> list[Result]:
    results = []
    for number, combo in enumerate(combos, start=1):
        result = run(world, nursery, combo)
        results.append(result)
        verdict = f"BROKEN: {result.broken}" if result.broken else f"{result.ended}, {result.landed}"
        print(f"{number:>4}/{len(combos)} {result.seconds:>6.1f} s  {combo}: {verdict}", file=sys.stderr, flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
