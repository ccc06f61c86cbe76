"""What a refresh finds before it decides: the truth about its target, and what its sources did since.

The truth about a stream table is in its own Delta log: the last stamp. The catalog remembers it, so that asking
costs nothing when nobody else wrote, and may only be ahead of it by frontiers that moved without a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.bind import Change
from engine.errors import (
    CommitConflict,
    NotFound,
    RefreshFailed,
    RefreshOvertaken,
    SourceDropped,
    SourceReplaced,
    SourceRewound,
    SourceWithoutChanges,
    Tampered,
    TrickleError,
)
from engine.lake import commits, differences, heads, hold, log, retention, stamp, tables, views
from engine.lake.commits import ChangeKind, ChangeSummary, summarise
from engine.lake.heads import Head, HeadReader
from engine.names import RESERVED_PREFIX
from engine.records import CdcMode, Evaluated, Frontier, SourceVersion, StreamTable


@dataclass(frozen=True)
class Target:
    """The stream table's own state."""

    #: version of its Delta table that was looked at
    version: int
    sequence: int
    #: whose stamp is the last
    refresh_id: str | None
    #: what its rows stand for; None before the first refresh, and where its log no longer tells
    frontier: Frontier | None
    fingerprint: str | None
    #: who else changed its rows since our last stamp, in words
    tampered: str | None
    #: when that stamp was written
    stamped_at: datetime | None
    #: when and by whom the rows were computed, where their query asks for that
    evaluated: Evaluated | None = None
    #: the columns by which it is partitioned as it is
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceMove:
    """One source between the frontier and the chosen version."""

    name: str
    path: str
    chosen: SourceVersion
    was: SourceVersion | None
    change: Change
    summary: ChangeSummary | None

    @property
    def overwritten(self) -> bool:
        return self.summary is not None and self.summary.kind is ChangeKind.OVERWRITE

    @property
    def schema_changed(self) -> bool:
        return self.summary is not None and self.summary.metadata_changed

    @property
    def is_mute(self) -> bool:
        """Its change cannot be read."""
        by_files = self.summary is not None and self.summary.by_files
        return not by_files and not records_its_changes(self)

    @property
    def rows_estimate(self) -> int:
        return self.summary.rows_estimate if self.summary is not None else 0


@dataclass(frozen=True)
class _Trusted:
    #: the head of the stream table for which the remembered progress is the truth, if it is of this refresh
    head: Head
    refresh_id: str | None
    stamped_at: datetime | None
    evaluated: Evaluated | None
    #: of what is stored; the definition may be another one by now
    fingerprint: str
    partition_by: tuple[str, ...]


