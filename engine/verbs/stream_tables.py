"""The verbs of stream tables: create, drop, refresh, pause, verify, repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from engine.asked import Alteration
from engine.durations import parse_duration
from engine.errors import AlreadyExists, InvalidArgument, RefreshSkipped, TrickleError
from engine.event_records import EventKind, Severity
from engine.names import same_name
from engine.records import Initiator, RefreshRecord, StreamTable, StreamTableStatus
from engine.refresh import graph
from engine.results import AlterResult, CreateResult, DropResult, Maintenance, RepairResult, VerifyResult
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
        differential_max_change_ratio: float | Literal["default"] | None = None,
        partition_by: Sequence[str] = (),
    ) -> CreateResult:
        self._host.start()
        ratio = differential_max_change_ratio
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
            differential_max_change_ratio=None if ratio == "default" else ratio,
            partition_by=_listed(partition_by),
        )
        self._core.scheduler.wake()
        return result

    def create_stream_table_if_not_exists(self, name: str, query: str, **options: Any) -> CreateResult:
        there = self._find(name)
        if there is not None:
            return CreateResult(there, created=False, refresh=None)
        try:
            return self.create_stream_table(name, query, **options)
        except AlreadyExists:
            # Somebody was faster, or a source has that name; the second is still an error.
            return CreateResult(self._catalog.get_stream_table(name), created=False, refresh=None)

    def _find(self, name: str) -> StreamTable | None:
        return next((table for table in self._catalog.stream_tables() if same_name(table.name, name)), None)

    def alter_stream_table(
        self,
        name: str,
        *,
        query: str | None = None,
        dialect: str | None = None,
        schedule: str | None = None,
        refresh_mode: str | None = None,
        append_only: bool | None = None,
        comment: str | None = None,
        enable_cdf: bool | None = None,
        differential_max_change_ratio: float | Literal["default"] | None = None,
        partition_by: Sequence[str] | None = None,
    ) -> AlterResult:
        """What is not given stays as it is. Another query, or other partitions, write all rows anew, in one commit."""
        partitions = None if partition_by is None else _listed(partition_by)
        asked = Alteration(query, dialect, schedule, refresh_mode, append_only, comment, enable_cdf)
        asked = replace(asked, differential_max_change_ratio=differential_max_change_ratio, partition_by=partitions)
        core = self._writing
        if query is not None or refresh_mode is not None or partitions is not None:
            self._ready()
        result = core.alterations.alter(name, asked)
        core.scheduler.wake()
        return result

    def create_or_replace_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        append_only: bool = False,
        comment: str = "",
        initialize: bool = True,
        enable_cdf: bool | None = None,
        dialect: str | None = None,
        differential_max_change_ratio: float | Literal["default"] | None = None,
        partition_by: Sequence[str] = (),
    ) -> CreateResult | AlterResult:
        """Creates it, or makes of what is there what is said here: nothing, settings, or another query."""
        said: dict[str, Any] = {
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "append_only": append_only,
            "comment": comment,
            "enable_cdf": enable_cdf,
            "dialect": dialect,
            "differential_max_change_ratio": differential_max_change_ratio,
            "partition_by": partition_by,
        }
        if self._find(name) is not None:
            # what is not said here is not as it was, but as if it had never been said
            ratio = "default" if differential_max_change_ratio is None else differential_max_change_ratio
            return self.alter_stream_table(name, query=query, **said | {"differential_max_change_ratio": ratio})
        return self.create_stream_table(name, query, initialize=initialize, **said)

    def drop_stream_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> DropResult:
        return self._writing.definitions.drop(name, if_exists=if_exists, cascade=cascade)

    def refresh_stream_table(
        self, name: str, *, full: bool = False, initiated_by: Initiator = Initiator.MANUAL
    ) -> RefreshRecord:
        core = self._writing
        table = self._catalog.get_stream_table(name)
        self._host.start()
        return core.refresher.refresh(table, asked_full=full, initiated_by=initiated_by)

    def reinitialize_stream_table(self, name: str) -> RefreshRecord:
        """Computes all rows anew, and believes nothing that is known of what is stored."""
        core = self._writing
        table = self._catalog.get_stream_table(name)
        self._host.start()
        return core.refresher.refresh(table, asked_full=True, initiated_by=Initiator.MANUAL, reinitialize=True)

    def refresh_if_stale(self, name: str, max_age: str | float) -> RefreshRecord | None:
        """Refreshes it if its rows are known to be right for no later moment than `max_age` ago, '5m' or in seconds.

        None where they are younger.
        """
        age_s = parse_duration(max_age) if isinstance(max_age, str) else float(max_age)
        table = self._catalog.get_stream_table(name)
        at = self._catalog.get_progress(table.id).data_as_of_at
        if at is not None and (self._clock.now() - at).total_seconds() <= age_s:
            return None
        return self.refresh_stream_table(name)

    def refresh_all(self) -> tuple[RefreshRecord, ...]:
        """Every stream table, upstream ones first. One that fails keeps no other from its turn.

        What failed is among the records; what somebody else refreshes at this moment is not.
        """
        records: list[RefreshRecord] = []
        for table in graph.upstream_first(self._catalog.stream_tables()):
            began_at = self._clock.now()
            try:
                records.append(self.refresh_stream_table(table.name))
            except RefreshSkipped:
                continue
            except TrickleError:
                last = self._history.last(table.name)
                if not last or last[0].started_at < began_at:
                    raise  # nothing recorded it
                records.append(last[0])
        return tuple(records)

    def bulk_create(self, definitions: Sequence[Mapping[str, Any]]) -> tuple[CreateResult, ...]:
        """All of them or none, in the order of their dependencies; each is the arguments of `create_stream_table`."""
        from engine.refresh.bulk import bulk_create

        core = self._writing
        return bulk_create(definitions, self.create_stream_table, core.plans, core.definitions)

    def rename_stream_table(self, name: str, new_name: str) -> StreamTable:
        """Its folder stays where it is, and so do its rows."""
        return self._writing.renames.rename(name, new_name)

    def export_definition(self, name: str) -> str:
        """The statement that makes it again."""
        from engine.refresh.export import statement

        return statement(self._catalog.get_stream_table(name))

    def maintain_stream_table(self, name: str) -> Maintenance:
        """Puts its files in order now: small ones together, a checkpoint of its log, what is long gone removed."""
        return self._writing.maintainer.now(self._catalog.get_stream_table(name))

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


def _listed(columns: Sequence[str]) -> tuple[str, ...]:
    """One column may come by its name alone."""
    return (columns,) if isinstance(columns, str) else tuple(columns)
