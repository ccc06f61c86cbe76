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
    FailsOnValue,
    NegativeMultiplicity,
    NotFound,
    OutOfMemory,
    PermissionDenied,
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
#: the same of a row that has no place in any partition; behind it stands the column
UNFIT = "trickle_unfit_partition"

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
#: what an expression meets while it is computed, under Spark's ANSI rules
_BY_VALUES = {
    "SparkArithmeticException",
    "SparkArrayIndexOutOfBoundsException",
    "SparkDateTimeException",
    "SparkIllegalArgumentException",
    "SparkNumberFormatException",
    "SparkRuntimeException",
}
#: by Spark's name of it
_WAYS_AROUND = {
    "DIVIDE_BY_ZERO": "NULLIF(divisor, 0) as the divisor, or try_divide(), makes NULL of it.",
    "CAST_INVALID_INPUT": "try_cast() makes NULL of what is no such value.",
    "CAST_OVERFLOW": "Cast to a wider type; try_cast() makes NULL of what does not fit.",
    "CANNOT_PARSE_TIMESTAMP": "try_to_timestamp() makes NULL of what is none.",
    "ARITHMETIC_OVERFLOW": "Cast to a wider type, DECIMAL(38, s) say; try_add() and try_sum() make NULL of it.",
    "NUMERIC_VALUE_OUT_OF_RANGE": "Cast to a wider type, DECIMAL(38, s) say; try_cast() makes NULL of it.",
    "INVALID_ARRAY_INDEX": "get(list, index) makes NULL of it.",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "Take max(…) of it, or LIMIT 1 with an ORDER BY.",
    "USER_RAISED_EXCEPTION": "The query raises it, or a subquery that is a value has several rows: max(…) gives one.",
}
_MULTIPLE_MATCHES = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
#: with column mapping and a Change Data Feed
_COLUMNS_STAY = "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"


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
    if UNFIT in text:
        return unfit(text.split(UNFIT, 1)[1].split("|")[1])
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


def _of_system(error: OSError, doing: str, path: str | Path | None) -> TrickleError:
    if error.errno in _FULL or _no_space(str(error), path):
        return _full(doing, str(error))
    if error.errno in _DENIED or _is_denied(str(error), path):
        return _denied(doing, str(error))
    return RefreshFailed(f"{doing} failed.", detail=_plain(str(error)))


def _of_spark(error: BaseException, doing: str) -> TrickleError:
    names = _java_classes(error)
    condition = condition_of(error) or ""
    if names & _CONFLICTS or "CONCURRENT" in condition:
        return CommitConflict(f"{doing} met another commit.", detail=headline(error))
    if condition in _CANCELLED:
        return RefreshCancelled(f"{doing} was cancelled.")
    if condition == _MULTIPLE_MATCHES:
        return _twice(doing, headline(error))
    if condition == _COLUMNS_STAY:
        return RefreshFailed(
            f"{doing} failed: its columns cannot be put right together with its rows.",
            detail="Somebody switched column mapping on, and changed its columns afterwards.",
            hint="Bring its columns back with ALTER TABLE and refresh it fully, or drop it and create it again.",
        )
    if names & _ACCESS:
        return _denied(doing, headline(error))
    if "OutOfMemoryError" in names:
        return OutOfMemory(
            f"{doing} ran out of memory.",
            detail=headline(error),
            hint="Raise spark.driver_memory in trickle.toml.",
        )
    if names & _BY_VALUES:
        return _by_a_value(error)
    return RefreshFailed(f"{doing} failed.", detail=_innermost(error))


def _by_a_value(error: BaseException) -> FailsOnValue:
    """The query itself fails on a row of its sources, as it would when somebody runs it."""
    said = _innermost(error)
    way = next((way for condition, way in _WAYS_AROUND.items() if f"[{condition}" in said), None)
    return FailsOnValue(
        "The query fails on a value in its sources.",
        detail=said,
        hint=way or "Functions whose names begin with try_ give NULL for what others refuse.",
    )


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


def unfit(column: str) -> RefreshFailed:
    return RefreshFailed(
        f"A row has a text in {column} by which it cannot be partitioned.",
        detail="Delta reads an empty text, and __HIVE_DEFAULT_PARTITION__, as NULL where a partition is named.",
        hint=f"Write NULLIF({column}, '') in the query, or partition by another column.",
    )


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


def origin_of(error: BaseException) -> Any:
    return getattr(error, "_origin", None) or getattr(error, "java_exception", None)


def _causes(error: BaseException) -> Iterator[Any]:
    """A Java exception and what caused it; nothing when the JVM dies while it is asked."""
    from py4j.protocol import Py4JError

    current = origin_of(error)
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


def condition_of(error: BaseException) -> str | None:
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


def headline(error: BaseException) -> str:
    """Spark's message without the plan and the stack that follow it."""
    from py4j.protocol import Py4JError

    # asked from the Java exception itself: PySpark cannot render Delta's messages
    origin = origin_of(error)
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
        if "SQLSTATE: " in line:
            break  # what follows is a plan
    return " ".join(lines).rstrip(";")[:1000]


def _innermost(error: BaseException) -> str:
    """The message of the cause that Spark has a name for and that is nearest to what happened.

    Around it Spark tells which of its parts were at work: that a task failed, that a write was given up.
    """
    from py4j.protocol import Py4JError

    found = headline(error)
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
