"""Altering a stream table: its settings at once, its query together with its rows.

Another query computes all rows anew, in one commit on the table itself: readers see the old result or the new one,
never an empty table or half of one. What fails before that commit leaves everything as it was; who dies between the
definition and the commit leaves a definition that the next refresh fulfils.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from engine.asked import Alteration
from engine.catalog.store import Catalog
from engine.compile.plan import MaintenancePlan
from engine.errors import DependentsExist
from engine.event_records import EventKind
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.names import same_name
from engine.records import Column, Initiator, Notice, RefreshMode, RefreshRecord, StreamTable
from engine.refresh import fit, immediate
from engine.refresh.define import Definitions, mode_of, refuse_no_share
from engine.refresh.plans import Plans
from engine.refresh.run import Refresher
from engine.results import AlterKind, AlterResult

#: what belongs together: no part of it is right beside parts of another query
_MEANING = frozenset({"query", "sources", "columns", "fingerprint", "full_reason", "written", "known_columns"})


@dataclass(frozen=True)
class Alterations:
    catalog: Catalog
    plans: Plans
    definitions: Definitions
    refresher: Refresher
    events: EventBus

    def alter(self, name: str, asked: Alteration) -> AlterResult:
        before = self.catalog.get_stream_table(name)
        after, notices = self._with_settings(before, asked)
        fit.refuse_together(after.refresh_mode, append_only=after.append_only)  # before anybody looks at the query
        plan = None
        if asked.query is not None or after.refresh_mode is not before.refresh_mode:
            after, plan = self._with_query(before, after, asked)
            after = self.definitions.fitted(after, plan)
            notices += plan.notices + self.definitions.fitting(plan, after.refresh_mode, asked.enable_cdf)
        elif (after.append_only, after.partition_by) != (before.append_only, before.partition_by):
            after = self.definitions.fitted(after, self.plans.plan_of(before))
        if after == before:
            return AlterResult(before, AlterKind.NOTHING, "it is so already", None, notices)
        immediate.refuse_to_leave(before, after, self.catalog.stream_tables())
        kind, text = _what_changes(before, after)
        becomes_immediate = after.refresh_mode is RefreshMode.IMMEDIATE is not before.refresh_mode
        same_rows = after.fingerprint == before.fingerprint and after.partition_by == before.partition_by
        if same_rows and not becomes_immediate:
            self._write(before, after)
            record = None
        else:
            if plan is not None:
                self._refuse_missing(before, after)
                self.definitions.analyse(plan)
            record = self._rebuild(before, after)
        self.plans.forget(after.id)
        altered = self.catalog.stream_table_now(after.id)
        self.refresher.carrier.follow(altered)
        self.events.publish(EventKind.STREAM_TABLE_ALTERED, after.name, text)
        return AlterResult(altered, kind, text, record, notices)

    # ---------------------------------------------------------------- what it will be

    def _with_settings(self, table: StreamTable, asked: Alteration) -> tuple[StreamTable, tuple[Notice, ...]]:
        notices: tuple[Notice, ...] = ()
        if asked.refresh_mode is not None:
            table = replace(table, refresh_mode=mode_of(asked.refresh_mode))
        if asked.schedule is not None:
            interval_s, notices = self.definitions.interval_of(table.name, asked.schedule, table.refresh_mode)
            table = replace(table, schedule=asked.schedule, interval_s=interval_s)
        if asked.comment is not None:
            table = replace(table, comment=asked.comment)
        if asked.append_only is not None:
            table = replace(table, append_only=asked.append_only)
        if asked.partition_by is not None:
            table = replace(table, partition_by=tuple(asked.partition_by))
        if asked.differential_max_change_ratio is not None:
            ratio = asked.differential_max_change_ratio
            share = None if ratio == "default" else ratio
            refuse_no_share(share)
            table = replace(table, differential_max_change_ratio=share)
        return table, notices

    def _with_query(
        self, before: StreamTable, after: StreamTable, asked: Alteration
    ) -> tuple[StreamTable, MaintenancePlan]:
        if asked.query is None:
            query, dialect = _as_written(before)
        else:
            query, dialect = asked.query, asked.dialect
        in_spark = self.plans.in_spark(query, dialect)
        self.definitions.refuse_itself(before.name, in_spark.text)
        # what its columns are called stays as it is, unless somebody writes the query anew
        relations = self.plans.relations.as_known_to(before) if asked.query is None else self.plans.relations
        full = after.refresh_mode is RefreshMode.FULL
        plan = self.plans.compile_written(in_spark, full=full, relations=relations)
        made = replace(
            after,
            query=plan.query,
            sources=plan.sources,
            columns=plan.visible,
            fingerprint=plan.fingerprint,
            full_reason=plan.full_reason,
            written=in_spark.written,
            known_columns=before.known_columns if asked.query is None else relations.types(plan.sources),
        )
        return made, plan

    def _rebuild(self, before: StreamTable, after: StreamTable) -> RefreshRecord | None:
        """The definition counts from the moment on in which nobody here can refresh by the old one.

        What becomes IMMEDIATE is brought up to date with it, and from then on stays so.
        """
        if not self.catalog.get_progress(before.id).populated:
            self._write(before, after)
            return None

        def define() -> None:
            self._write(before, after)
            FAILPOINTS.reach(Failpoint.ALTERED)

        if self.refresher.cancel(before):
            self.refresher.wait_until_free(before)
        try:
            return self.refresher.refresh(after, asked_full=False, initiated_by=Initiator.API, once_claimed=define)
        except (Exception, KeyboardInterrupt):
            self._write(after, before)
            self.plans.forget(before.id)
            raise

    def _write(self, before: StreamTable, after: StreamTable) -> None:
        """What the two differ in, and no more: others may have changed the rest, or renamed it, meanwhile."""
        changed = {name for name in (field.name for field in fields(after)) if _differ(name, before, after)}
        if changed & _MEANING:
            changed |= _MEANING
        said = {name: getattr(after, name) for name in changed}
        self.catalog.change_stream_table(after.id, lambda now: replace(now, **said))

    # ---------------------------------------------------------------- what must hold

    def _refuse_missing(self, before: StreamTable, after: StreamTable) -> None:
        """What others read of it stays, under its name and with its type."""
        kept = {column.name.casefold(): column.type for column in after.columns}
        for name in self.catalog.dependents(before.name):
            dependent = self.catalog.get_stream_table(name)
            used = self.plans.plan_of(dependent).used_columns
            read = next((columns for source, columns in used.items() if same_name(source, before.name)), ())
            missing = [column.name for column in read if kept.get(column.name.casefold()) != column.type]
            if missing:
                raise DependentsExist(
                    f"{name} reads {', '.join(missing)} of {before.name}, which would be gone or of another type",
                    hint=f"keep such columns, or alter {name} first",
                )


def _differ(name: str, before: StreamTable, after: StreamTable) -> bool:
    return bool(getattr(before, name) != getattr(after, name))


def _as_written(table: StreamTable) -> tuple[str, str | None]:
    return (table.query, None) if table.written is None else (table.written.text, table.written.dialect)


def _what_changes(before: StreamTable, after: StreamTable) -> tuple[AlterKind, str]:
    settings = [
        f"{word} {'default' if new is None else new}"
        for word, old, new in (
            ("schedule", before.schedule, after.schedule),
            ("refresh_mode", before.refresh_mode, after.refresh_mode),
            ("append_only", before.append_only, after.append_only),
            (
                "differential_max_change_ratio",
                before.differential_max_change_ratio,
                after.differential_max_change_ratio,
            ),
            ("comment", before.comment, after.comment),
        )
        if old != new
    ]
    if after.partition_by != before.partition_by:
        settings.append(f"partitioned by {', '.join(after.partition_by) or 'nothing'}")
    if after.fingerprint == before.fingerprint:
        if after.partition_by == before.partition_by:
            return AlterKind.SETTINGS, ", ".join(settings)
        return AlterKind.REBUILD, ", ".join(["all of its files are written anew", *settings])
    had, has = _types(before.columns), _types(after.columns)
    added = [name for name in has if name not in had]
    dropped = [name for name in had if name not in has]
    same = all(had[name] == has[name] for name in had.keys() & has.keys())
    moved = [f"with {', '.join(added)}"] if added else []
    moved += [f"without {', '.join(dropped)}"] if dropped else []
    kind = AlterKind.COLUMNS if moved and same else AlterKind.REBUILD
    text = "its rows are computed anew by another query" + "".join(f", {each}" for each in moved)
    return kind, ", ".join([text, *settings])


def _types(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.name: column.type for column in columns}
