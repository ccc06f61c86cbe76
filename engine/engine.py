"""The facade: every verb of Trickle, and the only door to it for the command line and the dashboard.

All calls block and may come from any thread. Opening reads the catalog alone; Spark is started when it is asked
for. What a verb does stands in the module that it delegates to; the verbs themselves stand in `engine/verbs/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine import config
from engine.catalog.store import Catalog
from engine.clock import SystemClock
from engine.records import SchedulerStatus, SparkStatus
from engine.results import SqlResult
from engine.verbs.explain import ExplainVerbs
from engine.verbs.sources import SourceVerbs
from engine.verbs.stream_tables import StreamTableVerbs
from engine.workspace import Workspace


class Engine(StreamTableVerbs, SourceVerbs, ExplainVerbs):
    """One open workspace. `with Engine.open(path) as engine: …`"""

    # ---------------------------------------------------------------- opening and closing

    @staticmethod
    def init(path: Path | str, name: str | None = None) -> Path:
        """Makes a workspace."""

        def fill(made: Workspace) -> None:
            catalog = Catalog.open(made.catalog_file)
            if name:
                catalog.set_meta("name", name)
            catalog.close()

        return Workspace.create(Path(path), fill).root

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        read_only: bool = False,
        overrides: Mapping[str, str] | None = None,
        start_spark: bool = False,
    ) -> Engine:
        workspace = Workspace.find(Path(path))
        settings = config.load(workspace.root, overrides or {})
        catalog = Catalog.open(workspace.catalog_file, read_only=read_only)
        engine = cls(workspace, settings, catalog, SystemClock())
        if start_spark:
            engine.start_spark()
        return engine

    def close(self) -> None:
        if self._built is not None:
            self._built.refresher.close()
            self._built.scheduler.stop(cancel=False)
        self._host.close()
        self._history.close()
        self._catalog.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- Spark and the scheduler

    def start_spark(self) -> None:
        """Begins in the background; returns at once."""
        self._host.start()

    def spark_status(self) -> SparkStatus:
        return self._host.status()

    def wait_for_spark(self, timeout_s: float | None = None) -> None:
        self._host.start()
        self._host.wait_ready(timeout_s)

    def start_scheduler(self) -> SchedulerStatus:
        """Schedules here if no other process does; takes over when that one ends."""
        return self._writing.scheduler.start()

    def stop_scheduler(self, drain_timeout_s: float = 0.0) -> None:
        if self._built is not None:
            self._built.scheduler.stop(drain_timeout_s)

    # ---------------------------------------------------------------- SQL

    def sql(self, text: str) -> SqlResult:
        """One statement."""
        from engine.sql import run_statement

        return run_statement(self, text)

    def sql_script(self, text: str) -> tuple[SqlResult, ...]:
        """Statement after statement; the first that fails ends it, and names its place in the script."""
        from engine.sql import run_script

        return run_script(self, text)
