"""What Spark, delta-rs and the system say when something fails, as Trickle's typed errors.

Decided by error classes, conditions and errno. Text is read only where nothing else is handed on: the
marker that Trickle itself plants in a merge (`REFUSED`), and the system's own numbers inside Rust's words.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.errors import (
    CommitConflict,
    NegativeMultiplicity,
    NotFound,
    PermissionDenied,
    Position,
    QueryParseError,
    RefreshCancelled,
    RefreshFailed,
    SparkUnavailable,
    StorageFull,
    TrickleError,
    UnsupportedOperator,
)
from engine.lake import log

#: true of a JVM that ended by itself: whoever wants Spark asks for a start of it first
STARTS_AGAIN = "The next refresh or query starts Spark again"

#: stands in the error of a merge that met a row it must not meet
REFUSED = "trickle_refused"

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)

#: Java's exceptions, by simple class name
_CONFLICTS = {
    "ConcurrentWriteException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "DeltaConcurrentModificationException",
    "FileAlreadyExistsException",
}
_ACCESS = {"AccessDeniedException", "AccessControlException", "ReadOnlyFileSystemException"}
_CANCELLED = {"SPARK_JOB_CANCELLED", "OPERATION_CANCELED"}
_MULTIPLE_MATCHES = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
#: with column mapping and a Change Data Feed
_COLUMNS_STAY = "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"
_UNKNOWN_TABLE = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
)


def typed(error: BaseException, doing: str, path: str | Path | None = None) -> TrickleError:
    """The typed error for what went wrong while `doing` something, such as 'The commit to orders'.

    `path` is the table that was being written, if one was: its disk and its rights are looked at.
    """
    if isinstance(error, TrickleError):
        return error
    if is_lost_connection(error):
        return cut_off(error, doing)
    if isinstance(error, OSError):
        return _of_system(error, doing, path)
    text = _everything_said(error)
    if REFUSED in text:
        return NegativeMultiplicity(
            f"{doing} was refused: the change does not fit the stored rows.",
            detail=_refusal(text),
            hint="Verify the stream table, then reinitialize it.",
        )
    if _no_space(text, path):
        return _full(doing, text)
    if _is_denied(text, path):
        return _denied(doing, text)
    if type(error).__module__.startswith(("pyspark", "py4j")):
        return _of_spark(error, doing)
    if type(error).__module__ in ("_internal", "deltalake.exceptions"):
        return _of_delta_rs(error, doing)
    return RefreshFailed(f"{doing} failed.", detail=f"{type(error).__name__}: {_said(error)}")


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """A panic in Rust is no Exception to Python, so that nothing that looks after failures would see it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RefreshFailed(
            "delta-rs broke down.", detail=_said(error), hint="The log of the program has more; nothing was changed."
        ) from error


def cut_off(error: BaseException, doing: str) -> SparkUnavailable:
    """The typed error for what failed because the JVM died meanwhile, whatever it looked like."""
    return SparkUnavailable(
        f"{doing} was cut off: Spark is gone.",
        detail=_said(error),
        hint=f"{STARTS_AGAIN}; the JVM's last words are in the logs folder.",
    )


#: of what Spark says of a query, by the first part of its name
_WAYS_OUT = {
    "AMBIGUOUS_REFERENCE": "Say which is meant, as in table.column.",
    "DATATYPE_MISMATCH": "Cast one of the sides.",
    "GROUP_BY_AGGREGATE": "Group by what is aggregated, not by the aggregate.",
    "INCOMPATIBLE_COLUMN_TYPE": "Cast the column in one of the branches.",
    "INVALID_WHERE_CONDITION": "Conditions on aggregates and windows belong into HAVING and QUALIFY.",
    "MISSING_AGGREGATION": "Add the column to GROUP BY, or take any_value() of it.",
    "MISSING_GROUP_BY": "Add GROUP BY with the columns that are not aggregated.",
    "NUM_COLUMNS_MISMATCH": "Give all branches the same columns; NULL AS name fills a gap.",
    "WRONG_NUM_ARGS": "Look up the function's arguments: DESCRIBE FUNCTION in Spark tells them.",
}


