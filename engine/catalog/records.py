"""Values of the catalog that no door hands out as they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.records import Frontier


@dataclass(frozen=True)
class Progress:
    """How far one stream table has come: a cache of what its Delta log says, and the scheduler's notes."""

    st_id: str
    #: of the last refresh that committed; 0 when none has
    sequence: int = 0
    #: which refresh that was
    refresh_id: str | None = None
    frontier: Frontier | None = None
    #: the moment for which the rows are known to be right
    data_as_of_at: datetime | None = None
    populated: bool = False
    paused: bool = False
    consecutive_errors: int = 0
    #: since when nobody tries any more, after too many of them
    suspended_at: datetime | None = None
    error: str | None = None
    error_code: str | None = None
    error_hint: str | None = None
    error_at: datetime | None = None
    verified_at: datetime | None = None
    verified_equal: bool | None = None
    next_due_at: datetime | None = None
