"""The stamp: what each commit of ours says about the refresh that made it. The log is the truth, not the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.codec import from_plain, to_plain
from engine.lake import log
from engine.records import Evaluated, Frontier, Outcome, SourceVersion

FORMAT = 1
#: our key among what other writers may put into a commit's metadata
_KEY = "trickle"


@dataclass(frozen=True)
class Stamp:
    st_id: str
    refresh_id: str
    #: grows by one with each commit of this stream table
    sequence: int
    outcome: Outcome
    #: the versions of the direct sources that the rows stand for
    frontier: Frontier
    #: the same for the sources at the bottom, through all stream tables between
    base_frontier: Frontier
    fingerprint: str
    lease_epoch: int
    #: the version of the stream table that the refresh read, and computed its change of
    on_version: int
    format: int = FORMAT
    #: of a query whose answer changes by itself: the moment that it was computed for
    evaluated: Evaluated | None = None

    def to_json(self) -> str:
        evaluated = {} if self.evaluated is None else {"evaluated": to_plain(self.evaluated)}
        return json.dumps(
            {
                _KEY: {
                    **evaluated,
                    "format": self.format,
                    "st_id": self.st_id,
                    "refresh_id": self.refresh_id,
                    "sequence": self.sequence,
                    "outcome": self.outcome.value,
                    "frontier": _frontier_out(self.frontier),
                    "base_frontier": _frontier_out(self.base_frontier),
                    "fingerprint": self.fingerprint,
                    "lease_epoch": self.lease_epoch,
                    "on_version": self.on_version,
                }
            },
            separators=(",", ":"),
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str | None) -> Stamp | None:
        """None for what is not a stamp of ours, or of a format that came later."""
        if not text or _KEY not in text:
            return None
        try:
            said = json.loads(text)[_KEY]
            if int(said["format"]) > FORMAT:
                return None
            return Stamp(
                st_id=str(said["st_id"]),
                refresh_id=str(said["refresh_id"]),
                sequence=int(said["sequence"]),
                outcome=Outcome(said["outcome"]),
                frontier=_frontier_in(said["frontier"]),
                base_frontier=_frontier_in(said["base_frontier"]),
                fingerprint=str(said["fingerprint"]),
                lease_epoch=int(said["lease_epoch"]),
                on_version=int(said["on_version"]),
                format=int(said["format"]),
                evaluated=from_plain(Evaluated, said["evaluated"]) if "evaluated" in said else None,
            )
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class StampedVersion:
    stamp: Stamp
    version: int
    at: datetime | None


def last_stamp(path: str, upto_version: int) -> StampedVersion | None:
    """The newest stamp at or below a version; None where the log has none (any more)."""
    for version in range(upto_version, -1, -1):
        info = log.commit_info(path, version)
        if info is None:
            return None
        stamp = Stamp.from_json(info.user_metadata)
        if stamp is not None:
            return StampedVersion(stamp, version, info.at)
    return None


def foreign_change(path: str, after_version: int, upto_version: int, ours: int | None = None) -> str | None:
    """The first commit in between that changes rows or columns, but for the one that is `ours`, in words.

    Another stamp makes nothing better: it says of rows that we did not see what they were for somebody else.
    """
    for version in range(after_version + 1, upto_version + 1):
        if version == ours:
            continue
        found = log.actions(path, version)
        if found is None:
            return f"version {version}, whose commit file is gone"
        said: dict[str, Any] = next((action["commitInfo"] for action in found if "commitInfo" in action), {})
        info = log.info_of(version, said)
        if any(map(_changes_rows, found)) or _changes_columns(path, version, found):
            at = f" at {info.at:%Y-%m-%d %H:%M:%S} UTC" if info.at else ""
            return f"{info.operation} in version {version}{at}, written by {info.engine}"
    return None


def find_refresh(path: str, refresh_id: str, after_version: int) -> int | None:
    """The version that a refresh wrote. None tells that its commit was skipped without a word."""
    for info in _following(path, after_version):
        stamp = Stamp.from_json(info.user_metadata)
        if stamp is not None and stamp.refresh_id == refresh_id:
            return info.version
    return None


def stamp_of(path: str, version: int) -> Stamp | None:
    """Of that version alone; None for another writer's."""
    info = log.commit_info(path, version)
    return Stamp.from_json(info.user_metadata) if info is not None else None


def _following(path: str, after_version: int) -> Iterator[log.CommitInfo]:
    version = after_version + 1
    while (info := log.commit_info(path, version)) is not None:
        yield info
        version += 1


def _changes_rows(action: dict[str, Any]) -> bool:
    file = action.get("add") or action.get("remove")
    return bool(file and file.get("dataChange", True)) or "cdc" in action


def _changes_columns(path: str, version: int, found: list[dict[str, Any]]) -> bool:
    """Columns that went, came or changed places, which rows need not be written for."""
    new = next((action["metaData"] for action in found if "metaData" in action), None)
    if new is None:
        return False
    return log.Definition(version, new, {}).stored_as != log.definition(path, version - 1).stored_as


def _frontier_out(frontier: Frontier) -> dict[str, list[object]]:
    return {name: [at.version, at.identity, at.table_id, at.witness] for name, at in frontier.items()}


def _frontier_in(said: dict[str, list[Any]]) -> Frontier:
    return {
        name: SourceVersion(int(version), str(identity), str(table_id), str(witness))
        for name, (version, identity, table_id, witness) in said.items()
    }
