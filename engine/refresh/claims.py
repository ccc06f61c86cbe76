"""Who refreshes what in this process: one refresh of a stream table at a time, and the wish that it may end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from engine.errors import RefreshCancelled, RefreshSkipped
from engine.records import RunningRefresh, StreamTable
from engine.refresh.ledger import Attempt
from engine.refresh.phases import Phases

NOTHING_CHANGED = "nothing was changed"

#: so long a refresh waits for what else is done with its stream table
PATIENCE_S = 30.0


class Claims:
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._running: dict[str, RunningRefresh] = {}
        self._cancelled: set[str] = set()
        #: what else is done with a stream table at this moment, by its id
        self._busy: dict[str, str] = {}
        self._lock = threading.Condition()

    def running(self) -> tuple[RunningRefresh, ...]:
        with self._lock:
            return tuple(self._running.values())

    def cancel(self, table: StreamTable) -> str | None:
        """The id of the refresh that is asked to end; None when none runs."""
        with self._lock:
            running = self._running.get(table.id)
            if running is None:
                return None
            self._cancelled.add(running.refresh_id)
            return running.refresh_id

    @contextmanager
    def claimed(self, attempt: Attempt) -> Iterator[None]:
        table = attempt.table
        with self._lock:
            # that is done in no time, mostly
            self._lock.wait_for(lambda: table.id not in self._busy, PATIENCE_S)
            self._refuse_busy(table)
            if table.id in self._running:
                raise RefreshSkipped(f"{table.name} is being refreshed already", hint="wait for it, or cancel it")
            self._running[table.id] = RunningRefresh(
                st=table.name,
                refresh_id=attempt.refresh_id,
                started_at=attempt.started_at,
                phase=Phases.ORDER[0],
                step=0,
                steps=len(Phases.ORDER),
                initiated_by=attempt.initiated_by,
            )
        attempt.phases.on_enter = lambda phase: self._enter(attempt, phase)
        try:
            yield
        finally:
            with self._lock:
                self._running.pop(table.id, None)
                self._cancelled.discard(attempt.refresh_id)
                self._lock.notify_all()

    def tell_name(self, table: StreamTable) -> None:
        """It may have got another one before it was claimed."""
        with self._lock:
            self._running[table.id] = replace(self._running[table.id], st=table.name)

    def wait_until_free(self, table: StreamTable) -> None:
        """Somebody else may be faster then."""
        with self._lock:
            self._lock.wait_for(lambda: table.id not in self._running)

    @contextmanager
    def undisturbed(self, table: StreamTable, doing: str) -> Iterator[None]:
        """No refresh of it begins meanwhile, and none is under way."""
        with self._lock:
            self._refuse_busy(table)
            if table.id in self._running:
                raise RefreshSkipped(f"{table.name} is being refreshed", hint="wait for it, or cancel it")
            self._busy[table.id] = doing
        try:
            yield
        finally:
            with self._lock:
                del self._busy[table.id]
                self._lock.notify_all()

    def _refuse_busy(self, table: StreamTable) -> None:
        if table.id in self._busy:
            raise RefreshSkipped(f"{table.name} is being {self._busy[table.id]}", hint="try again when that is done")

    def _enter(self, attempt: Attempt, phase: str) -> None:
        self.refuse_cancelled(attempt.refresh_id)
        with self._lock:
            now = self._running[attempt.table.id]
            self._running[attempt.table.id] = replace(now, phase=phase, step=Phases.ORDER.index(phase))

    def is_cancelled(self, refresh_id: str) -> bool:
        with self._lock:
            return refresh_id in self._cancelled

    def refuse_cancelled(self, refresh_id: str) -> None:
        if self.is_cancelled(refresh_id):
            raise RefreshCancelled("the refresh was cancelled", hint=NOTHING_CHANGED)
