"""DML that Trickle sends: its commit carries a mark, is found again by it, and can be taken back.

Taking back is one commit, made from the handle that is pinned at the version to be undone: delta-rs refuses it as soon
as anybody else has committed since. Spark's RESTORE would wipe away what that one wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.errors import CommitConflict, RefreshFailed
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import failures, log, tables
from engine.lake.tables import is_on

_MADE = "trickle_change"
_UNDONE = "trickle_undone"

#: features with which delta-rs was seen to put back what was there; others it refuses, or nobody tried
_KNOWN = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
    }
)

#: properties that bring no feature, or one of those
_PLAIN = frozenset(
    f"delta.{name}".casefold()
    for name in (
        "checkpointInterval",
        "checkpointPolicy",
        "checkpoint.writeStatsAsJson",
        "checkpoint.writeStatsAsStruct",
        "columnMapping.mode",
        "dataSkippingNumIndexedCols",
        "dataSkippingStatsColumns",
        "deletedFileRetentionDuration",
        "enableChangeDataFeed",
        "enableDeletionVectors",
        "enableExpiredLogCleanup",
        "logRetentionDuration",
        "randomizeFilePrefixes",
        "randomPrefixLength",
        "setTransactionRetentionDuration",
    )
) | {f"delta.feature.{name}".casefold() for name in _KNOWN}


def why_not(path: str) -> str | None:
    """Why DML on this table could not be taken back; None where it can."""
    definition = log.definition(path)
    if is_on(definition.properties, "delta.appendOnly"):
        return "it takes new rows only (delta.appendOnly)"
    unknown = sorted(definition.features - _KNOWN)
    return f"it has the table feature {unknown[0]}" if unknown else None


def why_no_more(properties: Iterable[tuple[str, str]], *, clusters: bool) -> str | None:
    """Why it could not be taken back any more once a table has these properties; None where it could."""
    if clusters:
        return "its files would be laid out by columns (CLUSTER BY)"
    for name, value in properties:
        known = name.casefold()
        if known.startswith("delta.") and known not in _PLAIN and value.casefold() != "false":
            return f"it would have {name} = {value}"
    return None


def said(mark: str) -> str:
    """What the commit of the DML carries, in a place that nobody else uses."""
    return json.dumps({_MADE: mark})


def find(path: str, mark: str, after_version: int) -> int | None:
    """The version that the DML made. None where it made none: there was nothing to change."""
    version = after_version + 1
    while (info := log.commit_info(path, version)) is not None:
        if _mark_in(info.user_metadata, _MADE) == mark:
            return version
        version += 1
    return None


def mark_of_dml(user_metadata: str | None) -> str | None:
    return _mark_in(user_metadata, _MADE)


def mark_of_undoing(user_metadata: str | None) -> str | None:
    """Of the DML that was taken back."""
    return _mark_in(user_metadata, _UNDONE)


def is_undo(user_metadata: str | None) -> bool:
    return mark_of_undoing(user_metadata) is not None


def take_back(path: str, version: int, mark: str) -> int:
    """The version in which the table is again as it was before the one that the DML made.

    CommitConflict where somebody has committed since.
    """
    from deltalake import CommitProperties

    metadata = {"userMetadata": json.dumps({_UNDONE: mark})}
    trouble: Exception | None = None
    try:
        pinned = tables.pin(path, version)
        with FAILPOINTS.around(Failpoint.UNDO):
            pinned.handle.restore(
                version - 1, commit_properties=CommitProperties(custom_metadata=metadata, max_commit_retries=0)
            )
    except Exception as error:
        trouble = error
    next_one = log.commit_info(path, version + 1)
    if next_one is not None and _mark_in(next_one.user_metadata, _UNDONE) == mark:
        return version + 1  # also where it was reported as failed
    if next_one is not None:
        raise CommitConflict(
            "somebody else has committed since", detail=f"{next_one.operation} in version {version + 1}"
        ) from trouble
    if trouble is None:
        raise CommitConflict("another commit was written over it")
    typed = failures.typed(trouble, f"Undoing version {version} of {path}", path)
    if isinstance(typed, CommitConflict):
        # delta-rs says so of whatever it cannot commit
        raise RefreshFailed(f"version {version} of {path} cannot be undone", detail=typed.detail) from trouble
    raise typed from trouble


def _mark_in(user_metadata: str | None, key: str) -> str | None:
    if not user_metadata or key not in user_metadata:
        return None
    try:
        return str(json.loads(user_metadata)[key])
    except (ValueError, KeyError, TypeError):
        return None
