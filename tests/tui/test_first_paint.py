"""The first picture comes from the catalog alone: nothing heavy is loaded before it stands."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from engine.catalog.store import Catalog
from engine.engine import Engine
from tests.tui.fake import SHOP, definition

_LOOK = """
import asyncio, json, sys
from pathlib import Path
from trickle_tui.app import DashboardApp
from trickle_tui.engine_bridge import EngineBridge
from trickle_tui.strips import to_text

HEAVY = ("pyspark", "deltalake", "duckdb", "sqlglot", "pyarrow", "plotext", "PIL")

class Looking(DashboardApp):
    def _start_engine(self):
        # called when the first picture stands
        loaded = [name for name in HEAVY if name in sys.modules]
        print(json.dumps({"loaded": loaded, "screen": to_text(self)}))
        self.exit()

async def main():
    app = Looking(EngineBridge(Path(sys.argv[1]), True, {}, {}))
    async with app.run_test(size=(140, 45)) as pilot:
        await pilot.pause(5)

asyncio.run(main())
"""


def test_the_first_picture_has_the_catalogs_tables_and_loads_nothing_heavy(tmp_path: Path) -> None:
    workspace = Engine.init(tmp_path / "work")
    catalog = Catalog.open(workspace / ".trickle" / "catalog.db")
    made = next(made for made in SHOP if made.name == "customer_ltv")
    catalog.add_stream_table(replace(definition(made), sources=()))
    catalog.close()
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, str(workspace)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert "customer_ltv" in seen["screen"]
    assert seen["loaded"] == []
