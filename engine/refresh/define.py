"""Creating and dropping stream tables. What fails leaves nothing behind."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import tables
from engine.names import check_name, same_name
from engine.observe.history import History
from engine.records import CdcMode, Initiator, Notice, ReasonCode, RefreshMode, RefreshRecord, StreamTable, View
from engine.refresh import carried, fit, immediate, rename
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
        differential_max_change_ratio: float | None = None,
        partition_by: Sequence[str] = (),
    ) -> CreateResult:
        check_name(name)
        self.finish_drops()
        # a history that has not followed its stream table to its new name would be taken for the new one's
        rename.finish(self._catalog, self._history)
        self.refuse_taken(name)
        mode = mode_of(refresh_mode)
        refuse_no_share(differential_max_change_ratio)
        fit.refuse_together(mode, append_only=append_only)  # before anybody waits for Spark
        interval_s, notices = self.interval_of(name, schedule, mode)
        written = self._plans.in_spark(query, dialect)
        self.refuse_itself(name, written.text)
        self._compute.wait_ready()
        plan = self._plans.compile_written(written, full=mode is RefreshMode.FULL)
        table = StreamTable(
            id=uuid.uuid4().hex,
            name=name,
            query=plan.query,
            refresh_mode=mode,
            schedule=schedule,
            interval_s=interval_s,
            path=self._place_of(name),
            owner=getpass.getuser(),
            created_at=self._clock.now(),
            sources=plan.sources,
            columns=plan.visible,
            fingerprint=plan.fingerprint,
            append_only=append_only,
            differential_max_change_ratio=differential_max_change_ratio,
            full_reason=plan.full_reason,
            comment=comment,
            written=written.written,
            known_columns=self._plans.relations.types(plan.sources),
            partition_by=tuple(partition_by),
        )
        table = self.fitted(table, plan)
        notices += plan.notices + self.fitting(plan, mode, enable_cdf)
        self._clear_leftovers(table)
        undo: list[Callable[[], object]] = [lambda: tables.remove(table.path, self._warehouse)]
        try:
            self._compute.create_table(table.path, plan.columns, self.carried(table), comment, table.partition_by)
            FAILPOINTS.reach(Failpoint.FOLDER_MADE)
            self.analyse(plan)

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

    def refuse_itself(self, name: str, query: str) -> None:
        if name.casefold() in {source.casefold() for source in self._plans.parsed(query).sources}:
            raise CycleDetected(
                f"{name} would read itself", hint="a stream table reads sources, views and other stream tables"
            )

    def refuse_taken(self, name: str) -> None:
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

    def interval_of(self, name: str, schedule: str, mode: RefreshMode) -> tuple[float, tuple[Notice, ...]]:
        """What is IMMEDIATE is looked at so often besides, in case that nobody told of a change."""
        if schedule.casefold() == CALCULATED:
            seconds = parse_duration(self._settings.refresh.default_schedule)
            if mode is RefreshMode.IMMEDIATE:
                return seconds, ()
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

    def fitting(self, plan: MaintenancePlan, mode: RefreshMode, enable_cdf: bool | None) -> tuple[Notice, ...]:
        """What AUTO makes of a query, and how its sources tell their changes, which may be arranged here."""
        notices = list(notices_of(plan, mode))
        for name in plan.sources:
            located = self._plans.relations.located(name)
            if not located.is_stream_table and mode is not RefreshMode.FULL and plan.full_reason is None:
                notices += self._without_feed(located, mode, enable_cdf)
        return tuple(notices)

    def fitted(self, table: StreamTable, plan: MaintenancePlan, views: tuple[View, ...] | None = None) -> StreamTable:
        """With its options as a query spells them that it has from now on. Refuses what does not go together.

        Whoever brings a query or an option asks here; also who gives a view another text: `views` as they would be.
        """
        fit.refuse_together(table.refresh_mode, append_only=table.append_only)
        self._refuse_circle(table)
        if table.append_only:
            fit.refuse_append_only(plan)
        partitions = fit.partition_columns(table.partition_by, plan.visible)
        notices_of(plan, table.refresh_mode)
        if table.refresh_mode is RefreshMode.IMMEDIATE:
            top_k_limit = self._settings.refresh.immediate_top_k_limit
            immediate.refuse_unfit(plan, self._plans, self._catalog.stream_tables(), top_k_limit, views)
        for name in plan.sources:
            if self._plans.relations.located(name).is_stream_table:
                self._refuse_unpopulated(name)
        return replace(table, partition_by=partitions)

    def _refuse_circle(self, after: StreamTable) -> None:
        for path in self._upstream(after.sources, (after.name,)):
            if same_name(path[-1], after.name):
                raise CycleDetected(
                    f"{after.name} would read itself",
                    detail=" → ".join(reversed(path)),
                    hint="a stream table cannot depend on what it is made of",
                )

    def _upstream(self, names: tuple[str, ...], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        known = {table.name.casefold(): table for table in self._catalog.stream_tables()}
        for name in names:
            yield (*path, name)
            table = known.get(name.casefold())
            if table is not None and not any(same_name(each, name) for each in path):
                yield from self._upstream(table.sources, (*path, name))

    def _refuse_unpopulated(self, name: str) -> None:
        upstream = self._catalog.get_stream_table(name)
        if not self._catalog.get_progress(upstream.id).populated:
            raise NotPopulated(f"{name} was never populated", hint=f"`trickle refresh {name}` does it")

    def _without_feed(self, source: Located, mode: RefreshMode, enable_cdf: bool | None) -> tuple[Notice, ...]:
        if source.cdc_mode in (CdcMode.DIFF, CdcMode.POLL) or tables.cdf_enabled(source.path):
            return ()
        if self._sources.may_enable(enable_cdf):
            return (self._sources.enable(source.name, source.path),)
        if source.cdc_mode is CdcMode.CDF and mode.is_strict:
            raise without_changes(source.name)
        return (notice_without_feed(source),)

    def _place_of(self, name: str) -> str:
        """One that was renamed keeps its folder, which has the name that is free again."""
        folder = self._warehouse / name
        taken = {each.path for each in self._catalog.stream_tables()}
        return str(folder if str(folder) not in taken else folder.with_name(f"{name}-{uuid.uuid4().hex[:8]}"))

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
        self._compute.create_table(table.path, plan.columns, self.carried(table), table.comment, table.partition_by)

    def analyse(self, plan: MaintenancePlan) -> None:
        """Every maintenance statement is analysed now: a malformed one must not wait for the first change."""
        if plan.kept is None:
            return
        statements = [bind(plan.kept, dict.fromkeys(plan.sources, change)) for change in (Change.MIXED, Change.APPEND)]
        trees = [plan.kept.full, *(tree for each in statements for tree in each.trees)]
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
    """What AUTO makes of a query that can only be recomputed. DIFFERENTIAL and IMMEDIATE refuse it."""
    reason = plan.full_reason
    if mode.is_strict and reason is not None:
        kind = VolatileFunction if reason.code is ReasonCode.STABLE else UnsupportedOperator
        raise kind(
            f"refresh_mode is {mode}, but {reason.text}",
            position=reason.position,
            fragment=reason.fragment,
            hint="AUTO recomputes such a query each time and says so",
        )
    if mode is RefreshMode.AUTO and reason is not None and reason.code is ReasonCode.UNSUPPORTED:
        place = f" ({reason.position})" if reason.position else ""
        return (Notice(f"it is recomputed at each change: {reason.text}{place}"),)
    return ()


def refuse_no_share(ratio: float | None) -> None:
    if ratio is not None and not 0 <= ratio <= 1:
        raise InvalidArgument(
            f"differential_max_change_ratio cannot be {ratio}", hint="give a share from 0 to 1, such as 0.2"
        )


def mode_of(text: str) -> RefreshMode:
    try:
        return RefreshMode(text.upper())
    except ValueError:
        names = ", ".join(RefreshMode)
        raise InvalidArgument(f"there is no refresh mode {text}", hint=f"one of {names}") from None
