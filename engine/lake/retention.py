"""For how long a table keeps what a later refresh reads: its log, and the files that are no longer part of it."""

from __future__ import annotations

import re

from engine.lake import log

#: what Delta takes where a table does not say
_LOG = ("delta.logRetentionDuration", "interval 30 days")
_FILES = ("delta.deletedFileRetentionDuration", "interval 1 week")

#: nobody keeps less in earnest, and asking more often than that costs more than it saves
LEAST_S = 3600.0

_PARTS = re.compile(r"(\d+)\s*(week|day|hour|minute|second)s?", re.IGNORECASE)
_UNIT_S = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def kept_s(path: str) -> float:
    """The shorter of both: a refresh needs the log to know what changed, and the files to read it."""
    properties = log.definition(path).properties
    return max(LEAST_S, min(_seconds(properties.get(key, usual)) for key, usual in (_LOG, _FILES)))


def _seconds(interval: str) -> float:
    """`interval 1 week`, `36 hours`: as Delta spells them. What nobody understands counts as the least."""
    return float(sum(int(count) * _UNIT_S[unit.lower()] for count, unit in _PARTS.findall(interval)))
