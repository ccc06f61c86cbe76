"""What travels between the engine and the screen: one frozen picture one way, requests the other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.records import Overview, RefreshRecord, StreamTable, StreamTableStatus
from engine.results import StreamTableExplanation, VerifyResult


@dataclass(frozen=True)
class Sample:
    """How old a stream table was seen to be."""

    at: datetime
    staleness_s: float


@dataclass(frozen=True)
class Focus:
    """More about the one stream table that is looked at."""

    name: str
    table: StreamTable | None = None
    #: oldest first
    history: tuple[RefreshRecord, ...] = ()
    #: oldest first
    staleness: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Everything one frame is drawn from."""

    overview: Overview
    focus: Focus | None = None

    def table(self, name: str | None) -> StreamTableStatus | None:
        return next((table for table in self.overview.tables if table.name == name), None)

    def focus_on(self, name: str | None) -> Focus | None:
        """The focus, if it is already the one asked for."""
        return self.focus if self.focus is not None and self.focus.name == name else None


@dataclass(frozen=True)
class UiSettings:
    theme: str = "night"
    ascii: bool = False
    no_color: bool = False


# Requests: what the screen asks the engine to do.


@dataclass(frozen=True)
class Refresh:
    name: str
    full: bool = False


@dataclass(frozen=True)
class Pause:
    name: str


@dataclass(frozen=True)
class Resume:
    name: str


@dataclass(frozen=True)
class Cancel:
    name: str


@dataclass(frozen=True)
class Verify:
    name: str


@dataclass(frozen=True)
class Drop:
    name: str
    cascade: bool = False


@dataclass(frozen=True)
class Reinitialize:
    name: str


@dataclass(frozen=True)
class Maintain:
    name: str


@dataclass(frozen=True)
class Rename:
    name: str
    new_name: str


@dataclass(frozen=True)
class Explain:
    name: str


@dataclass(frozen=True)
class RunSql:
    text: str


Request = Refresh | Pause | Resume | Cancel | Verify | Drop | Reinitialize | Maintain | Rename | Explain | RunSql


# Answers: what came of a request that went through.


@dataclass(frozen=True)
class Done:
    """One line for the message row; notices below it."""

    text: str
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    result: VerifyResult


@dataclass(frozen=True)
class Explained:
    explanation: StreamTableExplanation


@dataclass(frozen=True)
class Told:
    """An answer of several lines."""

    text: str


@dataclass(frozen=True)
class Rows:
    """The result of a statement, as text."""

    statement: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    #: which columns are numbers, and so stand right
    numeric: tuple[bool, ...]
    total: int
    notices: tuple[str, ...] = ()


Answer = Done | Verified | Explained | Told | Rows
