"""The first picture comes from the catalog alone: nothing heavy is loaded before it stands."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalog.store import Catalog
from engine.engine import Engine
from tests.tui.fake import SHOP, definition
from trickle_tui import app as app_module
from trickle_tui import start

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


def test_garbage_is_collected_again_after_the_first_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[bool] = []

    class Shown:
        def __init__(self, bridge: object, startup_sql: object, on_first_picture: Callable[[], None]) -> None:
            seen.append(gc.isenabled())
            self.picture = on_first_picture

        def run(self) -> None:
            self.picture()
            seen.append(gc.isenabled())

    monkeypatch.setattr(app_module, "DashboardApp", Shown)
    try:
        start.run(Engine.init(tmp_path / "work"), read_only=True)
    finally:
        gc.enable()
        gc.unfreeze()
    assert seen == [False, True]
