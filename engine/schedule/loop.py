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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.catalog.lease import Lease
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.errors import LeaseHeld, TrickleError
from engine.events import EventBus
from engine.observe.history import History
from engine.records import EventKind, Initiator, SchedulerPlace, SchedulerStatus, Severity, SparkPhase, StreamTable
from engine.refresh.run import Refresher
from engine.schedule.due import Candidate, is_held, ready, wait_s

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
    ) -> None:
        self._history = history
        self._catalog = catalog
        self._lease = lease
        self._refresher = refresher
        self._host = host
        self._events = events
        self._settings = settings
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
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
            self._try_lease()
            self._spawn("scheduler", self._run)
            for number in range(self._settings.refresh.max_concurrent_refreshes):
                self._spawn(f"refresh-{number + 1}", self._refresh_what_comes)
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
            queued = tuple(tables[key] for key, turn in list(self._turns.items()) if turn.queued and key in tables)
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
        for table in self._catalog.stream_tables():
            turn = self._turns.setdefault(table.id, _Turn(now_s))
            due = not is_held(progress.get(table.id)) and now_s >= turn.due_at_s
            candidates.append(Candidate(table, due, turn.queued or table.name in running))
        chosen = ready(candidates)
        for table in chosen:
            self._turns[table.id].queued = True
            self._work.put(table)
        return chosen

    def _refresh_what_comes(self) -> None:
        while (table := self._work.get()) is not None:
            if self._stopping.is_set():
                return
            turn = self._turns[table.id]
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

    def _wait_s(self, table: StreamTable) -> float:
        try:
            return wait_s(table, self._catalog.get_progress(table.id), self._chance.random())
        except TrickleError as error:
            log.warning("the scheduler could not look: %s", error)
            return table.interval_s
