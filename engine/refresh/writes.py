"""DML on a source, and all that follows it before it returns:

    its turn ─ can everybody follow? ─ the DML, one commit ─ refreshes, upstream first
                                              └─ one fails: the DML is taken back, and all follow that

Taken back while nobody else has committed; otherwise the DML stays, and who could not follow it is late. Who dies in
between leaves a source that moved, which the scheduler, or the next DML, carries on: forward, never back.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from engine.catalog.store import Catalog
from engine.compile.plan import MaintenancePlan
from engine.errors import (
    ChangeKept,
    ChangeUndone,
    InvalidArgument,
    RefreshOvertaken,
    RefreshSkipped,
    TrickleError,
)
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import failures, undo
from engine.lake.turns import Turns
from engine.records import Frontier, Initiator, Notice, RefreshMode, RefreshRecord, StreamTable
from engine.refresh import graph, immediate, schema_changes
from engine.refresh.define import notices_of
from engine.refresh.ledger import Ledger
from engine.refresh.moves import since_the_frontier
from engine.refresh.observe import Target, refuse_tampered
from engine.refresh.plans import Located, Plans
from engine.refresh.run import Refresher
from engine.results import WriteResult

if TYPE_CHECKING:
    from engine.config import Settings

log = logging.getLogger(__name__)

#: other processes may be faster so often
_OVERTAKEN = 20


@dataclass(frozen=True)
class _Written:
    source: Located
    mark: str
    version: int


@dataclass(frozen=True)
class Writes:
    catalog: Catalog
    plans: Plans
    refresher: Refresher
    ledger: Ledger
    events: EventBus
    settings: Settings
    turns: Turns

    def run(self, source: Located, execute: Callable[[str], object], also: str | None = None) -> WriteResult:
        """`execute` sends the DML; its one commit must carry the text that it is given.

        Refreshed are those that are IMMEDIATE, and, where `also` is named, that one and what lies between.
        """
        with self.turns.taken(self._touched(source, also)):
            followers, held = self._followers(source, also)
            for table in followers:
                self._refuse_unready(table, source)
            head = self.refresher.observer.head(source.name, source.path).version
            written = self._executed(source, execute, head, followers)
            if written is None:
                # nothing to undo, and nothing new to follow; who is behind others' commits follows those
                done = tuple(self._refreshed(table) for table in followers)
                return WriteResult(source.name, head, done, _notices(held))
            done = self._followed(written, also)
            return WriteResult(source.name, written.version, done, _notices(held))

    # ---------------------------------------------------------------- before

    def _touched(self, source: Located, also: str | None) -> set[str]:
        """All sources below those who follow: of two changes that somebody has to follow, one comes after the other."""
        tables = self.catalog.stream_tables()
        followers, _ = self._followers(source, also)
        names = {name for follower in followers for name in graph.below(tables, follower)}
        names -= {table.name.casefold() for table in tables}
        return {source.path, *(self.plans.relations.path(name) for name in names)}

    def _followers(self, source: Located, also: str | None) -> tuple[tuple[StreamTable, ...], tuple[str, ...]]:
        """Who has to follow, upstream first; and who would have to, but is paused."""
        tables = self.catalog.stream_tables()
        standing = graph.standing_on(tables, source.name)
        asked: frozenset[str] = frozenset()
        if also is not None:
            target = self.catalog.get_stream_table(also)
            if all(table.id != target.id for table in standing):
                raise InvalidArgument(
                    f"{target.name} does not read {source.name}", hint="name a stream table that stands on it"
                )
            asked = graph.below(tables, target) | {target.name.casefold()}
        progress = self.catalog.all_progress()
        followers: list[StreamTable] = []
        held: list[StreamTable] = []
        for table in standing:
            named = table.name.casefold() in asked
            if named or table.refresh_mode is RefreshMode.IMMEDIATE:
                is_paused = not named and table.id in progress and progress[table.id].paused
                (held if is_paused else followers).append(table)
        return tuple(followers), tuple(table.name for table in held)

    def _refuse_unready(self, table: StreamTable, source: Located) -> None:
        """What is known to fail fails before anything was changed."""
        target = self.refresher.observer.target(table, self.catalog.get_progress(table.id))
        refuse_tampered(table, target)
        plan = self.plans.fitting_plan_of(table)
        if self.settings.sources.block_source_ddl and target.frontier is not None:
            self._refuse_other_columns(table, plan, target, target.frontier)
        if table.refresh_mode is RefreshMode.IMMEDIATE:
            notices_of(plan, table.refresh_mode)
            immediate.refuse_lasting(source)

    def _refuse_other_columns(
        self, table: StreamTable, plan: MaintenancePlan, target: Target, frontier: Frontier
    ) -> None:
        """Sources that somebody altered so that its next refresh will stop: each DML would be undone."""
        observer, relations = self.refresher.observer, self.plans.relations
        paths = {name: relations.path(name) for name in table.sources}
        chosen = observer.heads(paths)
        schema_changes.refuse_replaced(table, relations, chosen, frontier)
        moves = since_the_frontier(observer, relations, table, target, paths, chosen).moves
        if plan.fingerprint != table.fingerprint or any(move.schema_changed for move in moves):
            change = schema_changes.found(table, plan, self.plans, moves)
            if change is not None:
                raise change.refused(table)

    def _executed(
        self, source: Located, execute: Callable[[str], object], head: int, followers: tuple[StreamTable, ...]
    ) -> _Written | None:
        mark = uuid.uuid4().hex
        try:
            execute(undo.said(mark))
        except (Exception, KeyboardInterrupt) as error:
            # It may be there all the same, and only its answer was lost.
            version = undo.find(source.path, mark, head) if followers else None
            if version is None:
                raise
            self._raise_taken_back(_Written(source, mark, version), followers, None, error)
        version = undo.find(source.path, mark, head)
        return None if version is None else _Written(source, mark, version)

    # ---------------------------------------------------------------- the refreshes

    def _followed(self, written: _Written, also: str | None) -> tuple[RefreshRecord, ...]:
        """Also those who were created while the DML ran: who comes later reads what it wrote."""
        followers: tuple[StreamTable, ...] = ()
        failing: StreamTable | None = None
        done: list[RefreshRecord] = []
        try:
            followers, _ = self._followers(written.source, also)
            FAILPOINTS.reach(Failpoint.SOURCE_CHANGED)
            for failing in followers:
                done += self._refreshed_if_there(failing)
        except (Exception, KeyboardInterrupt) as error:
            self._raise_taken_back(written, followers, failing, error)
        return tuple(done)

    def _refreshed_if_there(self, table: StreamTable) -> tuple[RefreshRecord, ...]:
        try:
            return (self._refreshed(table),)
        except TrickleError:
            if self._is_there(table):
                raise
            return ()

    def _refreshed(self, table: StreamTable) -> RefreshRecord:
        """By a refresh that began after the change: what another one read may be older."""
        by = Initiator.IMMEDIATE if table.refresh_mode is RefreshMode.IMMEDIATE else Initiator.API
        overtaken = 0
        while True:
            self.refresher.wait_until_free(table)
            try:
                return self.refresher.refresh(table, asked_full=False, initiated_by=by)
            except RefreshSkipped:
                continue
            except RefreshOvertaken:
                overtaken += 1
                if overtaken == _OVERTAKEN or not self._is_there(table):
                    raise
                table = self.catalog.get_stream_table(table.name)

    def _is_there(self, table: StreamTable) -> bool:
        """It may have been dropped meanwhile."""
        return any(each.id == table.id for each in self.catalog.stream_tables())

    # ---------------------------------------------------------------- taking back

    def _raise_taken_back(
        self,
        written: _Written,
        followers: tuple[StreamTable, ...],
        failed: StreamTable | None,
        error: BaseException,
    ) -> NoReturn:
        found = self._taken_back(written, followers, failed, error)
        if found is error:
            raise error
        raise found from error

    def _taken_back(
        self,
        written: _Written,
        followers: tuple[StreamTable, ...],
        failed: StreamTable | None,
        error: BaseException,
    ) -> BaseException:
        """What is to be raised once the DML is gone again, or has to stay."""
        source = written.source
        what = f"refreshing {failed.name}" if failed is not None else f"changing {source.name}"
        cause = failures.typed(error, what) if isinstance(error, Exception) else None
        try:
            undo.take_back(source.path, written.version, written.mark)
        except TrickleError as refusal:
            return self._kept(written, followers, failed, cause, refusal, error)
        FAILPOINTS.reach(Failpoint.UNDONE)
        behind = [table.name for table in followers if not self._follows(table)]
        who = failed.name if failed is not None else "its sender"
        text = f"the change of {source.name} in version {written.version} was undone: {who} could not follow"
        self.events.publish(EventKind.CHANGE_UNDONE, source.name, text, Severity.WARN)
        if cause is None:
            return error
        if failed is None:
            return cause
        left = f"; {', '.join(behind)} could not follow that yet, and will" if behind else ""
        return ChangeUndone(
            f"the change of {source.name} was undone: {failed.name} could not follow it",
            detail=f"{_in_full(cause)}{left}",
            hint=cause.hint or f"`trickle pause {failed.name}` lets {source.name} go on without it",
        )

    def _kept(
        self,
        written: _Written,
        followers: tuple[StreamTable, ...],
        failed: StreamTable | None,
        cause: TrickleError | None,
        refusal: TrickleError,
        error: BaseException,
    ) -> BaseException:
        """All others follow; who cannot is late."""
        source = written.source
        kept = f"it could not be undone: {_in_full(refusal)}"
        failed_id = failed.id if failed is not None else None
        for table in followers:
            if table.id != failed_id and self._follows(table):
                continue
            text = f"{table.name} lacks the change of {source.name} in version {written.version}, and {kept}"
            self.ledger.late(table, cause if table.id == failed_id else None, text)
            self.events.publish(EventKind.LATE, table.name, text, Severity.ERROR)
        if cause is None:
            return error
        if failed is None:
            # whoever is told of a mere failure sends it again
            return ChangeKept(
                f"{source.name} keeps its change, although sending it failed",
                detail=f"{_in_full(cause)}; {kept}",
                hint="look before you send it again",
            )
        return ChangeKept(
            f"{source.name} keeps its change, which {failed.name} could not follow",
            detail=f"{_in_full(cause)}; {kept}",
            hint=f"{f'{cause.hint}; ' if cause.hint else ''}`trickle refresh {failed.name}` tries again",
        )

    def _follows(self, table: StreamTable) -> bool:
        """What fails here is recorded, and tried again by the scheduler."""
        try:
            self._refreshed(table)
        except TrickleError as error:
            log.warning("%s could not follow: %s", table.name, error)
            return not self._is_there(table)
        return True


def _notices(held: tuple[str, ...]) -> tuple[Notice, ...]:
    if not held:
        return ()
    text = f"{', '.join(held)} {'are' if len(held) > 1 else 'is'} paused and did not follow"
    return (Notice(text, f"`trickle resume {held[0]}` brings it up to date"),)


def _in_full(error: TrickleError) -> str:
    return str(error).rstrip(".") + (f": {error.detail}" if error.detail else "")
