"""The verbs of what stream tables read: sources and views, and SQL over all of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from engine.records import SourceStatus, View
from engine.results import CdcStatus, ChangeBuffer, ViewResult, WriteResult
from engine.verbs.opened import Opened

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.compile.source_ddl import AlterSource


class SourceVerbs(Opened):
    def add_source(
        self,
        name: str,
        path: str | Path,
        *,
        format: str = "delta",
        cdc_mode: str = "auto",
        key: tuple[str, ...] = (),
        enable_cdf: bool | None = None,
        options: Mapping[str, str] | None = None,
    ) -> SourceStatus:
        """A Delta table; or anything else that Spark can read, of which a copy is kept: `options` are its reader's."""
        core = self._writing
        if core.sources.may_enable(enable_cdf) or format.lower() != "delta":
            self._host.start()
        return core.sources.add(
            name,
            str(path),
            format=format,
            cdc_mode=cdc_mode,
            key=tuple(key),
            enable_cdf=enable_cdf,
            options=options,
        )

    def sources(self) -> tuple[SourceStatus, ...]:
        return self._core.sources.statuses()

    def enable_change_feed(self, name: str) -> SourceStatus:
        """Switches the Change Data Feed of a source on: its writers then record what they change."""
        self._host.start()
        return self._writing.sources.enable_change_feed(name)

    def drop_source(self, name: str, *, if_exists: bool = False) -> bool:
        return self._writing.sources.drop(name, if_exists=if_exists)

    def cdc_status(self) -> tuple[CdcStatus, ...]:
        """How the changes of each source reach each stream table, how far each is behind, and for how long it may be.

        By the logs alone: Spark is not asked."""
        return self._core.cdc.statuses()

    def change_buffer_stats(self) -> tuple[ChangeBuffer, ...]:
        """What of each source waits for the slowest of its readers."""
        return self._core.cdc.buffers()

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

    def select(self, text: str) -> pa.Table:
        """A query over sources and stream tables as they are now."""
        return self._ready().select(text)

    def alter_source_table(self, statement: AlterSource) -> int:
        """ALTER TABLE on a source, unless a stream table uses what it changes; the version it made."""
        self._ready()
        return self._writing.source_ddl.alter(statement)

    def drop_source_table(self, name: str) -> NoReturn:
        """Always refused: who reads it is named, or that its folder is its owner's."""
        self._writing.source_ddl.drop(name)

    def change_source(self, text: str) -> WriteResult:
        """DML on a source. What is IMMEDIATE follows it before it returns, or it has no net effect."""
        return self._change(text, None)

    def write_and_refresh(self, text: str, name: str) -> WriteResult:
        """The same; and that stream table, of any mode, follows too, with all that lies between."""
        return self._change(text, name)

    def _change(self, text: str, also: str | None) -> WriteResult:
        core = self._writing
        self._host.start()
        self._host.wait_ready()
        try:
            return core.change_source(text, also)
        finally:
            core.scheduler.wake()
