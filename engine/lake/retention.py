"""For how long a table keeps what a later refresh reads: its log, and the files that are no longer part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.lake import log
from engine.lake.commits import ChangeSummary

#: what Delta takes where a table does not say
_LOG = ("delta.logRetentionDuration", "interval 30 days")
_FILES = ("delta.deletedFileRetentionDuration", "interval 1 week")

#: nobody keeps less in earnest, and asking more often than that costs more than it saves
LEAST_S = 3600.0

_PARTS = re.compile(r"(\d+)\s*(week|day|hour|minute|second)s?", re.IGNORECASE)
_UNIT_S = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


@dataclass(frozen=True)
class HeadRoom:
    """For how long something that is still to be read will certainly be there."""

    left_s: float
    why: str


def files_s(path: str) -> float:
    """How long files stay that are no longer part of it."""
    key, usual = _FILES
    return max(LEAST_S, _seconds(log.definition(path).properties.get(key, usual)))


def kept_s(path: str) -> float:
    """The shorter of both: a refresh needs the log to know what changed, and the files to read it."""
    properties = log.definition(path).properties
    return max(LEAST_S, min(_kept(properties, what) for what in (_LOG, _FILES)))


def head_room(path: str, summary: ChangeSummary, now: datetime) -> HeadRoom | None:
    """The least of what the log and the files of these commits have; None where there are none to be read.

    Nobody cleans up at once when the time has come: from then on anybody may.
    """
    properties = log.definition(path).properties
    log_s, files_s = _kept(properties, _LOG), _kept(properties, _FILES)
    found: list[HeadRoom] = []
    for commit in summary.commits:
        version = commit.version
        written_at = _written_at(path, version)
        if written_at is None:
            continue
        age_s = (now - written_at).total_seconds()
        found.append(HeadRoom(log_s - age_s, f"the log may forget version {version}"))
        if commit.has_change_files:
            found.append(HeadRoom(files_s - age_s, f"VACUUM may remove the changes of version {version}"))
        removed_at = min(_removed_at(path, version), default=None)
        if removed_at is not None:
            left_s = files_s - (now - removed_at).total_seconds()
            found.append(HeadRoom(left_s, f"VACUUM may remove files that version {version} replaced"))
    return min(found, key=lambda each: each.left_s, default=None)


def _written_at(path: str, version: int) -> datetime | None:
    """By the clock of the store, as whoever cleans up has it; of a remote table by what the commit says."""
    signature = log.signature(path, version)
    if signature is not None:
        return datetime.fromtimestamp(signature[0] / 1e9, UTC)
    info = log.commit_info(path, version)
    return None if info is None else info.at


def _removed_at(path: str, version: int) -> Iterator[datetime]:
    for action in log.actions(path, version) or ():
        removed: dict[str, Any] = action.get("remove") or {}
        if removed.get("deletionTimestamp"):
            yield datetime.fromtimestamp(int(removed["deletionTimestamp"]) / 1000, UTC)


def _kept(properties: Mapping[str, str], what: tuple[str, str]) -> float:
    key, usual = what
    return _seconds(properties.get(key, usual))


def _seconds(interval: str) -> float:
    """`interval 1 week`, `36 hours`: as Delta spells them. What nobody understands counts as the least."""
    return float(sum(int(count) * _UNIT_S[unit.lower()] for count, unit in _PARTS.findall(interval)))
