"""Bringing the catalog, and what a stream table must be, back from the stream tables' own Delta tables.

The log is the truth: nothing that a table tells is ever overwritten by what the catalog remembers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.catalog.records import Progress
from engine.catalog.store import Catalog
from engine.errors import AlreadyExists, NotFound, TrickleError
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.lake import stamp, tables
from engine.names import RESERVED_PREFIX
from engine.observe.history import History
from engine.records import Source, StreamTable
from engine.refresh import carried, rename
from engine.refresh.carried import Carried
from engine.refresh.define import Definitions
from engine.refresh.observe import makes_right
from engine.refresh.run import Refresher
from engine.results import Repair, RepairResult


@dataclass(frozen=True)
class Repairs:
    catalog: Catalog
    definitions: Definitions
    refresher: Refresher
    history: History
    events: EventBus
    warehouse: Path

    def all(self) -> RepairResult:
        """Every stream table that the catalog knows, or that the warehouse holds."""
        done = [Repair(name, "its drop was not completed: it is back") for name in self.definitions.finish_drops()]
        rename.finish(self.catalog, self.history)
        done += self._found_again()
        for table in self.catalog.stream_tables():
            done += self._mended(table)
        return self._told(done)

    def one(self, name: str) -> RepairResult:
        return self._told(list(self._mended(self.catalog.get_stream_table(name))))

    def _told(self, done: list[Repair]) -> RepairResult:
        for each in done:
            self.events.publish(EventKind.REPAIRED, each.name, each.text, Severity.WARN)
        return RepairResult(tuple(done))

    # ---------------------------------------------------------------- what the catalog does not know

    def _found_again(self) -> Iterator[Repair]:
        known = {table.id for table in self.catalog.stream_tables()}
        unknown: list[Carried] = []
        for folder in _folders(self.warehouse):
            try:
                pinned = tables.pin(str(folder))
            except TrickleError as error:
                yield Repair(folder.name, f"its folder cannot be read: {error.message}", False)
                continue
            if pinned.properties.get(carried.ID) in known:
                continue
            if carried.ID not in pinned.properties:
                yield Repair(folder.name, "its folder holds a table that is no stream table; it stays", False)
            elif not carried.was_ever_filled(pinned):
                tables.remove(str(folder), self.warehouse)
                yield Repair(folder.name, "a creation that nobody completed left an empty table; it is removed")
            elif (definition := carried.read(pinned.properties, str(folder))) is None:
                yield Repair(folder.name, "its table carries no definition that this program understands", False)
            else:
                unknown.append(definition)
        chosen = _of_each_the_newest(unknown)
        for left in unknown:
            if left not in chosen:
                text = f"its folder holds an older copy of {left.table.name}; it stays, and nothing refreshes it"
                yield Repair(Path(left.table.path).name, text, False)
        for each in _upstream_first(chosen):
            yield from self._known_again(each)

    def _known_again(self, found: Carried) -> Iterator[Repair]:
        name = found.table.name
        for source in found.sources:
            try:
                self.catalog.add_source(source)
                yield Repair(source.name, f"the source is known again, as {name} knew it")
            except AlreadyExists:
                if not self._is_known(source):
                    text = f"{name} reads {source.path} under this name, which means something else by now"
                    yield Repair(source.name, text, False)
                    return
        views = {view.name.casefold(): view for view in self.catalog.views()}
        for view in found.views:
            there = views.get(view.name.casefold())
            if there is None:
                try:
                    self.catalog.save_view(view)
                except AlreadyExists:
                    yield Repair(
                        view.name, f"{name} reads a view of this name, which means something else by now", False
                    )
                    return
                yield Repair(view.name, f"the view is known again, as {name} knew it")
            elif there.query != view.query:
                yield Repair(view.name, f"{name} knew the view with another text; it is rebuilt with the present one")
        try:
            self.catalog.add_stream_table(_as_last_stored(found.table))
        except AlreadyExists as error:
            yield Repair(name, f"its folder is there, but {error.message}", False)
            return
        yield Repair(name, "the stream table is known again")

    def _is_known(self, source: Source) -> bool:
        try:
            return self.catalog.get_source(source.name).path == source.path
        except NotFound:
            return False

    # ---------------------------------------------------------------- what it does

    def _mended(self, table: StreamTable) -> Iterator[Repair]:
        try:
            pinned = tables.pin(table.path)
        except NotFound:
            self.definitions.make_again(table)
            self.refresher.observer.forget(table)
            self.catalog.save_progress(Progress(table.id, paused=self.catalog.get_progress(table.id).paused))
            yield Repair(table.name, "its table was gone; it is there again, empty until its next refresh")
            return
        last = stamp.last_stamp(table.path, pinned.version)
        if pinned.properties.get(carried.ID) != table.id and (last is None or last.stamp.st_id != table.id):
            text = "another table is in its place; move it away, and repair it again: its own is then made anew"
            yield Repair(table.name, text, False)
            return
        wanted = self.definitions.carried(table)
        lacking = {key: value for key, value in wanted.items() if pinned.properties.get(key) != value}
        if lacking:
            tables.set_properties(table.path, lacking)
            what = ", ".join(sorted(key for key in lacking if key not in pinned.properties))
            older = ", ".join(sorted(key for key in lacking if key in pinned.properties))
            said = " and ".join(filter(None, [what and f"lacked {what}", older and f"had another {older}"]))
            yield Repair(table.name, f"its table {said}")
        before = self.catalog.get_progress(table.id)
        self.refresher.observer.forget(table)
        target = self.refresher.observer.target(table, before)
        if target.tampered is not None:
            text = f"somebody else changed its rows or columns: {target.tampered}; {makes_right(table, target)}"
            yield Repair(table.name, text, False)
        after = self.catalog.get_progress(table.id)
        if before.populated and after.sequence != before.sequence:
            text = f"the catalog knew of {before.sequence} refreshes that wrote; by its log there were {after.sequence}"
            yield Repair(table.name, text)


def _of_each_the_newest(found: list[Carried]) -> list[Carried]:
    """A folder that somebody copied says the same of itself; refreshes went on in one of them."""

    def newest_last(each: Carried) -> tuple[int, bool]:
        refreshed = tables.pin(each.table.path).handle.transaction_version(each.table.id) or 0
        return refreshed, Path(each.table.path).name == each.table.name

    by_name: dict[str, Carried] = {}
    for each in sorted(found, key=newest_last):
        by_name[each.table.name.casefold()] = each
    return [each for each in found if by_name[each.table.name.casefold()] is each]


def _as_last_stored(table: StreamTable) -> StreamTable:
    """Its sources may have changed since it was created, and what it holds with them."""
    pinned = tables.pin(table.path)
    last = stamp.last_stamp(table.path, pinned.version)
    fingerprint = last.stamp.fingerprint if last is not None else table.fingerprint
    stored = tuple(column for column in pinned.columns if not column.name.startswith(RESERVED_PREFIX))
    same = [(c.name, c.type) for c in stored] == [(c.name, c.type) for c in table.columns]
    return replace(table, fingerprint=fingerprint, columns=table.columns if same else stored)


def _folders(warehouse: Path) -> list[Path]:
    if not warehouse.is_dir():
        return []
    return sorted(entry for entry in warehouse.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _upstream_first(found: Iterable[Carried]) -> Iterator[Carried]:
    waiting = {each.table.name.casefold(): each for each in found}
    while waiting:
        free = [
            key
            for key, each in waiting.items()
            if not {source.casefold() for source in each.table.sources} & (waiting.keys() - {key})
        ]
        for key in free or list(waiting):
            yield waiting.pop(key)
