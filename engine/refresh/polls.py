"""Looking at sources that are no Delta tables, before a refresh asks what changed."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.durations import parse_duration
from engine.errors import NotFound, SourceDropped
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import polled
from engine.lake.heads import HeadReader
from engine.records import Polled, Source

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.compute import Compute


class Polls:
    """Every method may be called from any thread. Nobody looks at what another thread is looking at."""

    def __init__(self, catalog: Catalog, compute: Compute, settings: Settings, clock: Clock) -> None:
        self._catalog = catalog
        self._compute = compute
        self._clock = clock
        self._interval_s = parse_duration(settings.sources.poll_interval)
        self._heads = HeadReader()
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        #: when each was looked at last, on the monotonic clock
        self._looked_at_s: dict[str, float] = {}

    def look(self, names: Iterable[str]) -> None:
        """Brings the copies of those that are polled up to date. Asks Spark only if something may have changed."""
        if self._catalog.read_only:
            return  # a copy is written to
        wanted = {name.casefold() for name in names}
        for source in self._catalog.sources():
            if source.polled is not None and source.name.casefold() in wanted:
                with self._locks[source.name.casefold()]:
                    self._look_at(source, source.polled)

    def _look_at(self, source: Source, place: Polled) -> None:
        now = polled.fingerprint(place)
        if self._is_known(source, now):
            self._note_look(source)
            return
        self._compute.wait_ready()
        self._compute.poll(source.path, place)
        FAILPOINTS.reach(Failpoint.POLLED)
        self._looked_at_s[source.name] = self._clock.monotonic_s()
        if now is not None:
            self._catalog.set_meta(_key(source), self._seen(source, now))
        self._note_look(source)

    def _note_look(self, source: Source) -> None:
        """For others to see; not each time, because it is written to the catalog."""
        before, now = self.looked_at(source), self._clock.now()
        if before is None or not 0 <= (now - before).total_seconds() < self._interval_s:
            self._catalog.set_meta(f"looked at {source.name}", now.isoformat())

    def looked_at(self, source: Source) -> datetime | None:
        """When somebody looked last, but for the last few seconds. None of what is not polled."""
        noted = self._catalog.get_meta(f"looked at {source.name}") if source.polled is not None else None
        return None if noted is None else datetime.fromisoformat(noted)

    def _is_known(self, source: Source, fingerprint: str | None) -> bool:
        """Is the copy what was there when somebody looked last, and is that what is there now?"""
        if fingerprint is not None:
            return self._catalog.get_meta(_key(source)) == self._seen(source, fingerprint)
        last_s = self._looked_at_s.get(source.name)
        return last_s is not None and self._clock.monotonic_s() - last_s < self._interval_s

    def _seen(self, source: Source, fingerprint: str) -> str:
        """Together with the copy's own head: a copy that was restored from elsewhere is not what was looked at."""
        try:
            head = self._heads.head(source.path)
        except (NotFound, SourceDropped):
            return ""
        return f"{fingerprint} {head.version} {head.identity} {head.table_id}"


def _key(source: Source) -> str:
    return f"polled {source.name}"
