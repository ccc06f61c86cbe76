"""The scheduler: one thread that looks who is due, a few that refresh. One process of a workspace runs it.

The holder of the lease schedules; others observe and take over when it goes. Threads are daemons: quitting never
waits for a refresh, whose commit is atomic anyway.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import socket
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.catalog.lease import Lease
from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.errors import LeaseHeld, TrickleError
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.lake.turns import Turns
from engine.lake.watch import Watcher
from engine.observe.history import History
from engine.records import Initiator, RefreshMode, SchedulerPlace, SchedulerStatus, SparkPhase, StreamTable
from engine.refresh import graph
from engine.refresh.maintain import Maintainer
from engine.refresh.run import Refresher
from engine.schedule.alerts import HistoryAlerts
from engine.schedule.due import Candidate, follows_at_once, is_held, ready, wait_s

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.session import SparkHost

log = logging.getLogger(__name__)


@dataclass
class _Turn:
    """When a stream table may go next, on the monotonic clock: the wall clock may jump."""

    due_at_s: float
    queued: bool = False


class Scheduler:
    def __init__(
        self,
        catalog: Catalog,
        lease: Lease,
        refresher: Refresher,
        host: SparkHost,
        history: History,
        events: EventBus,
        settings: Settings,
        clock: Clock,
        turns: Turns,
        alerts: HistoryAlerts,
        maintainer: Maintainer,
    ) -> None:
        self._alerts = alerts
        self._maintainer = maintainer
        self._history = history
        self._catalog = catalog
        self._lease = lease
        self._refresher = refresher
        self._host = host
        self._events = events
        self._settings = settings
        self._clock = clock
        self._due: dict[str, _Turn] = {}
        #: who has one sees to what is IMMEDIATE itself
        self._turns = turns
        self._watcher: Watcher | None = None
        self._work: queue.Queue[StreamTable | None] = queue.Queue()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._epoch: int | None = None
        self._chance = random.Random()  # noqa: S311  so that those that failed together do not come back together

    # ---------------------------------------------------------------- life

    def start(self) -> SchedulerStatus:
        """Takes the lease if it is free; otherwise waits in the background until it is."""
        with self._lock:
            if self._threads:
                return self.status()
            self._stopping.clear()
            self._watcher = Watcher(lambda path: self.wake())
            self._try_lease()
            self._spawn("scheduler", self._run)
            for number in range(self._settings.refresh.max_concurrent_refreshes):
                self._spawn(f"refresh-{number + 1}", self._refresh_what_comes)
            self._spawn("maintenance", self._maintain_when_idle)
        return self.status()

    def stop(self, drain_timeout_s: float = 0.0, *, cancel: bool = True) -> None:
        """No new refreshes. Those that run get so long to end; what is left is cancelled and leaves no trace.

        Who ends Spark anyway need not `cancel`: that would be a question to a JVM that is about to be killed.
        """
        with self._lock:
            threads, self._threads = self._threads, []
        if not threads:
            return
        self._stopping.set()
        self._wake.set()
        if self._watcher is not None:
            self._watcher.close()
        for _ in threads[1:]:
            self._work.put(None)
        deadline_s = self._clock.monotonic_s() + drain_timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline_s - self._clock.monotonic_s()))
        if cancel and any(thread.is_alive() for thread in threads[1:]):
            running = {each.st for each in self._refresher.running()}
            for table in self._catalog.stream_tables():
                if table.name in running:
                    self._refresher.cancel(table)
        epoch, self._epoch = self._epoch, None
        if epoch is not None:
            self._lease.release(epoch)
            self._events.publish(EventKind.SCHEDULER_STOPPED, "", "the scheduler stopped")

    def wake(self) -> None:
        """Look at once: something was created, resumed or asked for."""
        self._wake.set()

    @property
    def epoch(self) -> int | None:
        return self._epoch

    def status(self) -> SchedulerStatus:
        running = self._refresher.running()
        if self._epoch is not None:
            tables = {table.id: table.name for table in self._catalog.stream_tables()}
            queued = tuple(tables[key] for key, turn in list(self._due.items()) if turn.queued and key in tables)
            busy = {each.st for each in running}
            waiting = tuple(name for name in queued if name not in busy)
            return SchedulerStatus(SchedulerPlace.HERE, os.getpid(), running, waiting)
        holder = self._lease.holder()
        if holder is None:
            return SchedulerStatus(SchedulerPlace.NOBODY, None, running)
        return SchedulerStatus(SchedulerPlace.ELSEWHERE, holder.pid, running)

    def _spawn(self, name: str, target: object) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    # ---------------------------------------------------------------- the lease

    def _try_lease(self) -> bool:
        try:
            self._epoch = self._lease.acquire(os.getpid(), socket.gethostname())
        except LeaseHeld:
            return False
        self._events.publish(EventKind.SCHEDULER_STARTED, "", f"the scheduler runs in process {os.getpid()}")
        return True

    def _keep_lease(self) -> bool:
        if self._epoch is None:
            return self._try_lease()
        if self._lease.heartbeat(self._epoch):
            return True
        self._epoch = None
        text = "another process took the scheduler over while this one was stalled"
        self._events.publish(EventKind.LEASE_LOST, "", text, Severity.WARN)
        return False

    # ---------------------------------------------------------------- the loop

    def _run(self) -> None:
        tick_s = self._settings.scheduler.tick_ms / 1000
        next_heartbeat_s = 0.0
        holding = self._epoch is not None
        while not self._stopping.is_set():
            try:
                if self._clock.monotonic_s() >= next_heartbeat_s:
                    holding = self._keep_lease()
                    next_heartbeat_s = self._clock.monotonic_s() + self._settings.scheduler.heartbeat_s
                if holding:
                    self._alerts.look()
                if holding and not self.tick() and not self._refresher.running():
                    # nobody waits: the time to put the history in order, which mostly finds nothing to do
                    self._history.maintain(self._settings.history.retention_days)
            except TrickleError as error:
                # A full disk or a locked catalog: say it, and look again at the next tick.
                log.warning("the scheduler could not look: %s", error)
            self._wake.wait(tick_s)
            self._wake.clear()

    def tick(self) -> tuple[StreamTable, ...]:
        """Queues those that are due and may go. Nothing goes before Spark can run it."""
        if not self._host.is_ready:
            if self._host.status().phase is SparkPhase.LOST:
                # where nobody but the scheduler refreshes, nobody else would
                self._host.start()
            return ()
        now_s = self._clock.monotonic_s()
        progress = self._catalog.all_progress()
        running = {each.st for each in self._refresher.running()}
        candidates = []
        tables = self._catalog.stream_tables()
        places = self._places(tables)
        for table in tables:
            turn = self._due.setdefault(table.id, _Turn(now_s))
            known = progress.get(table.id)
            due = not is_held(known) and (now_s >= turn.due_at_s or self._is_behind(table, known, tables, places))
            candidates.append(Candidate(table, due, turn.queued or table.name in running))
        chosen = ready(candidates)
        for table in chosen:
            self._due[table.id].queued = True
            self._work.put(table)
        return chosen

    def _places(self, tables: tuple[StreamTable, ...]) -> dict[str, str]:
        """Where everything is that who is IMMEDIATE may read; a commit to one of its sources wakes the loop."""
        immediate = [table for table in tables if table.refresh_mode is RefreshMode.IMMEDIATE]
        if not immediate:
            self._watch(frozenset())
            return {}
        sources = {source.name.casefold(): source.path for source in self._catalog.sources()}
        read = {name.casefold() for table in immediate for name in table.sources}
        self._watch({sources[name] for name in read & sources.keys()})
        return sources | {table.name.casefold(): table.path for table in tables}

    def _watch(self, paths: Collection[str]) -> None:
        if self._watcher is not None:
            self._watcher.watch_only(paths)

    def _is_behind(
        self,
        table: StreamTable,
        progress: Progress | None,
        tables: tuple[StreamTable, ...],
        places: Mapping[str, str],
    ) -> bool:
        """Commits of others are followed at once; DML of ours is followed by whoever sent it, while that one lives."""
        if progress is None or not follows_at_once(table, progress):
            return False
        read = {name: places[name.casefold()] for name in table.sources if name.casefold() in places}
        if len(read) < len(table.sources) or not self._refresher.observer.has_moved(read, progress):
            return False
        below = graph.below(tables, table) & places.keys()
        return not any(self._turns.is_taken(places[name]) for name in below)

    def _refresh_what_comes(self) -> None:
        while (table := self._work.get()) is not None:
            if self._stopping.is_set():
                return
            turn = self._due[table.id]
            began_s = self._clock.monotonic_s()
            try:
                # Without a lease somebody else refreshes it; what is under way ends with the lease, too.
                epoch = self._epoch
                if epoch is not None:
                    self._refresher.refresh(table, asked_full=False, initiated_by=Initiator.SCHEDULER, epoch=epoch)
            except TrickleError as error:
                # It is recorded in history, progress and events; here it only must not end the worker.
                log.info("%s: %s", table.name, error)
            except Exception:
                if self._stopping.is_set():
                    return  # what it works with is being closed
                # Not foreseen, so nothing recorded it. The worker has other stream tables to look after.
                log.exception("refreshing %s", table.name)
                text = "the refresh broke down without a record; the log of the program has more"
                self._events.publish(EventKind.REFRESH_FAILED, table.name, text, Severity.ERROR)
            if self._stopping.is_set():
                return
            turn.due_at_s = began_s + self._wait_s(table)
            turn.queued = False
            self._wake.set()

    def _maintain_when_idle(self) -> None:
        """In a thread of its own: what it does may take longer than a lease is held without a sign of life."""
        tick_s = self._settings.scheduler.tick_ms / 1000
        while not self._stopping.wait(tick_s):
            idle = self._epoch is not None and self._host.is_ready and self._work.empty()
            if not idle or self._refresher.running():
                continue
            try:
                self._maintainer.when_idle()
            except TrickleError as error:
                log.warning("the scheduler could not look: %s", error)

    def _wait_s(self, table: StreamTable) -> float:
        try:
            return wait_s(table, self._catalog.get_progress(table.id), self._chance.random())
        except TrickleError as error:
            log.warning("the scheduler could not look: %s", error)
            return table.interval_s