def of_query(error: BaseException, query: str) -> TrickleError:
    """The typed error for a query that Spark does not accept, with the place where Spark gives one."""
    condition = _condition(error) or ""
    place = _position(error, query)
    parameters = _parameters(error)
    root = condition.split(".")[0]
    if root in _UNKNOWN_TABLE:
        name = (parameters.get("relationName") or parameters.get("path") or "").replace("`", "")
        return NotFound(
            f"There is no table {name}." if name else "The query names a table that does not exist.",
            detail=_headline(error),
            hint="`trickle source add NAME --path P` makes a Delta table known; SHOW SOURCES lists what is.",
            position=place,
        )
    if root.startswith("UNRESOLVED_"):
        name = (parameters.get("objectName") or parameters.get("routineName") or "").replace("`", "")
        known = (parameters.get("proposal") or "").replace("`", "")
        kind = "function" if "ROUTINE" in root else "column"
        return QueryParseError(
            f"There is no {kind} {name}." if name else f"The query names a {kind} that does not exist.",
            detail=_headline(error),
            hint=f"Did you mean one of: {known}?" if known else f"Only a {kind} that Spark knows can be named.",
            position=place,
        )
    if type(error).__name__ == "ParseException":
        refused = QueryParseError("This is not SQL.", detail=_headline(error), position=place)
        refused.by_parser = True
        return refused
    if type(error).__name__ == "AnalysisException" or root == "INTERNAL_ERROR":
        hint = _WAYS_OUT.get(root, "The detail is Spark's own message; the same SELECT fails in Spark.")
        return QueryParseError("Spark does not accept this query.", detail=_headline(error), hint=hint, position=place)
    failure = typed(error, "The analysis of the query")
    return failure if failure.position or not place else _placed(failure, place)


def _of_system(error: OSError, doing: str, path: str | Path | None) -> TrickleError:
    if error.errno in _FULL or _no_space(str(error), path):
        return _full(doing, str(error))
    if error.errno in _DENIED or _is_denied(str(error), path):
        return _denied(doing, str(error))
    return RefreshFailed(f"{doing} failed.", detail=_plain(str(error)))


def _of_spark(error: BaseException, doing: str) -> TrickleError:
    names = _java_classes(error)
    condition = _condition(error) or ""
    if names & _CONFLICTS or "CONCURRENT" in condition:
        return CommitConflict(f"{doing} met another commit.", detail=_headline(error))
    if condition in _CANCELLED:
        return RefreshCancelled(f"{doing} was cancelled.")
    if condition == _MULTIPLE_MATCHES:
        return _twice(doing, _headline(error))
    if condition == _COLUMNS_STAY:
        return RefreshFailed(
            f"{doing} failed: its columns cannot be put right together with its rows.",
            detail="Somebody switched column mapping on, and changed its columns afterwards.",
            hint="Bring its columns back with ALTER TABLE and refresh it fully, or drop it and create it again.",
        )
    if names & _ACCESS:
        return _denied(doing, _headline(error))
    if "OutOfMemoryError" in names:
        return RefreshFailed(
            f"{doing} ran out of memory.",
            detail=_headline(error),
            hint="Raise spark.driver_memory in trickle.toml.",
        )
    return RefreshFailed(f"{doing} failed.", detail=_innermost(error))


def _of_delta_rs(error: BaseException, doing: str) -> TrickleError:
    name = type(error).__name__
    if name == "CommitFailedError":
        return CommitConflict(f"{doing} met another commit.", detail=_said(error))
    if name == "TableNotFoundError":
        return NotFound(f"{doing} found no Delta table.", detail=_said(error))
    if "multiple source rows" in str(error):
        return _twice(doing, _said(error))
    if "eature" in str(error) and "nsupported" in str(error):
        return UnsupportedOperator(f"{doing} needs a feature that delta-rs lacks.", detail=_said(error))
    return RefreshFailed(f"{doing} failed.", detail=_said(error))


def _twice(doing: str, said: str) -> NegativeMultiplicity:
    return NegativeMultiplicity(
        f"{doing} was refused: two rows have one identity.",
        detail=said,
        hint="Verify the stream table, then reinitialize it.",
    )


def _full(doing: str, said: str) -> StorageFull:
    return StorageFull(
        f"{doing} failed: the disk is full.",
        detail=_plain(said),
        hint="Free some space; the refresh is repeated by itself.",
    )


def _denied(doing: str, said: str) -> PermissionDenied:
    return PermissionDenied(
        f"{doing} is not permitted.",
        detail=_plain(said),
        hint="Check the owner and the rights of the folder, and that its file system is writable.",
    )


def _no_space(text: str, path: str | Path | None) -> bool:
    if _names(text, _FULL):
        return True
    folder = _nearest(path)
    try:
        return folder is not None and "IOException" in text and shutil.disk_usage(folder).free < 64 * 1024
    except OSError:
        return False


def _is_denied(text: str, path: str | Path | None) -> bool:
    if _names(text, _DENIED):
        return True
    folder = _nearest(path)
    return folder is not None and not os.access(folder, os.W_OK)


def _names(text: str, numbers: tuple[int, ...]) -> bool:
    """Rust ends its text with the system's number; Java hands on the system's sentence."""
    return any(f"os error {number})" in text or os.strerror(number) in text for number in numbers)


