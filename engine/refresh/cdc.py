"""How the changes of each source reach who reads it, and what is still to come: told from the logs, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.durations import format_duration, parse_duration
from engine.errors import TrickleError
from engine.event_records import Severity
from engine.lake import log, retention, tables
from engine.lake.shared_changes import SharedChanges
from engine.records import CdcMode, RefreshMode, Source, SourceVersion, StreamTable
from engine.refresh.observe import (
    Observer,
    SourceMove,
    changes_are_gone,
    past_is_readable,
    read_by,
    records_its_changes,
)
from engine.refresh.plans import Relations
from engine.refresh.polls import Polls
from engine.results import CdcStatus, ChangeBuffer

#: what is read instead of changes
FULL, NONE = "full", "none"


@dataclass(frozen=True)
class Cdc:
    catalog: Catalog
    relations: Relations
    observer: Observer
    polls: Polls
    shared: SharedChanges
    clock: Clock
    #: head-room below these is a warning, or an error
    warning: str
    alarm: str

    def statuses(self) -> tuple[CdcStatus, ...]:
        """Of each source with each stream table that reads it; sources that nobody reads as well."""
        progress = self.catalog.all_progress()
        return tuple(self._all(progress))

    def buffers(self) -> tuple[ChangeBuffer, ...]:
        """Of each source what waits for the slowest of its readers, and what of it is held in memory."""
        found: dict[str, list[CdcStatus]] = {}
        for each in self.statuses():
            found.setdefault(each.source, []).append(each)
        return tuple(self._buffer(name, statuses) for name, statuses in found.items())

    # ---------------------------------------------------------------- one by one

    def _all(self, progress: dict[str, Progress]) -> Iterator[CdcStatus]:
        sources = {source.name.casefold(): source for source in self.catalog.sources()}
        unread = dict(sources)
        for table in self.catalog.stream_tables():
            frontier = progress[table.id].frontier if table.id in progress else None
            for name in table.sources:
                unread.pop(name.casefold(), None)
                source = sources.get(name.casefold())
                yield self._status(name, source, table, (frontier or {}).get(name))
        for source in unread.values():
            yield self._status(source.name, source, None, None)

    def _status(
        self, name: str, source: Source | None, table: StreamTable | None, was: SourceVersion | None
    ) -> CdcStatus:
        asked = CdcMode.AUTO if source is None else source.cdc_mode
        status = CdcStatus(
            source=name,
            stream_table=None if table is None else table.name,
            asked=asked.value,
            in_force=NONE,
            why="",
            frontier=None if was is None else was.version,
            looked_at=None if source is None else self.polls.looked_at(source),
        )
        try:
            return self._with_moves(status, asked, table, was)
        except (TrickleError, OSError) as error:
            # its history, its table or its columns are not what they were: the next refresh says the same
            return replace(status, error=str(error), severity=Severity.ERROR)

    def _with_moves(
        self, status: CdcStatus, asked: CdcMode, table: StreamTable | None, was: SourceVersion | None
    ) -> CdcStatus:
        path = self.relations.path(status.source)
        head = self.observer.heads({status.source: path})[status.source]
        (move,) = self.observer.changes({status.source: path}, {status.source: head}, _frontier(status.source, was))
        move = read_by(move, asked)
        in_force, why = _in_force(move, asked, table)
        status = replace(status, head=head.version, in_force=in_force, why=why)
        if move.summary is None:
            return status
        oldest_at = _first_at(path, move)
        now = self.clock.now()
        status = replace(
            status,
            pending_versions=len(move.summary.commits),
            pending_rows=move.summary.rows_estimate,
            pending_bytes=move.summary.bytes,
            oldest_pending_at=oldest_at,
            oldest_pending_age_s=None if oldest_at is None else max(0.0, (now - oldest_at).total_seconds()),
        )
        return status if in_force == FULL else self._with_head_room(status, move, now)

    def _with_head_room(self, status: CdcStatus, move: SourceMove, now: datetime) -> CdcStatus:
        """What VACUUM did counts, not what it might have done."""
        if changes_are_gone(move):
            why = "files of its changes are cleaned away: the next refresh recomputes"
            return replace(status, head_room_s=0.0, head_room_why=why, severity=Severity.ERROR)
        if not past_is_readable(move):
            why = "its past is cleaned away, and is made of its present and its changes as long as these are there"
            return replace(status, head_room_s=0.0, head_room_why=why, severity=Severity.WARN)
        room = None if move.summary is None else retention.head_room(move.path, move.summary, now)
        if room is None:
            return status
        left_s = max(0.0, room.left_s)
        severity = Severity.OK
        if left_s < parse_duration(self.warning):
            severity = Severity.ERROR if left_s < parse_duration(self.alarm) else Severity.WARN
        when = f"in {format_duration(left_s)}" if left_s else "at any time"
        return replace(status, head_room_s=left_s, head_room_why=f"{room.why} {when}", severity=severity)

    def _buffer(self, name: str, statuses: list[CdcStatus]) -> ChangeBuffer:
        readers = [each for each in statuses if each.stream_table is not None]
        slowest = max(readers or statuses, key=lambda each: (each.pending_versions, each.pending_rows))
        return ChangeBuffer(
            source=name,
            readers=len(readers),
            slowest=slowest.stream_table,
            pending_versions=slowest.pending_versions,
            pending_rows=slowest.pending_rows,
            pending_bytes=slowest.pending_bytes,
            oldest_pending_at=slowest.oldest_pending_at,
            held_bytes=self.shared.held_bytes_of(self.relations.path(name)),
        )


def _frontier(name: str, was: SourceVersion | None) -> dict[str, SourceVersion]:
    return {} if was is None else {name: was}


def _in_force(move: SourceMove, asked: CdcMode, table: StreamTable | None) -> tuple[str, str]:
    """How changes are found at present, and why so."""
    if table is not None and table.refresh_mode is RefreshMode.FULL:
        return FULL, "refresh_mode is FULL"
    if table is not None and table.full_reason is not None:
        return FULL, table.full_reason.text
    match asked:
        case CdcMode.POLL:
            return CdcMode.POLL.value, "it is no Delta table: looked at before each refresh, and compared with a copy"
        case CdcMode.DIFF:
            return CdcMode.DIFF.value, "asked for"
    why_not = _without_feed(move)
    if why_not is None:
        return CdcMode.CDF.value, "its Change Data Feed is on"
    if asked is CdcMode.CDF:
        return NONE, f"{why_not}: each change means recomputing everything"
    return CdcMode.DIFF.value, why_not


def _without_feed(move: SourceMove) -> str | None:
    if not tables.cdf_enabled(move.path):
        return "its Change Data Feed is off"
    if move.summary is None or records_its_changes(move):
        return None
    if move.summary.cdf_lost_at is not None:
        return f"its Change Data Feed was off at version {move.summary.cdf_lost_at}"
    if move.summary.lost_columns:
        return "columns of it went or became others, over which no feed is read"
    return f"its Change Data Feed was switched on after version {move.summary.after_version}"


def _first_at(path: str, move: SourceMove) -> datetime | None:
    first = move.summary.commits[0].version if move.summary is not None and move.summary.commits else None
    info = None if first is None else log.commit_info(path, first)
    return None if info is None else info.at