class Observer:
    """Reads targets and sources; remembers what cannot have changed."""

    def __init__(self, catalog: Catalog, head_reader: HeadReader, clock: Clock) -> None:
        self._catalog = catalog
        self._heads = head_reader
        self._clock = clock
        #: by the id of the stream table
        self._trusted: dict[str, _Trusted] = {}

    def head(self, name: str, path: str) -> Head:
        try:
            return self._heads.head(path)
        except NotFound as error:
            raise SourceDropped(
                f"the source {name} is gone",
                detail=error.message,
                hint=f"bring it back, or drop what reads it: trickle drop NAME, then trickle source drop {name}",
            ) from error

    def target(self, table: StreamTable, progress: Progress) -> Target:
        head = self._own_head(table)
        trusted = self._trusted.get(table.id)
        # Somebody who was stopped after a commit of his, and woke after ours, wrote down an older refresh.
        known = (head, progress.refresh_id)
        if trusted is not None and (trusted.head, trusted.refresh_id) == known and progress.populated:
            return Target(
                head.version,
                progress.sequence,
                progress.refresh_id,
                progress.frontier,
                trusted.fingerprint,
                tampered=None,
                stamped_at=trusted.stamped_at,
                evaluated=trusted.evaluated,
                partition_by=trusted.partition_by,
            )
        last = stamp.last_stamp(table.path, head.version)
        partition_by = log.definition(table.path, head.version).partition_columns
        if last is None or last.stamp.st_id != table.id:
            _refuse_other_table(table, head)
            # The log keeps the sequence longer than the commits: Delta would skip one that it has seen.
            sequence = tables.pin(table.path, head.version).handle.transaction_version(table.id) or 0
            return Target(head.version, sequence, None, None, None, None, None, partition_by=partition_by)
        written = last.stamp
        # Also what slipped in between the version that our last commit was made of and that commit: Spark's writers
        # commit on top of rows that others append meanwhile.
        foreign = stamp.foreign_change(table.path, written.on_version, head.version, ours=last.version)
        frontier = written.frontier
        if progress.refresh_id == written.refresh_id and progress.frontier is not None:
            frontier = progress.frontier  # moved on over commits that changed nothing
        if foreign is None:
            self._trusted[table.id] = _Trusted(
                head, written.refresh_id, last.at, written.evaluated, written.fingerprint, partition_by
            )
            missed = progress.refresh_id != written.refresh_id or not progress.populated
            if missed and not self._catalog.read_only:
                self._heal(table, written)
        return Target(
            head.version,
            written.sequence,
            written.refresh_id,
            frontier,
            written.fingerprint,
            tampered=foreign,
            stamped_at=last.at,
            evaluated=written.evaluated,
            partition_by=partition_by,
        )

    def _own_head(self, table: StreamTable) -> Head:
        try:
            return self._heads.head(table.path)
        except (NotFound, SourceDropped) as error:
            raise NotFound(
                f"the table of {table.name} is gone",
                detail=error.detail or error.message,
                hint=f"`trickle repair {table.name}` makes it anew, empty until its next refresh",
            ) from error

    def stamp_is_old(self, target: Target, paths: tuple[str, ...]) -> bool:
        """Has half of the time passed for which these tables keep their history?"""
        if target.stamped_at is None:
            return False
        age_s = (self._clock.now() - target.stamped_at).total_seconds()
        return age_s > retention.LEAST_S / 2 and age_s > min(map(retention.kept_s, paths)) / 2

    def explain(
        self, error: CommitConflict | RefreshFailed, table: StreamTable, target: Target, refresh_id: str
    ) -> None:
        """Raises what really kept a refresh from its commit, where the writers call it something else."""
        head = self._heads.head(table.path)
        last = stamp.last_stamp(table.path, head.version)
        other = last is not None and last.version > target.version and last.stamp.refresh_id != refresh_id
        if other and isinstance(error, CommitConflict):
            raise RefreshOvertaken(
                f"another process refreshed {table.name} meanwhile", hint="nothing is left to do"
            ) from error
        if tables.is_on(log.definition(table.path, head.version).properties, "delta.appendOnly"):
            raise RefreshFailed(
                f"the table of {table.name} takes new rows only",
                detail="somebody set delta.appendOnly",
                hint=f"`trickle repair {table.name}` puts its properties right",
            ) from error

    def _heal(self, table: StreamTable, written: stamp.Stamp) -> None:
        """The catalog missed a commit, or lost it: the log is right."""
        self._catalog.change_progress(
            table.id,
            lambda now: replace(
                now,
                sequence=written.sequence,
                refresh_id=written.refresh_id,
                frontier=written.frontier,
                populated=True,
            ),
        )

    def committed(self, table: StreamTable, version: int, refresh_id: str) -> None:
        """This refresh wrote the newest version, and the catalog is about to say so.

        If it is not the newest by now, somebody else wrote, and it is looked at like any other. Nor if our commit is
        not what stands there: on a local disk Spark can, in an unlucky moment, put its own over that of another
        process, which then was told of a success that nobody will ever see.
        """
        head = self._heads.head(table.path)
        written = stamp.stamp_of(table.path, version)
        if head.version == version and written is not None and written.refresh_id == refresh_id:
            self._trusted[table.id] = _Trusted(
                head,
                refresh_id,
                head.at,
                written.evaluated,
                written.fingerprint,
                log.definition(table.path, version).partition_columns,
            )
        else:
            self._trusted.pop(table.id, None)

    def forget(self, table: StreamTable) -> None:
        self._trusted.pop(table.id, None)
        self._heads.forget(table.path)

    def heads(self, paths: Mapping[str, str]) -> Frontier:
        """The newest version of each source."""
        found = {}
        for name, path in paths.items():
            head = self.head(name, path)
            found[name] = SourceVersion(head.version, head.identity, head.table_id, head.witness)
        return found

    def has_moved(self, paths: Mapping[str, str], progress: Progress) -> bool:
        """Is there any version that it does not stand for? A source that cannot be looked at is worth a refresh."""
        if progress.frontier is None:
            return False
        try:
            return self.heads(paths) != progress.frontier
        except TrickleError:
            return True

    def changes(self, paths: Mapping[str, str], chosen: Frontier, frontier: Frontier) -> tuple[SourceMove, ...]:
        """What each source did between the frontier and the chosen versions."""
        return tuple(self._change(name, path, chosen[name], frontier.get(name)) for name, path in paths.items())

    def _change(self, name: str, path: str, chosen: SourceVersion, was: SourceVersion | None) -> SourceMove:
        if was is None:
            return SourceMove(name, path, chosen, None, Change.MIXED, None)
        if was == chosen:
            return SourceMove(name, path, chosen, was, Change.NONE, None)
        _same_history(name, path, chosen, was)
        summary = replace(summarise(path, was.version, chosen.version), ends=(was, chosen))
        kind = {ChangeKind.DATALESS: Change.NONE, ChangeKind.APPEND: Change.APPEND}.get(summary.kind, Change.MIXED)
        return SourceMove(name, path, chosen, was, kind, summary)


