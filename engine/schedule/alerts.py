"""Tells before history goes that somebody has yet to read. The same is told again after a while, and no sooner."""

from __future__ import annotations

from engine.clock import Clock
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.refresh.cdc import Cdc

#: how often logs are looked at for this
LOOK_S = 60.0


class HistoryAlerts:
    def __init__(self, cdc: Cdc, events: EventBus, clock: Clock, cooldown_s: float) -> None:
        self._cdc = cdc
        self._events = events
        self._clock = clock
        self._cooldown_s = cooldown_s
        self._next_look_s = 0.0
        #: by source and stream table, on the monotonic clock
        self._told_at_s: dict[tuple[str, str], float] = {}

    def look(self) -> None:
        """Does nothing most of the times."""
        now_s = self._clock.monotonic_s()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + min(LOOK_S, self._cooldown_s)
        for each in self._cdc.statuses():
            if each.stream_table is None or each.severity is Severity.OK or each.error is not None:
                continue  # an error is told by the refresh that it stops
            key = (each.source, each.stream_table)
            told_at_s = self._told_at_s.get(key)
            if told_at_s is None or now_s - told_at_s >= self._cooldown_s:
                self._told_at_s[key] = now_s
                text = f"{each.pending_versions} commits of {each.source} wait to be read: {each.head_room_why}"
                self._events.publish(EventKind.HISTORY_EXPIRING, each.stream_table, text, each.severity)