def _nearest(path: str | Path | None) -> Path | None:
    """The table's folder on this machine, or the one that it would be made in."""
    folder = log.local_path(str(path)) if path is not None else None
    while folder is not None and not folder.exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _plain(said: str) -> str:
    """Without the colours and the drawing of delta-rs, in one line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", said).replace("↳", " ")
    return " ".join(text.split())[:1000]


def _refusal(text: str) -> str:
    """Which operation met what: the marker is followed by the operation."""
    tail = text.lower().split(REFUSED, 1)[1]
    for operation, said in (
        ("_u", "A row to be replaced is not in the table."),
        ("_d", "A row to be deleted is not in the table."),
        ("_i", "A row to be inserted is already in the table."),
    ):
        if tail.startswith(operation):
            return said
    return "A row has an operation that does not exist."


def is_lost_connection(error: BaseException) -> bool:
    if isinstance(error, TrickleError):
        return error.__cause__ is not None and is_lost_connection(error.__cause__)
    if isinstance(error, ConnectionError):
        return True
    kind = type(error)
    return kind.__module__.startswith("py4j") and kind.__name__ in ("Py4JNetworkError", "Py4JError")


def _origin(error: BaseException) -> Any:
    return getattr(error, "_origin", None) or getattr(error, "java_exception", None)


def _causes(error: BaseException) -> Iterator[Any]:
    """A Java exception and what caused it; nothing when the JVM dies while it is asked."""
    from py4j.protocol import Py4JError

    current = _origin(error)
    for _ in range(12):  # causes may form a ring
        if current is None:
            return
        yield current
        try:
            current = current.getCause()
        except Py4JError:
            return


def _java_classes(error: BaseException) -> set[str]:
    """The simple names of a Java exception, its ancestors and its causes."""
    from py4j.protocol import Py4JError

    names: set[str] = set()
    for cause in _causes(error):
        try:
            kind = cause.getClass()
            while kind is not None:
                names.add(str(kind.getSimpleName()))
                kind = kind.getSuperclass()
        except Py4JError:
            return names
    return names


def _condition(error: BaseException) -> str | None:
    """Spark's name of what happened, from the outermost exception that has one."""
    from py4j.protocol import Py4JError

    for cause in _causes(error):
        try:
            condition = cause.getCondition()
        except Py4JError:  # not one of Spark's exceptions: it has no such method
            continue
        if condition:
            return str(condition)
    return None


def _parameters(error: BaseException) -> dict[str, str]:
    from py4j.protocol import Py4JError

    origin = _origin(error)
    try:
        return dict(origin.getMessageParameters() or {}) if origin is not None else {}
    except Py4JError:  # not one of Spark's exceptions
        return {}


def _position(error: BaseException, query: str) -> Position | None:
    """Spark counts characters from 0 over the text that it was given."""
    from py4j.protocol import Py4JError

    origin = _origin(error)
    if origin is None:
        return None
    try:
        if type(error).__name__ == "ParseException":
            place = origin.start()
            line, column = place.line(), place.startPosition()
            if line.isDefined() and column.isDefined():
                return Position(int(line.get()), int(column.get()) + 1)
        for context in origin.getQueryContext():
            start = int(context.startIndex())
            if 0 <= start <= len(query):
                before = query[:start]
                return Position(before.count("\n") + 1, start - before.rfind("\n"))
    except Py4JError:  # this exception knows no place
        return None
    return None


def _placed(error: TrickleError, place: Position) -> TrickleError:
    error.position = place
    return error


def _headline(error: BaseException) -> str:
    """Spark's message without the plan and the stack that follow it."""
    from py4j.protocol import Py4JError

    # asked from the Java exception itself: PySpark cannot render Delta's messages
    origin = _origin(error)
    try:
        text = str(origin.getMessage() if origin is not None else error)
    except Py4JError:
        text = type(error).__name__
    return _first_lines(text)


def _first_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("== SQL", "JVM stacktrace", "\tat ", "'")):
            break
        if line.strip():
            lines.append(line.strip())
    return " ".join(lines)[:1000]


def _innermost(error: BaseException) -> str:
    """The message of the cause that Spark has a name for and that is nearest to what happened.

    Around it Spark tells which of its parts were at work: that a task failed, that a write was given up.
    """
    from py4j.protocol import Py4JError

    found = _headline(error)
    for cause in _causes(error):
        try:
            if cause.getCondition():
                found = _first_lines(str(cause.getMessage()))
        except Py4JError:  # not one of Spark's exceptions: it has no such method
            continue
    return found


def _everything_said(error: BaseException) -> str:
    """The messages of all causes: the one that matters is often the innermost."""
    from py4j.protocol import Py4JError

    said: list[str] = []
    for cause in _causes(error):
        try:
            said.append(str(cause.toString()))
        except Py4JError:
            break
    return "\n".join(said) or str(error)


def _said(error: BaseException) -> str:
    return _plain(str(error)) or type(error).__name__
