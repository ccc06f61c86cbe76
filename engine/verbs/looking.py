"""The verbs that look: at all of a workspace, at one stream table, at what happened."""

from __future__ import annotations

import platform
from collections.abc import Callable
from datetime import datetime

from engine.catalog.migrations import SCHEMA_VERSION
from engine.event_records import Event
from engine.records import Overview, RefreshRecord, SchedulerPlace, SchedulerStatus, StreamTable, StreamTableStatus
from engine.refresh.status import status_of
from engine.results import VersionInfo
from engine.verbs.opened import Opened

#: records of history that the state of a stream table is read from
REMEMBERED = 40


class LookingVerbs(Opened):
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

    def scheduler_status(self) -> SchedulerStatus:
        if self._built is not None:
            return self._built.scheduler.status()
        holder = self._lease.holder()
        if holder is None:
            return SchedulerStatus(SchedulerPlace.NOBODY)
        return SchedulerStatus(SchedulerPlace.ELSEWHERE, holder.pid)

    def stream_tables(self) -> tuple[StreamTable, ...]:
        return self._catalog.stream_tables()

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


def _installed(package: str) -> str:
    # imported here: it is slow to load, and the dashboard's first picture does not need it
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
