"""Creating and dropping stream tables. What fails leaves nothing behind."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.algebra.trees import columns_by_leaf
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.bind import Change, bind
from engine.compile.places import in_views, view_name
from engine.compile.plan import MaintenancePlan
from engine.compile.render import render
from engine.compile.steps import in_steps
from engine.durations import format_duration, parse_duration
from engine.errors import (
    AlreadyExists,
    CommitConflict,
    CycleDetected,
    DependentsExist,
    InvalidArgument,
    NotFound,
    NotPopulated,
    RefreshOvertaken,
    UnsupportedOperator,
    VolatileFunction,
)
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import tables
from engine.names import check_name
from engine.observe.history import History
from engine.records import (
    CdcMode,
    EventKind,
    Initiator,
    Notice,
    ReasonCode,
    RefreshMode,
    RefreshRecord,
    Severity,
    StreamTable,
)
from engine.refresh import carried
from engine.refresh.observe import without_changes
from engine.refresh.plans import Located, Plans
from engine.refresh.run import Refresher
from engine.refresh.sources import Sources, refuse_while_views_read
from engine.results import CreateResult, DropResult

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.compute import Compute

CALCULATED = "calculated"


class Definitions:
    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        plans: Plans,
        sources: Sources,
        refresher: Refresher,
        history: History,
        events: EventBus,
        settings: Settings,
        clock: Clock,
        warehouse: Path,
    ) -> None:
        self._catalog = catalog
        self._compute = compute
        self._plans = plans
        self._sources = sources
        self._refresher = refresher
        self._history = history
        self._events = events
        self._settings = settings
        self._clock = clock
        self._warehouse = warehouse

    # ---------------------------------------------------------------- create

    def create(
        self,
        name: str,
        query: str,
        *,
        schedule: str,
        refresh_mode: str,
        initialize: bool,
        append_only: bool,
        comment: str,
        enable_cdf: bool | None,
        dialect: str | None = None,
    ) -> CreateResult:
        check_name(name)
        self.finish_drops()
        self._refuse_taken(name)
        mode = mode_of(refresh_mode)
        interval_s, notices = self._interval(name, schedule)
        written = self._plans.in_spark(query, dialect)
        self._refuse_itself(name, written.text)
        self._compute.wait_ready()
        plan = self._plans.compile_written(written, full=mode is RefreshMode.FULL)
        notices += plan.notices + self._fitting(plan, mode, enable_cdf)
        table = StreamTable(
            id=uuid.uuid4().hex,
            name=name,
            query=plan.query,
            refresh_mode=mode,
            schedule=schedule,
            interval_s=interval_s,
            path=str(self._warehouse / name),
            owner=getpass.getuser(),
            created_at=self._clock.now(),
            sources=plan.sources,
            columns=plan.visible,
            fingerprint=plan.fingerprint,
            append_only=append_only,
            full_reason=plan.full_reason,
            comment=comment,
            written=written.written,
        )
        self._clear_leftovers(table)
        undo: list[Callable[[], object]] = [lambda: tables.remove(table.path, self._warehouse)]
        try:
            self._compute.create_table(table.path, plan.columns, self.carried(table), comment)
            FAILPOINTS.reach(Failpoint.FOLDER_MADE)
            self._analyse(plan)

            def make_known() -> None:
                # what is there is of one that was dropped, by a process that died before it could forget that too
                self._history.forget(name)
                self._catalog.add_stream_table(table)
                undo.insert(0, lambda: self._catalog.drop_stream_table(table.name))
                self._events.publish(EventKind.STREAM_TABLE_CREATED, name, f"created, reads {', '.join(plan.sources)}")
                FAILPOINTS.reach(Failpoint.CATALOGUED)

            record = self._first_refresh(table, make_known) if initialize else None
            if not initialize:
                make_known()
        except (Exception, KeyboardInterrupt):
            for step in undo:
                step()
            self._plans.forget(table.id)
            self._history.forget(table.name)
            raise
        return CreateResult(table, created=True, refresh=record, notices=notices)

    def _first_refresh(self, table: StreamTable, make_known: Callable[[], None]) -> RefreshRecord:
        """Known to others no sooner than this thread has claimed it. Other processes may still be faster."""
        try:
            return self._refresher.refresh(table, asked_full=False, initiated_by=Initiator.API, once_claimed=make_known)
        except (CommitConflict, RefreshOvertaken):
            return self._refresher.refresh(table, asked_full=False, initiated_by=Initiator.API)

    def _refuse_itself(self, name: str, query: str) -> None:
        if name.casefold() in {source.casefold() for source in self._plans.parsed(query).sources}:
            raise CycleDetected(
                f"{name} would read itself", hint="a stream table reads sources, views and other stream tables"
            )

    def _refuse_taken(self, name: str) -> None:
        view = next((each.name for each in self._catalog.views() if each.name.casefold() == name.casefold()), None)
        if view is not None:
            raise AlreadyExists(f"there is a view named {view} already", hint="choose another name, or drop it first")
        try:
            there = self._plans.relations.located(name)
        except NotFound:
            return
        kind = "stream table" if there.is_stream_table else "source"
        raise AlreadyExists(
            f"there is a {kind} named {there.name} already",
            hint="choose another name, say IF NOT EXISTS, or drop it first",
        )

    def _interval(self, name: str, schedule: str) -> tuple[float, tuple[Notice, ...]]:
        if schedule.casefold() == CALCULATED:
            seconds = parse_duration(self._settings.refresh.default_schedule)
            text = f"{name} is refreshed every {format_duration(seconds)}"
            return seconds, (Notice(text, "that is refresh.default_schedule; WITH (schedule = '…') sets its own"),)
        seconds = parse_duration(schedule)
        least = parse_duration(self._settings.refresh.min_schedule)
        if seconds < least:
            raise InvalidArgument(
                f"a schedule of {schedule} is below the least of {format_duration(least)}",
                hint="refresh.min_schedule sets the least",
            )
        return seconds, ()

    def _fitting(self, plan: MaintenancePlan, mode: RefreshMode, enable_cdf: bool | None) -> tuple[Notice, ...]:
        """Does the query fit what was asked for? Says what AUTO makes of it."""
        reason = plan.full_reason
        notices = list(notices_of(plan, mode))
        for name in plan.sources:
            located = self._plans.relations.located(name)
            if located.is_stream_table:
                self._refuse_unpopulated(name)
            elif mode is not RefreshMode.FULL and reason is None:
                notices += self._without_feed(located, mode, enable_cdf)
        return tuple(notices)

    def _refuse_unpopulated(self, name: str) -> None:
        upstream = self._catalog.get_stream_table(name)
        if not self._catalog.get_progress(upstream.id).populated:
            raise NotPopulated(f"{name} was never populated", hint=f"`trickle refresh {name}` does it")

    def _without_feed(self, source: Located, mode: RefreshMode, enable_cdf: bool | None) -> tuple[Notice, ...]:
        if source.cdc_mode in (CdcMode.DIFF, CdcMode.POLL) or tables.cdf_enabled(source.path):
            return ()
        if self._sources.may_enable(enable_cdf):
            return (self._sources.enable(source.name, source.path),)
        if source.cdc_mode is CdcMode.CDF and mode is RefreshMode.DIFFERENTIAL:
            raise without_changes(source.name)
        return (notice_without_feed(source),)

    def _clear_leftovers(self, table: StreamTable) -> None:
        """A folder that a create left when it was killed goes; one that holds a stream table does not."""
        if not Path(table.path).exists():
            return
        try:
            filled = carried.was_ever_filled(tables.pin(table.path))
        except NotFound:
            filled = False
        if filled:
            raise AlreadyExists(
                f"the folder of {table.name} holds a stream table that the catalog does not know",
                detail=table.path,
                hint="move it away, or choose another name",
            )
        tables.remove(table.path, self._warehouse)

    def carried(self, table: StreamTable) -> dict[str, str]:
        """What the table's own folder says of it."""
        return carried.of(table, self._catalog, self._plans)

    def make_again(self, table: StreamTable) -> None:
        """The folder is gone: an empty one is put in its place."""
        self._compute.wait_ready()
        plan = self._plans.plan_of(table)
        self._compute.create_table(table.path, plan.columns, self.carried(table), table.comment)

    def _analyse(self, plan: MaintenancePlan) -> None:
        """Every maintenance statement is analysed now: a malformed one must not wait for the first change."""
        if plan.kept is None:
            return
        statements = [bind(plan.kept, dict.fromkeys(plan.sources, change)) for change in (Change.MIXED, Change.APPEND)]
        trees = [plan.kept.full, *(each.first for each in statements if each.first), *(s.change for s in statements)]
        for tree in trees:
            steps = in_steps(tree)
            for leaf, columns in columns_by_leaf(tree).items():
                self._compute.show_empty(view_name(leaf), columns)
            for step in steps.before:
                self._compute.describe(render(step.tree, in_views))
                self._compute.show_empty(view_name(step.leaf), step.tree.columns)
            self._compute.describe(render(steps.last, in_views))

    # ---------------------------------------------------------------- drop

    def drop(self, name: str, *, if_exists: bool, cascade: bool) -> DropResult:
        try:
            table = self._catalog.get_stream_table(name)
        except NotFound:
            if if_exists:
                return DropResult((), (Notice(f"there is no stream table {name}, nothing to drop"),))
            raise
        dependents = self._catalog.dependents(table.name)
        if dependents and not cascade:
            raise DependentsExist(
                f"{table.name} is read by {', '.join(dependents)}", hint="CASCADE drops these too", detail=None
            )
        for each in (table.name, *self._downstream(table.name)):
            refuse_while_views_read(self._catalog, self._settings, each)
        dropped: list[str] = []
        for dependent in dependents:
            dropped += self.drop(dependent, if_exists=True, cascade=True).dropped
        self._refresher.cancel(table)
        self.finish_drops()
        self._catalog.drop_stream_table(table.name, last=lambda: self._set_aside(table))
        FAILPOINTS.reach(Failpoint.FORGOTTEN)
        self._plans.forget(table.id)
        self._refresher.observer.forget(table)
        self.finish_drops()
        FAILPOINTS.reach(Failpoint.REMOVED)
        self._history.forget(table.name)
        self._events.publish(EventKind.STREAM_TABLE_DROPPED, table.name, "dropped", Severity.OK)
        return DropResult((*dropped, table.name))

    def _downstream(self, name: str) -> Iterator[str]:
        """All that a cascade takes with it."""
        for dependent in self._catalog.dependents(name):
            yield dependent
            yield from self._downstream(dependent)

    def _set_aside(self, table: StreamTable) -> None:
        tables.set_aside(table.path, self._warehouse, table.id)
        FAILPOINTS.reach(Failpoint.SET_ASIDE)

    def finish_drops(self) -> tuple[str, ...]:
        """Whoever dropped a stream table may have died before it was forgotten, or before its folder was gone.

        The catalog decides: what it still knows was not dropped, and comes back. Gives the names of those.
        """
        if not tables.set_aside_in(self._warehouse):
            return ()
        with self._catalog.without_other_writers():
            aside = tables.set_aside_in(self._warehouse)
            undropped = [table for table in self._catalog.stream_tables() if table.id in aside]
            for table in undropped:
                aside.pop(table.id).rename(table.path)
        for folder in aside.values():
            tables.clear(folder)
        return tuple(table.name for table in undropped)


