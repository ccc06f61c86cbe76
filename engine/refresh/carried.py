"""The definition that a stream table's own Delta table carries, so that it can be found again without the catalog."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.catalog.store import Catalog
from engine.codec import MalformedRecord, dumps, from_plain
from engine.errors import TrickleError
from engine.lake import log
from engine.lake.hold import OWNER
from engine.lake.tables import Pinned, set_properties
from engine.records import Source, StreamTable, View
from engine.refresh.plans import Plans

_log = logging.getLogger(__name__)

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


class Carrier:
    """Makes each table carry the definition that the catalog has, also where who changed that died before he could."""

    def __init__(self, catalog: Catalog, plans: Plans) -> None:
        self._catalog = catalog
        self._plans = plans
        #: by id: what the table is known to carry
        self._carried: dict[str, StreamTable] = {}

    def after_refresh(self, table: StreamTable, *, wrote: bool) -> None:
        """What counts is done. The table says what it is once more, if it does not, or else the next time."""
        try:
            self.follow(self._catalog.stream_table_now(table.id) if wrote else table)
        except TrickleError as error:
            _log.warning("%s does not carry its definition yet: %s", table.name, error)

    def follow(self, table: StreamTable) -> None:
        """Costs nothing where nothing changed since the last time."""
        if self._carried.get(table.id) == table:
            return
        now = next((each for each in self._catalog.stream_tables() if each.id == table.id), None)
        found = log.definition(table.path).properties
        if now is None or found.get(ID) != table.id:
            return
        wanted = of(now, self._catalog, self._plans)
        lacking = {key: wanted[key] for key in (_DEFINITION, _SOURCES, _VIEWS) if found.get(key) != wanted[key]}
        if lacking:
            set_properties(table.path, lacking)
        self._carried[table.id] = now


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
