"""Another name for a stream table. Its folder stays where readers know it; catalog, history and definition follow.

The catalog decides, in one step, and notes that the history still has to follow. Whoever finds the note completes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.catalog.store import Catalog
from engine.errors import DependentsExist
from engine.event_records import EventKind
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Failpoint
from engine.names import check_name, same_name
from engine.observe.history import History
from engine.records import StreamTable
from engine.refresh.run import Refresher
from engine.refresh.sources import refuse_while_views_read

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.refresh.define import Definitions

#: in the catalog's notes: a history that has another name than its stream table
_NOTE = "renamed"


@dataclass(frozen=True)
class Renames:
    catalog: Catalog
    definitions: Definitions
    refresher: Refresher
    history: History
    events: EventBus
    settings: Settings

    def rename(self, name: str, new_name: str) -> StreamTable:
        table = self.catalog.get_stream_table(name)
        check_name(new_name)
        if new_name == table.name:
            return table
        finish(self.catalog, self.history)
        if not same_name(new_name, table.name):
            self.definitions.refuse_taken(new_name)
        self._refuse_readers(table)
        with self.refresher.undisturbed(table, "renamed"):
            note = json.dumps({"from": table.name, "to": new_name})
            self.catalog.change_stream_table(table.id, lambda now: replace(now, name=new_name), note=(_NOTE, note))
            FAILPOINTS.reach(Failpoint.RENAMED)
            finish(self.catalog, self.history)
            FAILPOINTS.reach(Failpoint.HISTORY_RENAMED)
            self.refresher.carrier.follow(self.catalog.get_stream_table(new_name))
        self.events.publish(EventKind.STREAM_TABLE_RENAMED, new_name, f"it was named {table.name}")
        return self.catalog.get_stream_table(new_name)

    def _refuse_readers(self, table: StreamTable) -> None:
        """Their queries name it. Nobody rewrites what somebody wrote."""
        readers = self.catalog.dependents(table.name)
        if readers:
            raise DependentsExist(
                f"{table.name} is read by {', '.join(readers)}, whose queries have its name",
                hint="drop or alter these first, or create a view of the other name",
            )
        refuse_while_views_read(self.catalog, self.settings, table.name)


def finish(catalog: Catalog, history: History) -> None:
    """Completes a renaming that somebody did not live to complete."""
    note = catalog.get_meta(_NOTE)
    if note:
        said = json.loads(note)
        history.rename(said["from"], said["to"])
        catalog.set_meta(_NOTE, "")
