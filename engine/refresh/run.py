"""The journey of a change, in the order in which it happens:

    version check ─ choose ─ read change ─ plan (bind, render) ─ run (Spark) ─ one conditional commit ─ bookkeeping

A refresh that fails changes nothing that can be seen. NO_DATA never asks Spark.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.algebra.nodes import Role
from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.plan import MaintenancePlan
from engine.errors import (
    CommitConflict,
    FailsOnValue,
    InternalError,
    NegativeMultiplicity,
    NotFound,
    RefreshCancelled,
    RefreshFailed,
    RefreshOvertaken,
    SourceHistoryLost,
    TrickleError,
)
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import apply, failures, tables
from engine.lake.compute import Compute
from engine.lake.heads import HeadReader
from engine.lake.stamp import Stamp
from engine.records import Frontier, Initiator, Outcome, Reason, ReasonCode, RefreshRecord, RunningRefresh, StreamTable
from engine.refresh import cost_book, frontiers, full, reading, retry, schema_changes
from engine.refresh.carried import Carrier
from engine.refresh.choose import (
    Choice,
    after_changes,
    after_reading,
    before_changes,
    changes_by_itself,
    fails_on_change,
    is_contradicted,
    weighed,
    why_full,
)
from engine.refresh.claims import NOTHING_CHANGED, Claims
from engine.refresh.frugal import frugally_if_needed
from engine.refresh.job import Job, TooLarge
from engine.refresh.ledger import Attempt, Done, Ledger, no_data, stamped_anew
from engine.refresh.moves import since_the_frontier, untold, without_change
from engine.refresh.observe import (
    Observer,
    SourceMove,
    Target,
    changes_are_gone,
    past_is_readable,
    refuse_tampered,
)
from engine.refresh.operators import operators
from engine.refresh.phases import Phases
from engine.refresh.plans import Plans
from engine.refresh.polls import Polls
from engine.refresh.priced import Priced
from engine.refresh.redefined import committed_meaning, held_to_promise, laid_out_otherwise, reinitialized
from engine.refresh.sizes import Sizes
from engine.refresh.strategies import STRATEGIES
from engine.refresh.work import pending

if TYPE_CHECKING:
    from engine.config import Settings


log = logging.getLogger(__name__)

#: so many refreshes of a process say little about the ones that come: its JVM is cold
WARM_UPS = 5


class Refresher:
    """Runs refreshes; any number at a time, but one of each stream table."""

    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        plans: Plans,
        ledger: Ledger,
        events: EventBus,
        settings: Settings,
        clock: Clock,
        lease_epoch: Callable[[], int],
    ) -> None:
        self._catalog = catalog
        self._compute = compute
        self._plans = plans
        self._ledger = ledger
        self._events = events
        self._settings = settings
        self._clock = clock
        self._lease_epoch = lease_epoch
        self.observer = Observer(catalog, HeadReader(), clock)
        self.sizes = Sizes()
        self._warmed_up = 0
        self._claims = Claims()
        self.carrier = Carrier(catalog, plans)
        self.polls = Polls(catalog, compute, settings, clock)
        self._closing = False
        self._chance = random.Random()  # noqa: S311  nobody gains by guessing how long somebody waits

    # ---------------------------------------------------------------- what others may ask

    def running(self) -> tuple[RunningRefresh, ...]:
        return self._claims.running()

    def cancel(self, table: StreamTable) -> bool:
        """Stops a running refresh; nothing of it will be seen. False when none runs."""
        refresh_id = self._claims.cancel(table)
        if refresh_id is not None:
            self._compute.cancel(refresh_id)
        return refresh_id is not None

    def wait_until_free(self, table: StreamTable) -> None:
        self._claims.wait_until_free(table)

    def undisturbed(self, table: StreamTable, doing: str) -> AbstractContextManager[None]:
        """For what else is done with a stream table, beside which no refresh of it may run."""
        return self._claims.undisturbed(table, doing)

    def close(self) -> None:
        """From now on refreshes may be cut off at any place: that is no failure of theirs, and is not recorded."""
        self._closing = True

    def refresh(
        self,
        table: StreamTable,
        *,
        asked_full: bool,
        initiated_by: Initiator,
        epoch: int | None = None,
        once_claimed: Callable[[], None] = lambda: None,
        reinitialize: bool = False,
    ) -> RefreshRecord:
        """One refresh, from the version check to the records of it. Raises what made it fail, after recording it.

        With the `epoch` of a lease it commits only while that lease is held. `once_claimed` is done when no other
        thread can refresh this stream table any more, and before anything else: what the catalog has then is what is
        refreshed, whatever `table` was. To `reinitialize` is to be asked_full, and to believe nothing of what is known.
        """
        attempt = Attempt(uuid.uuid4().hex, table, initiated_by, self._clock.now(), Phases(), epoch, reinitialize)
        with self._claims.claimed(attempt):
            once_claimed()
            table = self._catalog.stream_table_now(table.id)
            attempt = replace(attempt, table=table)
            self._claims.tell_name(table)
            if reinitialize:
                self._plans.forget(table.id)
                self.observer.forget(table)
            progress = self._catalog.get_progress(table.id)
            try:
                done = self._tried(attempt, progress, asked_full=asked_full)
                FAILPOINTS.reach(Failpoint.COMMITTED)
                if done.applied is not None and done.applied.version is not None:
                    self.observer.committed(table, done.applied.version, attempt.refresh_id)
            except Exception as error:
                if self._closing:
                    raise RefreshCancelled(f"the refresh of {table.name} was cut off", hint=NOTHING_CHANGED) from error
                failure = self._failure(error, attempt)
                self._ledger.failed(attempt, failure)
                if isinstance(failure, NegativeMultiplicity):
                    self._needs_rebuild(table, failure)
                raise failure from error
            record = self._ledger.done(attempt, progress, done)
            self.carrier.after_refresh(table, wrote=done.applied is not None)
            return record

    # ---------------------------------------------------------------- the journey

    def _tried(self, attempt: Attempt, progress: Progress, *, asked_full: bool) -> Done:
        """Somebody else's commit in between, an OPTIMIZE say, throws all away: it is begun anew, some times."""
        for pause_s in retry.pauses_s(self._settings.refresh.conflict_retries, self._chance):
            try:
                return self._attempted(attempt, progress, asked_full=asked_full)
            except TrickleError as error:
                if not retry.at_once(error) or self._closing:
                    raise
                log.info("%s begins anew: %s", attempt.table.name, error)
            self._claims.refuse_cancelled(attempt.refresh_id)
            time.sleep(pause_s)
            attempt = replace(attempt, table=self._not_altered(attempt.table))
            progress = self._catalog.get_progress(attempt.table.id)
        return self._attempted(attempt, progress, asked_full=asked_full)

    def _attempted(self, attempt: Attempt, progress: Progress, *, asked_full: bool) -> Done:
        def once() -> Done:
            return self._attempt(attempt, progress, asked_full=asked_full)

        with failures.panics_as_errors():
            return frugally_if_needed(self._compute, attempt.table.name, once)

    def _not_altered(self, table: StreamTable) -> StreamTable:
        """As it is by now. What was in the way may have been another definition."""
        now = next((each for each in self._catalog.stream_tables() if each.id == table.id), None)
        if now is None or now.query != table.query:
            raise RefreshOvertaken(f"{table.name} was altered or dropped meanwhile", hint=NOTHING_CHANGED)
        return now

    def _attempt(self, attempt: Attempt, progress: Progress, *, asked_full: bool) -> Done:
        table = attempt.table
        attempt.phases.begin_anew()
        with attempt.phases.phase("version check"):
            self.polls.look(table.sources)
            target = self.observer.target(table, progress)
            if not asked_full:
                refuse_tampered(table, target)
            FAILPOINTS.reach(Failpoint.TARGET_READ)
            paths = {name: self._plans.relations.path(name) for name in table.sources}
            chosen = self.observer.heads(paths)
            FAILPOINTS.reach(Failpoint.SOURCES_CHOSEN)
            if not asked_full and self._nothing_changed(table, progress, target, chosen):
                return self._no_data(attempt, target, paths, chosen)
        self._compute.wait_ready()
        with self._compute.tagged(attempt.refresh_id):
            try:
                return self._with_spark(attempt, progress, target, paths, chosen, asked_full=asked_full)
            except (CommitConflict, RefreshFailed) as error:
                self.observer.explain(error, table, target, attempt.refresh_id)
                raise

    def _with_spark(
        self,
        attempt: Attempt,
        progress: Progress,
        target: Target,
        paths: dict[str, str],
        chosen: Frontier,
        *,
        asked_full: bool,
    ) -> Done:
        table, phases = attempt.table, attempt.phases
        choice, moves = before_changes(table, target, progress, asked_full=asked_full), untold(paths, chosen)
        choice = choice or laid_out_otherwise(table, target)
        if choice is not None and attempt.reinitialize:
            choice = reinitialized(choice)
        if choice is None:
            with phases.phase("version check"):
                if self._blocks_ddl:
                    schema_changes.refuse_replaced(table, self._plans.relations, chosen, target.frontier or {})
                found = since_the_frontier(self.observer, self._plans.relations, table, target, paths, chosen)
                choice, moves = found.choice, found.moves
                if found.lost is not None:
                    self._needs_rebuild(table, found.lost)
                FAILPOINTS.reach(Failpoint.CHANGES_SUMMED_UP)
            attempt = held_to_promise(self._catalog, self._events, attempt, moves)
            table = attempt.table
        if any(move.schema_changed for move in moves):
            self._plans.forget(table.id)
        elif choice is not None:
            self._plans.look_again(table)
        with phases.phase("plan"):
            blocks = self._blocks_ddl and not asked_full and target.frontier is not None
            table, plan, choice = schema_changes.planned(table, choice, moves, self._plans, self._events, blocks=blocks)
            attempt = replace(attempt, table=table)
            costs = cost_book.read(self._catalog, table, plan)
            if choice is None and plan.replay is None and not changes_by_itself(table) and without_change(moves):
                return self._no_data(attempt, target, paths, chosen)
            changes = pending(costs, moves, self.sizes)
            full_reason = why_full(table, plan)
            if choice is None:
                ratio = self._settings.refresh.max_change_ratio
                choice = after_changes(table, changes, costs, full_reason=full_reason, max_change_ratio=ratio)
            choice = weighed(choice, costs, changes, full_reason=full_reason)
            job = self._job(attempt, plan, target, paths, chosen, Priced(costs, changes, self._is_cold))
        self._claims.refuse_cancelled(attempt.refresh_id)
        if choice.full:
            return self._full(job, choice, moves)
        try:
            return self._differential(job, choice, moves)
        except FailsOnValue as error:
            choice = weighed(fails_on_change(table, error), costs, changes, full_reason=None)
            phases.begin_anew()
            return self._full(job, choice, moves)
        except (RefreshFailed, NotFound) as error:
            return self._with_less_history(job, choice, moves, error)

    def _nothing_changed(self, table: StreamTable, progress: Progress, target: Target, chosen: Frontier) -> bool:
        if is_contradicted(progress):
            return False
        stored = (target.frontier, target.fingerprint, target.partition_by)
        same = stored == (chosen, table.fingerprint, table.partition_by)
        return same and not changes_by_itself(table) and self._plans.still_means_the_same(table)

    def _with_less_history(self, job: Job, choice: Choice, moves: tuple[SourceMove, ...], error: TrickleError) -> Done:
        """Files of the past may be cleaned away. Nobody looks for that before something failed."""
        reads = self._plans.prepared(job.table, {move.name: move.change for move in moves}).reads
        past = {leaf.name for leaf in reads if leaf.role is Role.OLD}
        lost = next((move.name for move in moves if changes_are_gone(move)), None)
        rebuilt = frozenset(move.name for move in moves if move.name in past and not past_is_readable(move))
        if lost is None and not rebuilt:
            raise error
        if lost is None:
            try:
                return self._differential(job, choice, moves, rebuilt)
            except (RefreshFailed, NotFound):
                lost = min(rebuilt)
        reason = Reason(ReasonCode.HISTORY_LOST, f"files of the past of {lost}, which it had to read, are cleaned away")
        self._needs_rebuild(job.table, SourceHistoryLost(reason.text))
        job.phases.begin_anew()
        again = Choice(Outcome.REINITIALIZE, reason)
        priced = job.priced
        return self._full(job, weighed(again, priced.costs, priced.changes, full_reason=None), moves)

    def _no_data(self, attempt: Attempt, target: Target, paths: dict[str, str], chosen: Frontier) -> Done:
        """Nothing is written, until the last stamp is so old that the history which it refers to may soon be gone."""
        table = attempt.table
        if not self.observer.stamp_is_old(target, (table.path, *paths.values())):
            return no_data(target, chosen)
        self._refuse_fenced(attempt)
        written = Stamp(
            st_id=table.id,
            refresh_id=attempt.refresh_id,
            sequence=target.sequence + 1,
            outcome=Outcome.NO_DATA,
            frontier=chosen,
            base_frontier=frontiers.base_of(chosen, self._plans.relations),
            fingerprint=table.fingerprint,
            lease_epoch=self._epoch_of(attempt),
            on_version=target.version,
        )
        with attempt.phases.phase("commit"):
            commit = apply.empty(tables.pin(table.path, target.version), written)
        return stamped_anew(written, commit.version)

    def _needs_rebuild(self, table: StreamTable, error: TrickleError) -> None:
        text = error.message if error.detail is None else f"{error.message.rstrip('.')}: {error.detail}"
        self._events.publish(EventKind.REINITIALIZE_NEEDED, table.name, text, Severity.WARN)

    @property
    def _blocks_ddl(self) -> bool:
        return self._settings.sources.block_source_ddl

    @property
    def _is_cold(self) -> bool:
        return self._warmed_up < WARM_UPS

    def _full(self, job: Job, choice: Choice, moves: tuple[SourceMove, ...]) -> Done:
        applied = full.run(job, choice.outcome)
        self._warmed_up += 1
        if job.plan.fingerprint != job.table.fingerprint:
            committed_meaning(self._catalog, self._plans, job.table, job.plan)
        return Done(
            choice,
            applied,
            job.chosen,
            job.sequence,
            job.refresh_id,
            operators=operators(job.plan.tree, moves, {}, applied, full=True),
            evaluated_at=job.moment,
            lesson=job.priced.of_full(applied, by_price=choice.by_price),
        )

    def _differential(
        self, job: Job, choice: Choice, moves: tuple[SourceMove, ...], rebuilt: frozenset[str] = frozenset()
    ) -> Done:
        """`rebuilt` are sources whose past is not read, but made from the present and the change."""
        work, rows_read = reading.prepare(job, self._plans, moves, rebuilt)
        self._claims.refuse_cancelled(job.refresh_id)
        job = replace(job, priced=job.priced.once_read(rows_read))
        ratio = job.settings.refresh.max_change_ratio
        again = after_reading(choice, job.table, job.priced.changes, job.priced.costs, max_change_ratio=ratio)
        if again is not choice:
            # what was read is no part of what a full refresh costs
            job.phases.begin_anew()
            return self._full(job, again, moves)
        applied = None
        for strategy in STRATEGIES:
            if strategy.fits(work):
                try:
                    applied = strategy.run(work)
                except TooLarge:
                    continue
                break
        if applied is None:
            raise InternalError(f"no strategy fits the change of {job.table.name}")
        self._warmed_up += 1
        rows = operators(job.plan.tree, moves, rows_read, applied, full=False)
        last = job if applied.version is not None else job.target
        lesson = job.priced.of_differential(applied)
        return Done(choice, applied, job.chosen, last.sequence, last.refresh_id, work.rows_in, rows, lesson=lesson)

    def _job(
        self,
        attempt: Attempt,
        plan: MaintenancePlan,
        target: Target,
        paths: dict[str, str],
        chosen: Frontier,
        priced: Priced,
    ) -> Job:
        return Job(
            refresh_id=attempt.refresh_id,
            table=attempt.table,
            plan=plan,
            target=target,
            paths=paths,
            columns=self._plans.relations.as_known_to(attempt.table).columns(paths) if plan.kept is None else {},
            chosen=chosen,
            priced=priced,
            base_frontier=frontiers.base_of(chosen, self._plans.relations),
            lease_epoch=self._epoch_of(attempt),
            evaluated=None if plan.replay is None else self._compute.evaluates(self._clock.now()),
            compute=self._compute,
            settings=self._settings,
            phases=attempt.phases,
            fence=lambda: self._refuse_fenced(attempt),
        )

    def _epoch_of(self, attempt: Attempt) -> int:
        return self._lease_epoch() if attempt.epoch is None else attempt.epoch

    def _refuse_fenced(self, attempt: Attempt) -> None:
        """Who stalled so long that another process took over leaves the work to that one."""
        if attempt.epoch is not None and attempt.epoch != self._lease_epoch():
            raise RefreshCancelled(
                f"the refresh of {attempt.table.name} was given up: another process runs the scheduler now",
                hint=NOTHING_CHANGED,
            )

    def _failure(self, error: Exception, attempt: Attempt) -> TrickleError:
        if self._claims.is_cancelled(attempt.refresh_id):
            return RefreshCancelled(f"the refresh of {attempt.table.name} was cancelled", hint=NOTHING_CHANGED)
        failure = failures.typed(error, f"refreshing {attempt.table.name}", attempt.table.path)
        return failure.naming({attempt.table.path: attempt.table.name, **self._source_names(attempt.table)})

    def _source_names(self, table: StreamTable) -> dict[str, str]:
        with suppress(NotFound):
            return {self._plans.relations.path(name): name for name in table.sources}
        return {}