def _same_history(name: str, path: str, chosen: SourceVersion, was: SourceVersion) -> None:
    """A version number proves nothing: the commit behind it must be the one that was read."""
    hint = "REFRESH STREAM TABLE … FULL reads it anew"
    if chosen.table_id != was.table_id:
        raise SourceReplaced(
            f"the source {name} was replaced by another table",
            detail=f"its table id was {was.table_id} and is {chosen.table_id}",
            hint=hint,
        )
    if chosen.version < was.version:
        raise SourceRewound(
            f"the source {name} went back to version {chosen.version}",
            detail=f"version {was.version} was read before",
            hint=hint,
        )
    identity = heads.identity_of(path, was.version)
    if identity is None and not commits.went_through(path, was, chosen.version):
        raise SourceRewound(
            f"nothing tells that the source {name} ever had the version {was.version} that was read",
            detail=f"that commit was cleaned away, and what it did ({was.witness}) is not to be seen in later ones",
            hint=hint,
        )
    if identity is not None and identity != was.identity:
        raise SourceRewound(
            f"version {was.version} of the source {name} is not the commit that was read",
            detail="its log was rewritten or restored from a copy",
            hint=hint,
        )


def _refuse_other_table(table: StreamTable, head: Head) -> None:
    """Where no stamp tells, the table's properties say whose it is: another's rows are not ours to replace."""
    if log.definition(table.path, head.version).properties.get(hold.OWNER) != table.id:
        raise Tampered(
            f"another table is in the place of {table.name}",
            detail=f"what lies at {table.path} does not belong to it",
            hint=f"move it away; `trickle repair {table.name}` then makes its own table anew",
        )


def refuse_tampered(table: StreamTable, target: Target) -> None:
    if target.tampered is not None:
        raise Tampered(
            f"somebody else changed the rows or columns of {table.name}",
            detail=target.tampered,
            hint=makes_right(table, target),
        )


def makes_right(table: StreamTable, target: Target) -> str:
    """What helps a stream table that somebody else changed.

    With column mapping Delta changes no columns together with rows: these have to be put right first, and by hand.
    """
    refresh = f"`trickle refresh {table.name} --full`"
    definition = log.definition(table.path, target.version)
    if definition.properties.get("delta.columnMapping.mode", "none").lower() != "none":
        stored = {
            c.name: c.type for c in tables.columns_of(definition.schema) if not c.name.startswith(RESERVED_PREFIX)
        }
        wanted = {c.name: c.type for c in table.columns}
        steps = [f"drop the column {name}" for name in stored if name not in wanted]
        steps += [f"add the column {name} {type_}" for name, type_ in wanted.items() if name not in stored]
        steps += [
            f"give the column {name} the type {type_} again"
            for name, type_ in wanted.items()
            if stored.get(name, type_) != type_
        ]
        if steps:
            return f"by ALTER TABLE, {', '.join(steps)}; then {refresh}. Or drop it and create it again"
    return f"{refresh} makes it right again"


def read_by(move: SourceMove, mode: CdcMode) -> SourceMove:
    """From what its writers recorded, where they did and nobody wants it otherwise; or else from its files.

    An overwrite is recorded as all rows that went and all that came, each time anew: the files of both ends are less.
    """
    if move.summary is None or mode is CdcMode.CDF:
        return move
    by_files = mode is CdcMode.DIFF or move.overwritten or not records_its_changes(move)
    return replace(move, summary=replace(move.summary, by_files=by_files))


def records_its_changes(move: SourceMove) -> bool:
    """Can every row that changed since the frontier be read from the Change Data Feed?"""
    if move.change is Change.NONE or move.summary is None or move.was is None:
        return True
    if move.summary.cdf_lost_at is not None or not tables.cdf_enabled(move.path):
        return False
    if move.summary.lost_columns:
        return False  # Spark reads no feed over columns that went or became others, whoever uses them
    # It may have been switched on after the frontier.
    return not move.schema_changed or tables.is_on(
        tables.pin(move.path, move.was.version).properties, tables.CDF_PROPERTY
    )


def changes_are_gone(move: SourceMove) -> bool:
    if move.summary is None:
        return False
    by_files = move.summary.by_files
    return (differences.are_gone if by_files else commits.is_gone)(move.path, move.summary)


def past_is_readable(move: SourceMove) -> bool:
    return move.was is None or views.is_readable(move.path, move.was.version)


def without_changes(name: str) -> SourceWithoutChanges:
    return SourceWithoutChanges(
        f"the source {name} does not record its changes",
        detail="its Change Data Feed is off, and Trickle was not allowed to switch it on",
        hint="say --enable-cdf, set sources.enable_cdf = 'always', or add the source with --cdc auto",
    )
