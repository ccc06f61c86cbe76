"""The typed event log: stored first, then told to whoever listens in this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from engine.clock import Clock
from engine.event_records import Event, EventKind, Severity

Listener = Callable[[Event], None]

_log = logging.getLogger(__name__)


class EventBus:
    """`store` keeps an event and gives it back with its number."""

    def __init__(self, store: Callable[[Event], Event], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._listeners: dict[int, Listener] = {}
        self._next_id = 0
        self._lock = threading.Lock()

    def publish(
        self,
        kind: EventKind,
        subject: str,
        text: str,
        severity: Severity = Severity.OK,
        refresh_id: str | None = None,
    ) -> Event:
        event = self._store(Event(self._clock.now(), kind, severity, subject, text, refresh_id))
        with self._lock:
            listeners = tuple(self._listeners.items())
        for listener_id, listener in listeners:
            try:
                listener(event)
            except Exception:
                # A listener's trouble is its own: the publisher is in the middle of a refresh.
                _log.exception("an event listener failed and gets no more events")
                self._unsubscribe(listener_id)
        return event

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with each event, in the publisher's thread; returns what ends that."""
        with self._lock:
            listener_id = self._next_id
            self._next_id += 1
            self._listeners[listener_id] = listener
        return lambda: self._unsubscribe(listener_id)

    def _unsubscribe(self, listener_id: int) -> None:
        with self._lock:
            self._listeners.pop(listener_id, None)