def notice_without_feed(source: Located) -> Notice:
    """What it means that nobody records the changes of a source."""
    if source.cdc_mode is CdcMode.CDF:
        text = f"{source.name} does not record its changes, so each change of it means recomputing everything"
        return Notice(text, "say --enable-cdf, or set sources.enable_cdf = 'always'")
    text = f"{source.name} does not record its changes: they are told by the files that its commits add and remove"
    return Notice(text, "where rows are updated or deleted, its Change Data Feed is cheaper to read: --enable-cdf")


def notices_of(plan: MaintenancePlan, mode: RefreshMode) -> tuple[Notice, ...]:
    """What AUTO makes of a query that can only be recomputed. DIFFERENTIAL refuses it."""
    reason = plan.full_reason
    if mode is RefreshMode.DIFFERENTIAL and reason is not None:
        kind = VolatileFunction if reason.code is ReasonCode.STABLE else UnsupportedOperator
        raise kind(
            f"refresh_mode is DIFFERENTIAL, but {reason.text}",
            position=reason.position,
            fragment=reason.fragment,
            hint="AUTO recomputes such a query each time and says so",
        )
    if mode is RefreshMode.AUTO and reason is not None and reason.code is ReasonCode.UNSUPPORTED:
        place = f" ({reason.position})" if reason.position else ""
        return (Notice(f"it is recomputed at each change: {reason.text}{place}"),)
    return ()


def mode_of(text: str) -> RefreshMode:
    try:
        return RefreshMode(text.upper())
    except ValueError:
        names = ", ".join(RefreshMode)
        raise InvalidArgument(f"there is no refresh mode {text}", hint=f"one of {names}") from None
