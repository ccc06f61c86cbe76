"""Sources: adding them, saying how they are, and switching their Change Data Feed on where that is allowed."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.algebra.types import is_unknown_to_delta_rs
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.parse import Limits, parse
from engine.errors import DependentsExist, InvalidArgument, NotFound, TrickleError
from engine.events import EventBus
from engine.lake import tables
from engine.lake.heads import HeadReader
from engine.names import check_name
from engine.records import CdcMode, EnableCdf, EventKind, Notice, Source, SourceStatus
from engine.refresh.observe import without_changes

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.compute import Compute


class Sources:
    def __init__(self, catalog: Catalog, compute: Compute, events: EventBus, settings: Settings, clock: Clock) -> None:
        self._catalog = catalog
        self._compute = compute
        self._events = events
        self._settings = settings
        self._clock = clock
        self._heads = HeadReader()

    def add(
        self, name: str, path: str, *, format: str, cdc_mode: str, key: tuple[str, ...], enable_cdf: bool | None
    ) -> SourceStatus:
        check_name(name)
        if format.lower() != "delta":
            raise InvalidArgument(
                f"sources of format {format} are not supported yet", hint="store them as a Delta table"
            )
        mode = _cdc_mode(cdc_mode)
        where = path if "://" in path else str(Path(path).expanduser().resolve())
        columns = tables.columns(where)  # refuses what is no Delta table
        for column in columns:
            if is_unknown_to_delta_rs(column.type):
                raise InvalidArgument(
                    f"{name} cannot be a source",
                    detail=f"its column {column.name} is of type {column.type}, with which delta-rs opens no table",
                    hint="offer a copy without this column, or with a text in its place",
                )
        unknown = [each for each in key if each.casefold() not in {column.name.casefold() for column in columns}]
        if unknown:
            raise InvalidArgument(f"{name} has no column {unknown[0]} that could be a key")
        self._make_changes_readable(name, where, mode, enable_cdf)
        source = Source(name, where, "delta", mode, key, self._clock.now(), getpass.getuser())
        self._catalog.add_source(source)
        self._events.publish(EventKind.SOURCE_ADDED, name, f"source {name} at {where}")
        return self.status(source)

    def _make_changes_readable(self, name: str, path: str, mode: CdcMode, enable_cdf: bool | None) -> None:
        if mode in (CdcMode.DIFF, CdcMode.POLL) or tables.cdf_enabled(path):
            return
        if self.may_enable(enable_cdf):
            self._compute.wait_ready()
            self._compute.enable_cdf(path)
            self._events.publish(
                EventKind.CDC_MODE_CHANGED, name, "Trickle switched the Change Data Feed on; it stays on"
            )
        elif mode is CdcMode.CDF:
            raise without_changes(name)

    def may_enable(self, asked: bool | None) -> bool:
        """May Trickle switch a Change Data Feed on? `ask` without anybody to ask means no."""
        return asked if asked is not None else EnableCdf(self._settings.sources.enable_cdf) is EnableCdf.ALWAYS

    def enable_change_feed(self, name: str) -> SourceStatus:
        """Its owner's word that Trickle may write to it: from its next commit on its changes are recorded."""
        source = self._catalog.get_source(name)
        if not tables.cdf_enabled(source.path):
            self._compute.wait_ready()
            self.enable(source.name, source.path)
        return self.status(source)

    def enable(self, name: str, path: str) -> Notice:
        self._compute.enable_cdf(path)
        text = f"the Change Data Feed of {name} was switched on"
        self._events.publish(EventKind.CDC_MODE_CHANGED, name, text)
        return Notice(text, "it costs writers that update and delete a little, and stays on when Trickle leaves")

    def statuses(self) -> tuple[SourceStatus, ...]:
        return tuple(self.status(source) for source in self._catalog.sources())

    def status(self, source: Source) -> SourceStatus:
        dependents = self._catalog.dependents(source.name)
        try:
            head = self._heads.head(source.path)
            return SourceStatus(
                source, head.version, tables.cdf_enabled(source.path), tables.columns(source.path), dependents
            )
        except TrickleError as error:
            return SourceStatus(source, None, False, (), dependents, str(error))

    def drop(self, name: str, *, if_exists: bool = False) -> bool:
        try:
            source = self._catalog.get_source(name)
        except NotFound:
            if if_exists:
                return False
            raise
        dependents = self._catalog.dependents(source.name)
        if dependents:
            raise DependentsExist(
                f"{source.name} is read by {', '.join(dependents)}",
                hint="drop these first; the source's own table is never touched",
            )
        refuse_while_views_read(self._catalog, self._settings, source.name)
        self._catalog.drop_source(source.name)
        self._events.publish(EventKind.SOURCE_DROPPED, source.name, f"source {source.name} is no longer known")
        return True


def refuse_while_views_read(catalog: Catalog, settings: Settings, name: str) -> None:
    """A view of what is gone would say nothing any more."""
    limits = Limits.of(settings.compile)
    reading = views_naming(catalog, limits, name)
    if reading:
        raise DependentsExist(
            f"{name} is read by the view{'s' if len(reading) > 1 else ''} {', '.join(reading)}",
            hint="drop these first: DROP VIEW, or trickle view drop",
        )


def views_naming(catalog: Catalog, limits: Limits, name: str) -> tuple[str, ...]:
    """The views whose own text names a relation or another view."""
    views = catalog.views()
    return tuple(
        view.name
        for view in views
        if name.casefold() in {each.casefold() for each in parse(view.query, limits, views, (name,)).named}
    )


def _cdc_mode(text: str) -> CdcMode:
    try:
        mode = CdcMode(text.lower())
    except ValueError:
        raise InvalidArgument(f"there is no cdc mode {text}", hint=f"one of {', '.join(CdcMode)}") from None
    if mode is CdcMode.POLL:
        raise InvalidArgument(f"the cdc mode {mode} is not supported yet", hint="auto, cdf or diff")
    return mode
