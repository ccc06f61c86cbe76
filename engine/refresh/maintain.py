"""Looking after the tables of stream tables: small files become few, the log gets a checkpoint, old files go.

Each refresh of a hot stream table leaves a small file or two and an entry of the log. None of what is done here changes
a row, carries a stamp or moves a frontier: a refresh finds commits without a change of data, and goes on. Never beside
a refresh of this process; what another process commits meanwhile makes this one wait for a later time.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.durations import parse_duration
from engine.errors import CommitConflict, RefreshSkipped, TrickleError
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import log as delta_log
from engine.lake import retention, upkeep
from engine.names import same_name
from engine.records import StreamTable
from engine.refresh.run import Refresher
from engine.results import Maintenance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.config import Settings
    from engine.lake.compute import Compute

log = logging.getLogger(__name__)

#: failures in a row that somebody should know of
TOLD_AFTER = 3


@dataclass
class _Looked:
    """What this process remembers of a stream table's upkeep; forgotten, it is done once too often."""

    sequence: int = 0
    vacuumed_at: datetime | None = None
    failures: int = 0


class Maintainer:
    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        refresher: Refresher,
        events: EventBus,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._compute = compute
        self._refresher = refresher
        self._events = events
        self._settings = settings.maintenance
        self._clock = clock
        self._looked: dict[str, _Looked] = {}
        self._turns: Iterator[str] = iter(())
        self._lock = threading.Lock()

    def now(self, table: StreamTable) -> Maintenance:
        """All of it, whether it is due or not."""
        done = self._maintained(table, vacuum=True)
        self._tell(done)
        return done

    def when_idle(self) -> Maintenance | None:
        """One look at one stream table, each in its turn: nothing is done unless enough has gathered."""
        if self._settings.every_commits == 0:
            return None
        table = self._next()
        if table is None:
            return None
        looked = self._looked.setdefault(table.id, _Looked())
        sequence = self._catalog.get_progress(table.id).sequence
        if sequence - looked.sequence < self._settings.every_commits:
            return None
        try:
            done = self._maintained(table, vacuum=self._vacuum_is_due(looked))
        except (CommitConflict, RefreshSkipped) as error:
            log.info("%s is maintained later: %s", table.name, error)
            return None
        except TrickleError as error:
            self._failed(table, looked, sequence, error)
            return None
        looked.sequence, looked.failures = sequence, 0
        if done.files_before != done.files_after:
            self._tell(done)
        return done

    def _next(self) -> StreamTable | None:
        """The list is taken anew when all had their turn."""
        with self._lock:
            tables = {table.id: table for table in self._catalog.stream_tables()}
            self._looked = {key: looked for key, looked in self._looked.items() if key in tables}
            for st_id in self._turns:
                if st_id in tables:
                    return tables[st_id]
            self._turns = iter(tuple(tables))
            return tables.get(next(self._turns, ""))

    # ---------------------------------------------------------------- what is done

    def _maintained(self, table: StreamTable, *, vacuum: bool) -> Maintenance:
        with self._refresher.undisturbed(table, "looked after"):
            before = upkeep.files(table.path)
            if not upkeep.compact_from_driver(table.path, table.id, self._settings.compact_to_mb):
                self._compute.wait_ready()
                self._compute.compact(table.path)
            FAILPOINTS.reach(Failpoint.COMPACTED)
            checkpoint = upkeep.checkpoint(table.path)
            FAILPOINTS.reach(Failpoint.CHECKPOINTED)
            hours = self._kept_hours(table) if vacuum else None
            if hours is not None:
                self._compute.wait_ready()
                self._compute.vacuum(table.path, hours)
                self._looked.setdefault(table.id, _Looked()).vacuumed_at = self._clock.now()
            return Maintenance(table.name, before, upkeep.files(table.path), checkpoint, hours)

    def _vacuum_is_due(self, looked: _Looked) -> bool:
        every_s = parse_duration(self._settings.vacuum_every)
        at = looked.vacuumed_at
        return every_s > 0 and (at is None or self._clock.now() - at >= timedelta(seconds=every_s))

    def _kept_hours(self, table: StreamTable) -> int | None:
        """Files go when the table's own retention is over and nobody reads it from where they were part of it.

        None where the log no longer tells how far back somebody's frontier is: then nothing goes.
        """
        ages_s = [retention.files_s(table.path)]
        for name in self._catalog.dependents(table.name):
            progress = self._catalog.get_progress(self._catalog.get_stream_table(name).id)
            frontier = progress.frontier or {}
            at = next((version.version for source, version in frontier.items() if same_name(source, table.name)), None)
            if at is None:
                continue
            info = delta_log.commit_info(table.path, at)
            if info is None or info.at is None:
                return None
            ages_s.append((self._clock.now() - info.at).total_seconds())
        return math.ceil(max(ages_s) / 3600) + 1

    # ---------------------------------------------------------------- what is told

    def _tell(self, done: Maintenance) -> None:
        text = f"{done.files_before} files became {done.files_after}"
        self._events.publish(EventKind.MAINTAINED, done.name, text, Severity.OK)

    def _failed(self, table: StreamTable, looked: _Looked, sequence: int, error: TrickleError) -> None:
        """It is tried again after as many commits as otherwise."""
        looked.sequence = sequence
        looked.failures += 1
        log.warning("maintaining %s failed: %s", table.name, error)
        if looked.failures % TOLD_AFTER == 0:
            text = f"its files were not put in order {looked.failures} times in a row: {error}"
            self._events.publish(EventKind.MAINTENANCE_FAILED, table.name, text, Severity.WARN)
