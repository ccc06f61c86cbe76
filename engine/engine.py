"""The facade: every verb of Trickle, and the only door to it for the command line and the dashboard.

All calls block and may come from any thread. Opening reads the catalog alone; Spark is started when it is asked
for. What a verb does stands in the module that it delegates to.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import config
from engine.catalog.lease import Lease
from engine.catalog.migrations import SCHEMA_VERSION
from engine.catalog.store import Catalog
from engine.clock import Clock, SystemClock
from engine.errors import AlreadyExists, InvalidArgument, ReadOnly
from engine.events import EventBus
from engine.explain_verbs import ExplainVerbs
from engine.lake.session import SparkHost
from engine.observe.history import History
from engine.records import (
    Event,
    Initiator,
    Overview,
    RefreshRecord,
    SchedulerPlace,
    SchedulerStatus,
    SourceStatus,
    SparkStatus,
    StreamTable,
    StreamTableStatus,
    View,
)
from engine.refresh.status import status_of
from engine.results import (
    CreateResult,
    DropResult,
    RepairResult,
    SqlResult,
    VerifyResult,
    VersionInfo,
    ViewResult,
)
from engine.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.core import Core
    from engine.explain import Explainer

#: records of history that the state of a stream table is read from
REMEMBERED = 40


class Engine(ExplainVerbs):
    """One open workspace. `with Engine.open(path) as engine: …`"""

    def __init__(self, workspace: Workspace, settings: config.Settings, catalog: Catalog, clock: Clock) -> None:
        self.workspace = workspace
        self.settings = settings
        self._catalog = catalog
        self._clock = clock
        self._history = History(workspace.history)
        self._events = EventBus(catalog.append_event, clock)
        self._lease = Lease(catalog, clock, settings.scheduler.lease_timeout_s)
        self._host = SparkHost(settings, workspace.logs)
        self._built: Core | None = None

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

    @property
    def read_only(self) -> bool:
        return self._catalog.read_only

    @property
    def _core(self) -> Core:
        """The compiler and what runs refreshes: not needed for a first look at a workspace, so built when used."""
        if self._built is None:
            from engine.core import Core
            from engine.refresh.ledger import Ledger

            ledger = Ledger(self._catalog, self._history, self._events, self._clock)
            self._built = Core.build(
                self._catalog,
                self._host,
                self._history,
                self._events,
                ledger,
                self.settings,
                self._clock,
                self._lease,
                self.workspace.warehouse,
            )
        return self._built

    @property
    def _writing(self) -> Core:
        if self.read_only:
            raise ReadOnly("this engine was opened read-only", hint="open it without --read-only")
        return self._core

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

    def scheduler_status(self) -> SchedulerStatus:
        if self._built is not None:
            return self._built.scheduler.status()
        holder = self._lease.holder()
        if holder is None:
            return SchedulerStatus(SchedulerPlace.NOBODY)
        return SchedulerStatus(SchedulerPlace.ELSEWHERE, holder.pid)

    # ---------------------------------------------------------------- looking

    def overview(self, events: int = 200) -> Overview:
        """Everything the first screen shows, at one moment, from the catalog alone."""
        now = self._clock.now()
        return Overview(
            workspace=self.name,
            path=str(self.workspace.root),
            at=now,
            scheduler=self.scheduler_status(),
            spark=self._host.status(),
            tables=self._statuses(self._catalog.stream_tables(), now),
            events=self._catalog.events(limit=events),
        )

    @property
    def name(self) -> str:
        return self.settings.workspace.name or self._catalog.get_meta("name") or self.workspace.root.name

    def stream_tables(self) -> tuple[StreamTable, ...]:
        return self._catalog.stream_tables()

    def stream_table(self, name: str) -> StreamTable:
        return self._catalog.get_stream_table(name)

    def status(self, name: str) -> StreamTableStatus:
        return self._statuses((self._catalog.get_stream_table(name),), self._clock.now())[0]

    def _statuses(self, wanted: tuple[StreamTable, ...], now: datetime) -> tuple[StreamTableStatus, ...]:
        progress = self._catalog.all_progress()
        records = self._history.last_of_all(REMEMBERED)
        running = {each.st: each for each in self._built.refresher.running()} if self._built else {}
        dependents: dict[str, list[str]] = {}
        for table in self._catalog.stream_tables():
            for source in table.sources:
                dependents.setdefault(source.casefold(), []).append(table.name)
        return tuple(
            status_of(
                table,
                progress.get(table.id) or self._catalog.get_progress(table.id),
                records.get(table.name, ()),
                running.get(table.name),
                tuple(dependents.get(table.name.casefold(), ())),
                now,
            )
            for table in wanted
        )

    def history(self, st: str | None = None, limit: int = 50) -> tuple[RefreshRecord, ...]:
        """Newest first."""
        if st is not None:
            st = self._catalog.get_stream_table(st).name
        return self._history.query(st=st, limit=limit)

    def events(self, after: int = 0, limit: int = 200) -> tuple[Event, ...]:
        return self._catalog.events(after=after, limit=limit)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        return self._events.subscribe(listener)

    def sources(self) -> tuple[SourceStatus, ...]:
        return self._core.sources.statuses()

    def version(self) -> VersionInfo:
        return VersionInfo(
            engine=_installed("trickle-ivm"),
            schema=SCHEMA_VERSION,
            spark=_installed("pyspark"),
            delta=_installed("delta-spark"),
            deltalake=_installed("deltalake"),
            java=self._host.java,
            duckdb=_installed("duckdb"),
            python=platform.python_version(),
        )

    # ---------------------------------------------------------------- stream tables

    def create_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        append_only: bool = False,
        comment: str = "",
        enable_cdf: bool | None = None,
        dialect: str | None = None,
    ) -> CreateResult:
        self._host.start()
        result = self._writing.definitions.create(
            name,
            query,
            schedule=schedule,
            refresh_mode=refresh_mode,
            initialize=initialize,
            append_only=append_only,
            comment=comment,
            enable_cdf=enable_cdf,
            dialect=dialect,
        )
        self._core.scheduler.wake()
        return result

    def create_stream_table_if_not_exists(self, name: str, query: str, **options: Any) -> CreateResult:
        there = [table for table in self._catalog.stream_tables() if table.name.casefold() == name.casefold()]
        if there:
            return CreateResult(there[0], created=False, refresh=None)
        try:
            return self.create_stream_table(name, query, **options)
        except AlreadyExists:
            # Somebody was faster, or a source has that name; the second is still an error.
            return CreateResult(self._catalog.get_stream_table(name), created=False, refresh=None)

    def drop_stream_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> DropResult:
        return self._writing.definitions.drop(name, if_exists=if_exists, cascade=cascade)

    def refresh_stream_table(
        self, name: str, *, full: bool = False, initiated_by: Initiator = Initiator.MANUAL
    ) -> RefreshRecord:
        core = self._writing
        table = self._catalog.get_stream_table(name)
        self._host.start()
        return core.refresher.refresh(table, asked_full=full, initiated_by=initiated_by)

    def refresh_all(self) -> tuple[RefreshRecord, ...]:
        """Every stream table, upstream ones first."""
        return tuple(self.refresh_stream_table(table.name) for table in self._upstream_first())

    def _upstream_first(self) -> tuple[StreamTable, ...]:
        tables = {table.name.casefold(): table for table in self._catalog.stream_tables()}
        ordered: dict[str, StreamTable] = {}

        def visit(key: str) -> None:
            if key in tables and key not in ordered:
                for source in tables[key].sources:
                    visit(source.casefold())
                ordered[key] = tables[key]

        for key in tables:
            visit(key)
        return tuple(ordered.values())

    def pause_stream_table(self, name: str) -> StreamTableStatus:
        return self._set_paused(name, paused=True)

    def resume_stream_table(self, name: str) -> StreamTableStatus:
        return self._set_paused(name, paused=False)

    def _set_paused(self, name: str, *, paused: bool) -> StreamTableStatus:
        core = self._writing
        table = self._catalog.get_stream_table(name)
        self._catalog.change_progress(table.id, lambda now: replace(now, paused=paused))
        core.scheduler.wake()
        return self.status(name)

    def cancel_refresh(self, name: str) -> bool:
        return self._writing.refresher.cancel(self._catalog.get_stream_table(name))

    def verify(self, name: str) -> VerifyResult:
        table = self._catalog.get_stream_table(name)
        self._host.start()
        self._host.wait_ready()
        result = self._core.verify(table)
        if not self.read_only:
            at = self._clock.now()
            self._catalog.change_progress(
                table.id, lambda now: replace(now, verified_at=at, verified_equal=result.equal)
            )
        return result

    def repair(self) -> RepairResult:
        """Brings back from the stream tables' own tables what the catalog lost, and what those tables lack."""
        return self._writing.repairs.all()

    def repair_stream_table(self, name: str) -> RepairResult:
        return self._writing.repairs.one(name)

    @property
    def _explainer(self) -> Explainer:
        self._host.start()
        self._host.wait_ready()
        return self._core.explainer

    def preview(self, name: str, limit: int = 200) -> pa.Table:
        """Some rows of a stream table, as its readers see them."""
        if limit < 1:
            raise InvalidArgument(f"a limit of {limit} rows shows nothing")
        table = self._catalog.get_stream_table(name)
        self._host.start()
        self._host.wait_ready()
        return self._core.preview(table, limit)

    # ---------------------------------------------------------------- sources

    def add_source(
        self,
        name: str,
        path: str | Path,
        *,
        format: str = "delta",
        cdc_mode: str = "auto",
        key: tuple[str, ...] = (),
        enable_cdf: bool | None = None,
    ) -> SourceStatus:
        core = self._writing
        if core.sources.may_enable(enable_cdf):
            self._host.start()
        return core.sources.add(
            name, str(path), format=format, cdc_mode=cdc_mode, key=tuple(key), enable_cdf=enable_cdf
        )

    def enable_change_feed(self, name: str) -> SourceStatus:
        """Switches the Change Data Feed of a source on: its writers then record what they change."""
        self._host.start()
        return self._writing.sources.enable_change_feed(name)

    def drop_source(self, name: str, *, if_exists: bool = False) -> bool:
        return self._writing.sources.drop(name, if_exists=if_exists)

    # ---------------------------------------------------------------- views

    def create_view(self, name: str, query: str, *, or_replace: bool = False) -> ViewResult:
        """Stream tables that read a view with another text are rebuilt at their next refresh."""
        self._host.start()
        made = self._writing.views.create(name, query, or_replace=or_replace)
        self._core.scheduler.wake()
        return made

    def drop_view(self, name: str, *, if_exists: bool = False) -> bool:
        return self._writing.views.drop(name, if_exists=if_exists)

    def views(self) -> tuple[View, ...]:
        return self._catalog.views()

    # ---------------------------------------------------------------- SQL

    def sql(self, text: str) -> SqlResult:
        """One statement."""
        from engine.sql import run_statement

        return run_statement(self, text)

    def sql_script(self, text: str) -> tuple[SqlResult, ...]:
        """Statement after statement; the first that fails ends it, and names its place in the script."""
        from engine.sql import run_script

        return run_script(self, text)

    def select(self, text: str) -> pa.Table:
        """A query over sources and stream tables as they are now."""
        self._host.start()
        self._host.wait_ready()
        return self._core.select(text)

    def change_source(self, text: str) -> int:
        """DML on a source; the version it made."""
        core = self._writing
        self._host.start()
        self._host.wait_ready()
        version = core.change_source(text)
        core.scheduler.wake()
        return version


def _installed(package: str) -> str:
    # imported here: it is slow to load, and the dashboard's first picture does not need it
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
