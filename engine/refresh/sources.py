"""Sources: adding them, saying how they are, and switching their Change Data Feed on where that is allowed."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.algebra.types import is_unknown_to_delta_rs
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.parse import Limits, parse
from engine.errors import (
    AlreadyExists,
    DependentsExist,
    InvalidArgument,
    NotFound,
    RefreshFailed,
    SourceDropped,
    TrickleError,
)
from engine.event_records import EventKind
from engine.events import EventBus
from engine.lake import polled, tables
from engine.lake.heads import HeadReader
from engine.lake.turns import Turns
from engine.names import check_name
from engine.records import CdcMode, Column, EnableCdf, Notice, Polled, Source, SourceStatus
from engine.refresh.observe import without_changes

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.compute import Compute


class Sources:
    def __init__(
        self, catalog: Catalog, compute: Compute, events: EventBus, settings: Settings, clock: Clock, turns: Turns
    ) -> None:
        self._catalog = catalog
        self._compute = compute
        self._events = events
        self._settings = settings
        self._clock = clock
        self._turns = turns
        self._heads = HeadReader()
        #: where the copies lie of what is polled
        self._copies = catalog.path.parent / "polled"

    def add(
        self,
        name: str,
        path: str,
        *,
        format: str,
        cdc_mode: str,
        key: tuple[str, ...],
        enable_cdf: bool | None,
        options: Mapping[str, str] | None = None,
    ) -> SourceStatus:
        check_name(name)
        mode = _cdc_mode(cdc_mode)
        if format.lower() != "delta":
            return self._add_polled(name, _place(format.lower(), path, options or {}), mode, key)
        if mode is CdcMode.POLL or options:
            raise InvalidArgument(
                f"{name} is a Delta table, which is not polled and has no options",
                hint="its changes stand in its log: leave --cdc poll and the options out",
            )
        where = _resolved(path)
        columns = tables.columns(where)  # refuses what is no Delta table
        for column in columns:
            if is_unknown_to_delta_rs(column.type):
                raise InvalidArgument(
                    f"{name} cannot be a source",
                    detail=f"its column {column.name} is of type {column.type}, with which delta-rs opens no table",
                    hint="offer a copy without this column, or with a text in its place",
                )
        _refuse_unknown_key(name, key, columns)
        self._make_changes_readable(name, where, mode, enable_cdf)
        source = Source(name, where, "delta", mode, key, self._clock.now(), getpass.getuser())
        self._catalog.add_source(source)
        self._events.publish(EventKind.SOURCE_ADDED, name, f"source {name} at {where}")
        return self.status(source)

    def _add_polled(self, name: str, place: Polled, mode: CdcMode, key: tuple[str, ...]) -> SourceStatus:
        """A copy of it is kept, which is a source like any other."""
        if mode not in (CdcMode.AUTO, CdcMode.POLL):
            raise InvalidArgument(
                f"{name} is of format {place.format} and can only be polled",
                hint=f"leave --cdc {mode} out; a Delta table would have more to tell",
            )
        self._refuse_taken(name)
        try:
            polled.fingerprint(place)
        except SourceDropped as error:
            raise NotFound(error.message, hint="check the path; it names the folder or file itself") from error
        copy = str(self._copies / name)
        self._compute.wait_ready()
        try:
            self._compute.poll(copy, place)
            _refuse_unknown_key(name, key, tables.columns(copy))
            now = self._clock.now()
            source = Source(name, copy, place.format, CdcMode.POLL, key, now, getpass.getuser(), place)
            self._catalog.add_source(source)
        except RefreshFailed as error:
            tables.remove(copy, self._copies)
            raise InvalidArgument(
                f"Spark cannot read {place.place} as {place.format}",
                detail=error.detail,
                hint="check the format, its options and what lies there",
            ) from error
        except (Exception, KeyboardInterrupt):
            tables.remove(copy, self._copies)
            raise
        self._events.publish(EventKind.SOURCE_ADDED, name, f"source {name}: {place.format} at {place.place}, polled")
        return self.status(source)

    def _refuse_taken(self, name: str) -> None:
        """Before anything of another source's copy is touched."""
        if name.casefold() in {each.name.casefold() for each in self._catalog.sources()}:
            raise AlreadyExists(f"a source {name} exists already", hint=f"trickle source drop {name} forgets it")

    def _make_changes_readable(self, name: str, path: str, mode: CdcMode, enable_cdf: bool | None) -> None:
        if mode in (CdcMode.DIFF, CdcMode.POLL) or tables.cdf_enabled(path):
            return
        if self.may_enable(enable_cdf):
            self._compute.wait_ready()
            self._switch_on(path)
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
        self._switch_on(path)
        text = f"the Change Data Feed of {name} was switched on"
        self._events.publish(EventKind.CDC_MODE_CHANGED, name, text)
        return Notice(text, "it costs writers that update and delete a little, and stays on when Trickle leaves")

    def _switch_on(self, path: str) -> None:
        """In its turn: a commit between DML and its undoing would keep that DML."""
        with self._turns.taken((path,)):
            self._compute.enable_cdf(path)

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
        if source.polled is not None:
            tables.remove(source.path, self._copies)
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
    return mode


def _resolved(path: str) -> str:
    return path if "://" in path else str(Path(path).expanduser().resolve())


def _place(format: str, path: str, options: Mapping[str, str]) -> Polled:
    by_name = format in (polled.TABLE, polled.JDBC)
    return Polled(format, path if by_name else _resolved(path), dict(options))


def _refuse_unknown_key(name: str, key: tuple[str, ...], columns: tuple[Column, ...]) -> None:
    known = {column.name.casefold() for column in columns}
    unknown = next((each for each in key if each.casefold() not in known), None)
    if unknown is not None:
        raise InvalidArgument(f"{name} has no column {unknown} that could be a key")
