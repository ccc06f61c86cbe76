"""What commits of a table did to its rows: told from its log alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import unquote

from engine.errors import SourceHistoryLost
from engine.lake import files, log, polled, tables, undo
from engine.lake.tables import CDF_PROPERTY, is_on
from engine.records import Column, SourceVersion

#: so many files of changes are opened to count their rows where the commit does not say
_COUNTED_FILES = 64
#: a row takes at least so many bytes, roughly, where nobody counted
_BYTES_PER_ROW = 16


class ChangeKind(IntEnum):
    """What a commit does to the rows; the kind of several commits is the greatest of theirs."""

    DATALESS = 0
    APPEND = 1
    CHANGE = 2
    OVERWRITE = 3


@dataclass(frozen=True)
class DataFile:
    """A file of a version, with the vector that takes rows away from it."""

    #: as the log spells it
    path: str
    vector: str = ""
    #: that are left of it
    rows: int = 0


@dataclass(frozen=True)
class CommitChange:
    version: int
    kind: ChangeKind
    operation: str
    #: rows that the Change Data Feed has for it: an update counts twice
    rows_estimate: int
    #: how many rows more there are after it; None where nobody counted
    balance: int | None
    bytes: int
    has_change_files: bool
    deletion_vectors: bool
    #: the files that the Change Data Feed of this commit is made of, as the log names them
    files: tuple[str, ...]
    #: which DML through Trickle it is, and which one it takes back
    dml: str | None = None
    undoes: str | None = None

    @property
    def delta_rs_is_right(self) -> bool:
        """delta-rs reads change files and plain added files rightly; with deletion vectors it guesses.

        Names with encoded characters, such as those of some partitions, it encodes once more and does not find.
        """
        if self.kind is ChangeKind.DATALESS:
            return True
        return not any("%" in file for file in self.files) and (self.has_change_files or not self.deletion_vectors)


@dataclass(frozen=True)
class ChangeSummary:
    after_version: int
    upto_version: int
    commits: tuple[CommitChange, ...]
    #: the definition changed in between: columns before and after, if they differ
    columns_before: tuple[Column, ...] | None = None
    columns_after: tuple[Column, ...] | None = None
    #: those, in lower case, that are stored as another column than before, under the same name
    exchanged: frozenset[str] = frozenset()
    metadata_changed: bool = False
    protocol_changed: bool = False
    #: a version in between from which on changes were not recorded
    cdf_lost_at: int | None = None
    #: the table was replaced by another one
    table_id_after: str | None = None
    #: it is read from the files that only one of the versions has, and not from what writers recorded
    by_files: bool = False
    #: which commits the versions are; None where nobody asked
    ends: tuple[SourceVersion, SourceVersion] | None = None

    @property
    def kind(self) -> ChangeKind:
        return max((commit.kind for commit in self.commits), default=ChangeKind.DATALESS)

    @property
    def only_grew(self) -> bool:
        """By what anybody meant to do: DML that was taken back was not meant, nor was taking it back."""
        undone = {commit.undoes for commit in self.commits} - {None}
        meant = (commit.kind for commit in self.commits if commit.undoes is None and commit.dml not in undone)
        return max(meant, default=ChangeKind.DATALESS) <= ChangeKind.APPEND

    @property
    def rows_estimate(self) -> int:
        return sum(commit.rows_estimate for commit in self.commits)

    @property
    def balance(self) -> int | None:
        """How many rows more there are after it; None where nobody counted."""
        found = [commit.balance for commit in self.commits]
        return sum(each for each in found if each is not None) if None not in found else None

    @property
    def bytes(self) -> int:
        return sum(commit.bytes for commit in self.commits)

    @property
    def has_change_files(self) -> bool:
        return any(commit.has_change_files for commit in self.commits)

    @property
    def deletion_vectors(self) -> bool:
        return any(commit.deletion_vectors for commit in self.commits)

    @property
    def schema_changed(self) -> bool:
        return self.columns_before != self.columns_after

    @property
    def lost_columns(self) -> bool:
        """Are columns of before gone, of another type, or others under the same name?"""
        after = {column.name: column.type for column in self.columns_after or ()}
        return bool(self.exchanged) or any(
            after.get(column.name) != column.type for column in self.columns_before or ()
        )

    @property
    def delta_rs_is_right(self) -> bool:
        return (
            all(commit.delta_rs_is_right for commit in self.commits) and not self.schema_changed and not self.exchanged
        )


def summarise(path: str, after_version: int, upto_version: int) -> ChangeSummary:
    """From the commit files alone: no data is read, and Spark is not asked."""
    commits: list[CommitChange] = []
    definitions: list[dict[str, Any]] = []
    protocol_changed = False
    cdf_lost_at: int | None = None
    for version in range(after_version + 1, upto_version + 1):
        found = _actions(path, version, after_version)
        commits.append(_classified(path, version, found))
        for action in found:
            protocol_changed = protocol_changed or "protocol" in action
            if "metaData" in action:
                definitions.append(action["metaData"])
                configuration = action["metaData"].get("configuration") or {}
                if cdf_lost_at is None and not is_on(configuration, CDF_PROPERTY):
                    cdf_lost_at = version
    if not definitions:
        return ChangeSummary(after_version, upto_version, tuple(commits), protocol_changed=protocol_changed)
    last = log.Definition(upto_version, definitions[-1], {})
    before = log.definition(path, after_version) if after_version >= 0 else None
    was = before.stored_as if before is not None else {}
    return ChangeSummary(
        after_version,
        upto_version,
        tuple(commits),
        columns_before=tables.columns_of(before.schema) if before is not None else None,
        columns_after=tables.columns_of(last.schema),
        exchanged=frozenset(name for name, stored in last.stored_as.items() if was.get(name, stored) != stored),
        metadata_changed=True,
        protocol_changed=protocol_changed,
        cdf_lost_at=cdf_lost_at,
        table_id_after=last.table_id,
    )


def _actions(path: str, version: int, after_version: int) -> list[dict[str, Any]]:
    """Of a commit without which nobody knows what happened after that version."""
    found = log.actions(path, version)
    if found is None:
        raise SourceHistoryLost(
            f"The history of {path} no longer reaches back to version {after_version}.",
            detail=f"The commit file of version {version} is gone.",
            hint="The stream table has to be reinitialized; raise delta.logRetentionDuration of the source.",
        )
    return found


def went_through(path: str, was: SourceVersion, upto_version: int) -> bool:
    """Did this history pass a version whose commit is cleaned away? The file of its witness tells.

    Commits that came later mention it as what was there, or nobody does and it still is. Without a witness, of a
    table that never had a file, there is nothing to be wrong about.
    """
    if not was.witness:
        return True
    kind, name = was.witness[0], was.witness[1:]
    was_there = None
    for version in range(was.version + 1, upto_version + 1):
        found = log.actions(path, version) or []
        kinds = {each for action in found for each in ("add", "remove") if _is_of(action.get(each), name)}
        if kinds:
            was_there = "remove" in kinds
            break
    if was_there is None:
        was_there = name in {each.rsplit("/", 1)[-1] for each in files.of(path, upto_version).sizes}
    return was_there is (kind == "+")


@dataclass(frozen=True)
class FilesBetween:
    """What tells two versions apart."""

    #: only the later one has these
    came: tuple[DataFile, ...]
    #: only the earlier one has these
    went: tuple[DataFile, ...]

    @property
    def touched(self) -> tuple[DataFile, ...]:
        return self.came + self.went


def files_between(path: str, summary: ChangeSummary) -> FilesBetween:
    came: dict[tuple[str, str], DataFile] = {}
    went: dict[tuple[str, str], DataFile] = {}
    for version in range(summary.after_version + 1, summary.upto_version + 1):
        found = _actions(path, version, summary.after_version)
        # what a commit removes was there before it, also where it adds the same file with another vector
        for kind, here, there in (("remove", went, came), ("add", came, went)):
            for action in (each[kind] for each in found if kind in each):
                file = _data_file(path, action)
                key = (file.path, file.vector)
                if there.pop(key, None) is None:
                    here[key] = file
    return FilesBetween(tuple(came.values()), tuple(went.values()))


def _data_file(path: str, action: dict[str, Any]) -> DataFile:
    vector = action.get("deletionVector") or {}
    named = f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}@{vector.get('offset')}" if vector else ""
    return DataFile(str(action["path"]), named, _rows_of_file(path, action))


def _is_of(action: dict[str, Any] | None, name: str) -> bool:
    return action is not None and log.file_name(action) == name


def is_gone(path: str, summary: ChangeSummary) -> bool:
    """Was a file removed that the changes have to be read from? Remote folders are not asked."""
    folder = log.local_path(path)
    if folder is None:
        return False
    return any(not (folder / unquote(file)).exists() for commit in summary.commits for file in commit.files)


def _classified(path: str, version: int, found: list[dict[str, Any]]) -> CommitChange:
    said: dict[str, Any] = next((action["commitInfo"] for action in found if "commitInfo" in action), {})
    info = log.info_of(version, said)
    added = [action["add"] for action in found if _changes(action.get("add"))]
    removed = [action["remove"] for action in found if _changes(action.get("remove"))]
    change_files = [action["cdc"] for action in found if "cdc" in action]
    vectors = any(file.get("deletionVector") for file in (*added, *removed))
    looked = polled.change_in(info.user_metadata)
    if not (added or removed or change_files):
        kind = ChangeKind.DATALESS
    elif looked is not None:
        kind = ChangeKind.CHANGE if looked.went else ChangeKind.APPEND
    elif _is_overwrite(info, added, change_files):
        kind = ChangeKind.OVERWRITE
    elif removed or change_files:
        kind = ChangeKind.CHANGE
    else:
        kind = ChangeKind.APPEND
    files = change_files or [*added, *removed]
    rows, balance = _rows(path, info, added, removed, change_files)
    if looked is not None:
        rows, balance = looked.came + looked.went, looked.came - looked.went
    return CommitChange(
        version,
        kind,
        info.operation,
        rows,
        balance,
        sum(int(file.get("size") or 0) for file in files),
        bool(change_files),
        vectors,
        tuple(str(file["path"]) for file in files),
        undo.mark_of_dml(info.user_metadata),
        undo.mark_of_undoing(info.user_metadata),
    )


def _changes(file: dict[str, Any] | None) -> bool:
    return bool(file) and bool((file or {}).get("dataChange", True))


def _is_overwrite(info: log.CommitInfo, added: list[dict[str, Any]], change_files: list[dict[str, Any]]) -> bool:
    """Commits that put one state of the table in the place of another."""
    operation = info.operation.upper()
    if undo.is_undo(info.user_metadata):
        return False
    if operation in ("RESTORE", "TRUNCATE", "CLONE") or "REPLACE TABLE" in operation:
        return True
    if operation == "WRITE":
        mode = str(info.parameters.get("mode", "")).lower()
        return mode == "overwrite" and not info.parameters.get("predicate")
    # a DELETE that needs no change files removed whole files: all of the table, or whole partitions
    predicate = str(info.parameters.get("predicate", "")).strip()
    return operation == "DELETE" and not added and not change_files and predicate in ("", "[]", '["true"]')


def _rows(
    path: str,
    info: log.CommitInfo,
    added: list[dict[str, Any]],
    removed: list[dict[str, Any]],
    change_files: list[dict[str, Any]],
) -> tuple[int, int | None]:
    """Changed, and more than before."""
    said = _rows_said(info)
    balance = _balance_said(info)
    if change_files:
        return said or _counted(path, change_files), balance if said else None
    live: dict[str, int] = {}
    for file, sign in (*((file, 1) for file in added), *((file, -1) for file in removed)):
        path_of_file = str(file["path"])
        live[path_of_file] = live.get(path_of_file, 0) + sign * _rows_of_file(path, file)
    found = sum(map(abs, live.values()))
    # files that were rewritten as a whole carry most of their rows along
    return min(said, found) if said else found, balance if said else sum(live.values())


def _rows_of_file(path: str, file: dict[str, Any]) -> int:
    vector = file.get("deletionVector") or {}
    try:
        counted = json.loads(file.get("stats") or "{}").get("numRecords")
    except ValueError:
        counted = None
    if counted is None:  # Spark does not repeat the statistics of a file when it removes it
        counted = _counted(path, [file])
    return max(0, int(counted) - int(vector.get("cardinality") or 0))


#: what commits of these operations count, how many rows of a change that is, and how many more rows there are by it
_METRICS = {
    "UPDATE": (("numUpdatedRows", 2, 0), ("num_updated_rows", 2, 0)),
    "DELETE": (("numDeletedRows", 1, -1), ("num_deleted_rows", 1, -1)),
    "MERGE": (
        ("numTargetRowsInserted", 1, 1),
        ("numTargetRowsUpdated", 2, 0),
        ("numTargetRowsDeleted", 1, -1),
        ("num_target_rows_inserted", 1, 1),
        ("num_target_rows_updated", 2, 0),
        ("num_target_rows_deleted", 1, -1),
    ),
}


def _rows_said(info: log.CommitInfo) -> int:
    """Changed rows, counted by the commit itself; 0 where it does not say."""
    return sum(count * rows for count, rows, _ in _metrics(info))


def _balance_said(info: log.CommitInfo) -> int:
    return sum(count * more for count, _, more in _metrics(info))


def _metrics(info: log.CommitInfo) -> list[tuple[int, int, int]]:
    known, said = _METRICS.get(info.operation.upper(), ()), info.metrics
    return [(int(said[name]), rows, more) for name, rows, more in known if str(said.get(name, "")).isdigit()]


def _counted(path: str, found: list[dict[str, Any]]) -> int:
    """The rows of some files: by their own ends where they are at hand, else guessed from their size."""
    import pyarrow.parquet as pq

    folder = log.local_path(path)
    if folder is not None and len(found) <= _COUNTED_FILES:
        try:
            return sum(int(pq.read_metadata(folder / unquote(str(file["path"]))).num_rows) for file in found)
        except OSError:
            return _guessed(found)
    return _guessed(found)


def _guessed(found: list[dict[str, Any]]) -> int:
    return sum(int(file.get("size") or 0) for file in found) // _BYTES_PER_ROW
