"""What keeps a Delta table quick to read and no larger than it must be. No row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lake import capabilities, failures, hold, log, old_days, quoting, tables
from engine.lake.apply import without_float_bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files(path: str) -> int:
    """Those that together are its newest version."""
    return len(tables.pin(path).handle.file_uris())


def compact_from_driver(path: str, st_id: str, to_mb: int) -> bool:
    """Small files become files of about this size, without Spark. False where delta-rs may not write."""
    from deltalake import CommitProperties

    pinned = tables.pin(path)
    definition = log.definition(path, pinned.version)
    if not capabilities.of(definition, path).can_driver_merge or old_days.in_table(path, pinned.version):
        return False
    try:
        with hold.for_commit(path, st_id):
            pinned.handle.optimize.compact(
                target_size=to_mb * 1024 * 1024,
                commit_properties=CommitProperties(max_commit_retries=0),
                writer_properties=without_float_bounds(pinned),
            )
    except Exception as error:
        raise failures.typed(error, f"Compacting {path}", path) from error
    return True


def compact(session: SparkSession, path: str) -> None:
    _run(session, f"OPTIMIZE {quoting.table(path)}", f"Compacting {path}", path)


def vacuum(session: SparkSession, path: str, kept_hours: int) -> None:
    """Files that no version of the last hours consists of.

    By Spark alone: the vacuum of delta-rs takes deletion vectors that are in use for files of nobody (seen with 1.6).
    """
    _run(session, f"VACUUM {quoting.table(path)} RETAIN {int(kept_hours)} HOURS", f"Cleaning {path}", path)


def checkpoint(path: str) -> int:
    """Whoever opens the table reads the log from here on. The version that it is of."""
    pinned = tables.pin(path)
    try:
        pinned.handle.create_checkpoint()
        pinned.handle.cleanup_metadata()
    except Exception as error:
        raise failures.typed(error, f"Writing a checkpoint of {path}", path) from error
    return pinned.version


def _run(session: SparkSession, statement: str, doing: str, path: str) -> None:
    try:
        session.sql(statement).collect()
    except Exception as error:
        raise failures.typed(error, doing, path) from error
