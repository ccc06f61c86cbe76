"""The definition that a stream table's own Delta table carries, so that it can be found again without the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.catalog.store import Catalog
from engine.codec import MalformedRecord, dumps, from_plain
from engine.lake.hold import OWNER
from engine.lake.tables import Pinned
from engine.records import Source, StreamTable, View
from engine.refresh.plans import Plans

ID = OWNER
_DEFINITION = "trickle.definition"
_SOURCES = "trickle.sources"
_VIEWS = "trickle.views"

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
    #: those that its query names, also through others: each behind those that it reads itself
    views: tuple[View, ...] = ()


def of(table: StreamTable, catalog: Catalog, plans: Plans) -> dict[str, str]:
    """What the table's own folder says of it, as things are now."""
    read = {name.casefold() for name in table.sources}
    views = {view.name: view for view in catalog.views()}
    return properties(
        table,
        (each for each in catalog.sources() if each.name.casefold() in read),
        (views[each.name] for each in plans.parsed(table.query).views),
    )


def properties(table: StreamTable, sources: Iterable[Source], views: Iterable[View] = ()) -> dict[str, str]:
    """Without the path: the folder may be moved with its workspace, and it is where it is found."""
    return {
        **STORAGE,
        ID: table.id,
        _DEFINITION: dumps(replace(table, path="")),
        _SOURCES: dumps(tuple(sources)),
        _VIEWS: dumps(tuple(views)),
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
        views = from_plain(tuple[View, ...], json.loads(found.get(_VIEWS, "[]")))
    except (KeyError, ValueError, MalformedRecord):
        return None
    return Carried(replace(table, path=path), sources, views) if table.id == found.get(ID) else None
