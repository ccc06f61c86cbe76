"""The ways in which a refresh could be done, and what each would cost: values that every layer speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class CostPart:
    """A part of what a refresh costs."""

    what: str
    ms: float


class Way(StrEnum):
    """What a refresh could do."""

    NO_DATA = "no data"
    DIFFERENTIAL = "differential"
    FULL = "full"


@dataclass(frozen=True)
class Alternative:
    """One way to do a refresh, and what it would cost."""

    way: Way
    #: None for one that cannot be taken
    ms: float | None
    parts: tuple[CostPart, ...]
    #: what the estimate stands on; for one that cannot be taken, why not
    basis: str
    chosen: bool = False
