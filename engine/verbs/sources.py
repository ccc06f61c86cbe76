"""The verbs of what stream tables read: sources and views, and SQL over all of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.records import SourceStatus, View
from engine.results import ViewResult
from engine.verbs.opened import Opened

if TYPE_CHECKING:
    import pyarrow as pa


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

    def change_source(self, text: str) -> int:
        """DML on a source; the version it made."""
        core = self._writing
        self._host.start()
        self._host.wait_ready()
        version = core.change_source(text)
        core.scheduler.wake()
        return version
