"""Every way in which Trickle can fail, as one tree.

    TrickleError
    ├── QueryError                 the text of a query or statement
    │   ├── QueryParseError        it is not SQL, or not ours
    │   ├── UnsupportedOperator    SQL that cannot be maintained differentially
    │   ├── VolatileFunction       an answer that changes by itself
    │   ├── QueryTooComplex        beyond max_parse_depth or max_parse_nodes
    │   └── CycleDetected          a stream table would read itself
    ├── RequestError               the right question about the wrong thing
    │   ├── NotFound, AlreadyExists, InvalidArgument, ConfigError
    │   └── PermissionDenied, DependentsExist, LeaseHeld, ReadOnly
    ├── SourceError                a source is not what it was
    │   ├── SourceSchemaChanged, SourceReplaced, SourceRewound, SourceDropped
    │   └── SourceHistoryLost, SourceWithoutChanges
    ├── RefreshError               one refresh of one stream table
    │   ├── CommitConflict         somebody else was faster (retried)
    │   ├── NegativeMultiplicity   a row would be deleted that is not there
    │   ├── Tampered               somebody else wrote the stream table
    │   ├── ChangeUndone, ChangeKept       DML whose dependents could not follow
    │   ├── RefreshSkipped, RefreshOvertaken, RefreshCancelled, NotPopulated, OutOfMemory
    │   └── RefreshFailed          Spark, the lake or the disk refused a step
    │       └── FailsOnValue       the query fails on a row
    ├── WorkspaceError             the folder .trickle/
    │   ├── WorkspaceMissing, WorkspaceTooNew, WorkspaceTooOld, CatalogCorrupt
    │   └── CatalogBusy, StorageFull       (retried)
    ├── SparkUnavailable           no Java, no jars, no session
    └── InternalError              a bug of ours

An error tells what happened (`message`), the fact behind it (`detail`) and the way out (`hint`).
Handlers decide by type and by `retryable`, never by text.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True)
class Position:
    """A place in a query, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class TrickleError(Exception):
    """What happened, the detail and the way out."""

    #: the exit code of the CLI: 2 usage, 3 refused, 4 failed
    exit_code: ClassVar[int] = 4
    #: may the same request succeed when it is simply made again?
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
        fragment: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        #: the part of the user's text that this is about
        self.fragment = fragment

    def naming(self, names: Mapping[str, str]) -> Self:
        """The same error, speaking of tables by the names that people gave to these paths."""
        message = self.message
        for path in sorted(names, key=len, reverse=True):
            message = message.replace(path, names[path])
        if message == self.message:
            return self
        named = copy(self)
        named.args, named.message = (message,), message
        return named

    @property
    def code(self) -> str:
        """The stable name of this kind of error."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.message} ({self.position})" if self.position else self.message

    def as_dict(self) -> dict[str, object]:
        return {
            "error": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "line": self.position.line if self.position else None,
            "column": self.position.column if self.position else None,
            "fragment": self.fragment,
            "retryable": self.retryable,
        }


class QueryError(TrickleError):
    exit_code = 3


class QueryParseError(QueryError):
    exit_code = 2
    #: was it Spark's parser that could not read it?
    by_parser = False


class UnsupportedOperator(QueryError):
    pass


class VolatileFunction(QueryError):
    pass


class QueryTooComplex(QueryError):
    pass


class CycleDetected(QueryError):
    pass


class RequestError(TrickleError):
    exit_code = 3


class NotFound(RequestError):
    pass


class AlreadyExists(RequestError):
    pass


class InvalidArgument(RequestError):
    exit_code = 2


class ConfigError(RequestError):
    exit_code = 2


class PermissionDenied(RequestError):
    pass


class DependentsExist(RequestError):
    pass


class LeaseHeld(RequestError):
    pass


class ReadOnly(RequestError):
    pass


class SourceError(TrickleError):
    exit_code = 3


class SourceSchemaChanged(SourceError):
    pass


class SourceReplaced(SourceError):
    pass


class SourceRewound(SourceError):
    pass


class SourceDropped(SourceError):
    pass


class SourceHistoryLost(SourceError):
    pass


class SourceWithoutChanges(SourceError):
    """The source has no Change Data Feed and Trickle may not, or cannot, switch it on."""


class RefreshError(TrickleError):
    pass


class CommitConflict(RefreshError):
    retryable = True


class NegativeMultiplicity(RefreshError):
    pass


class Tampered(RefreshError):
    pass


class ChangeUndone(RefreshError):
    """DML had no net effect, because what reads its source could not follow."""


class ChangeKept(RefreshError):
    """DML stays although what reads its source could not follow: somebody else has committed since."""


class RefreshSkipped(RefreshError):
    exit_code = 3


class RefreshOvertaken(RefreshError):
    """Another process refreshed it meanwhile."""

    exit_code = 3
    retryable = True


class RefreshCancelled(RefreshError):
    pass


class NotPopulated(RefreshError):
    exit_code = 3


class RefreshFailed(RefreshError):
    """Spark, the lake or the disk refused a step; `detail` carries what they said."""


class FailsOnValue(RefreshFailed):
    """The query itself fails on a row, as it would when somebody runs it."""


class OutOfMemory(RefreshError):
    """Spark had not enough memory for it, not even with little at a time."""


class WorkspaceError(TrickleError):
    exit_code = 3


class WorkspaceMissing(WorkspaceError):
    exit_code = 2


class WorkspaceTooNew(WorkspaceError):
    pass


class WorkspaceTooOld(WorkspaceError):
    pass


class CatalogCorrupt(WorkspaceError):
    pass


class CatalogBusy(WorkspaceError):
    exit_code = 4
    retryable = True


class StorageFull(WorkspaceError):
    exit_code = 4
    retryable = True


class SparkUnavailable(TrickleError):
    pass


class InternalError(TrickleError):
    pass
