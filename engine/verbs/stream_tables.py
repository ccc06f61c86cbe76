"""The verbs of stream tables: create, drop, refresh, pause, verify, repair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import AlreadyExists, InvalidArgument
from engine.records import EventKind, Initiator, RefreshRecord, Severity, StreamTable, StreamTableStatus
from engine.results import CreateResult, DropResult, RepairResult, VerifyResult
from engine.verbs.looking import LookingVerbs

if TYPE_CHECKING:
    import pyarrow as pa


class StreamTableVerbs(LookingVerbs):
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
        before = self._catalog.get_progress(table.id)
        if paused:
            self._catalog.change_progress(table.id, lambda now: replace(now, paused=True))
        else:
            # who says go on has looked: what failed before does not count any more
            self._catalog.change_progress(
                table.id, lambda now: replace(now, paused=False, suspended_at=None, consecutive_errors=0)
            )
        if not paused and (before.paused or before.suspended_at is not None):
            self._events.publish(EventKind.RESUMED, table.name, "goes on", Severity.OK)
        core.scheduler.wake()
        return self.status(name)

    def cancel_refresh(self, name: str) -> bool:
        return self._writing.refresher.cancel(self._catalog.get_stream_table(name))

    def verify(self, name: str) -> VerifyResult:
        table = self._catalog.get_stream_table(name)
        result = self._ready().verify(table)
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

    def preview(self, name: str, limit: int = 200) -> pa.Table:
        """Some rows of a stream table, as its readers see them."""
        if limit < 1:
            raise InvalidArgument(f"a limit of {limit} rows shows nothing")
        table = self._catalog.get_stream_table(name)
        return self._ready().preview(table, limit)
