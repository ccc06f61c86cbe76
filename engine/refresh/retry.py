"""After a failure: at once again, later again, or not before somebody has looked. Types decide, never texts."""

from __future__ import annotations

import random
from collections.abc import Iterator

from engine.errors import (
    CatalogBusy,
    CommitConflict,
    RefreshOvertaken,
    SourceReplaced,
    SourceSchemaChanged,
    SparkUnavailable,
    StorageFull,
    TrickleError,
)

#: somebody else was in the way for a moment: a second look at what there is now may well succeed
_AT_ONCE = (CommitConflict, CatalogBusy)
#: the world around is not as it should be, which is no fault of the stream table's
_PASSES = (*_AT_ONCE, StorageFull, SparkUnavailable)

#: somebody changed a source on purpose: trying again would find the same
STOPS = (SourceSchemaChanged, SourceReplaced)

FIRST_PAUSE_S = 0.05


def at_once(error: TrickleError) -> bool:
    return isinstance(error, _AT_ONCE) and not isinstance(error, RefreshOvertaken)


def passes(error: TrickleError) -> bool:
    """May the same refresh succeed some time later, although nobody does anything?"""
    return isinstance(error, _PASSES) or error.retryable


def pauses_s(times: int, chance: random.Random) -> Iterator[float]:
    """Before each further try: twice as long each time, and never the same for two who met."""
    for number in range(times):
        yield FIRST_PAUSE_S * 2**number * (0.5 + chance.random())
