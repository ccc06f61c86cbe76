"""What can be done with a table, and by whom: delta-rs is fast for small things but does not know all features."""

from __future__ import annotations

from dataclasses import dataclass

from engine.lake import log
from engine.lake.tables import CDF_PROPERTY, is_on

#: reader features with which delta-rs reads a table rightly
_READABLE = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
#: writer features with which its merge and append are right, on top of those
_WRITABLE = frozenset({"appendOnly", "invariants", "changeDataFeed", "domainMetadata"})
#: in a path: what delta-rs opens but breaks down on when it reads changes or writes (seen with 1.6)
_NOT_IN_PATHS = frozenset("[]^|")


@dataclass(frozen=True)
class Capabilities:
    deletion_vectors: bool
    column_mapping: bool
    clustered: bool
    row_tracking: bool
    partitioned: bool
    cdf: bool
    #: may small changes be committed from the driver by delta-rs?
    can_driver_merge: bool
    #: may small changes be read on the driver by delta-rs?
    can_driver_read: bool
    #: why not, in words
    reasons: tuple[str, ...]


def capabilities(path: str) -> Capabilities:
    return of(log.definition(path), path)


def of(definition: log.Definition, path: str) -> Capabilities:
    properties, features = definition.properties, definition.features
    mapping = properties.get("delta.columnMapping.mode", "none").lower() != "none"
    clustered = "clustering" in features
    tracking = is_on(properties, "delta.enableRowTracking")
    odd = "".join(sorted(_NOT_IN_PATHS & set(path)))
    reading = [f"{odd} in its path: changes are read by Spark"] if odd else []
    if mapping:
        reading.append("column mapping: changes are read by Spark")
    reading += [
        f"table feature {name}: changes are read by Spark"
        for name in sorted(definition.reader_features - _READABLE - {"columnMapping"})
    ]
    merging = [f"{odd} in its path: changes are committed by Spark"] if odd else []
    if mapping:
        merging.append("column mapping: changes are committed by Spark")
    if clustered:
        merging.append("clustering: changes are committed by Spark")
    if tracking:
        merging.append("row tracking: changes are committed by Spark")
    known = _READABLE | _WRITABLE | {"columnMapping", "clustering", "rowTracking"}
    merging += [f"table feature {name}: changes are committed by Spark" for name in sorted(features - known)]
    return Capabilities(
        deletion_vectors=is_on(properties, "delta.enableDeletionVectors"),
        column_mapping=mapping,
        clustered=clustered,
        row_tracking=tracking,
        partitioned=bool(definition.partition_columns),
        cdf=is_on(properties, CDF_PROPERTY),
        can_driver_merge=not merging,
        can_driver_read=not reading,
        reasons=tuple(reading + merging),
    )
