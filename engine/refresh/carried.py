"""The definition that a stream table's own Delta table carries, so that it can be found again without the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.codec import MalformedRecord, dumps, from_plain
from engine.lake.hold import OWNER
from engine.lake.tables import Pinned
from engine.records import Source, StreamTable

ID = OWNER
_DEFINITION = "trickle.definition"
_SOURCES = "trickle.sources"

#: what every stream table is stored with
STORAGE = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    # as Spark does it unasked: delta-rs would wait for a hundred commits, and opening a table takes ever longer
    "delta.checkpointInterval": "10",
    # said, so that `repair` sees when it is otherwise
    "delta.appendOnly": "false",
}


@dataclass(frozen=True)
class Carried:
    table: StreamTable
    #: those that it reads and that are no stream tables
    sources: tuple[Source, ...]


def properties(table: StreamTable, sources: Iterable[Source]) -> dict[str, str]:
    """Without the path: the folder may be moved with its workspace, and it is where it is found."""
    return {
        **STORAGE,
        ID: table.id,
        _DEFINITION: dumps(replace(table, path="")),
        _SOURCES: dumps(tuple(sources)),
    }


def was_ever_filled(pinned: Pinned) -> bool:
    """Refreshes leave their sequence, also where the log no longer has their stamps."""
    st_id = pinned.properties.get(ID)
    return st_id is not None and pinned.handle.transaction_version(st_id) is not None


def read(found: Mapping[str, str], path: str) -> Carried | None:
    """None where these properties define nothing, or nothing that this program understands."""
    try:
        table = from_plain(StreamTable, json.loads(found[_DEFINITION]))
        sources = from_plain(tuple[Source, ...], json.loads(found[_SOURCES]))
    except (KeyError, ValueError, MalformedRecord):
        return None
    return Carried(replace(table, path=path), sources) if table.id == found.get(ID) else None
