"""Views of a workspace: making, replacing and dropping them, and what follows for the stream tables that read them."""

from __future__ import annotations

import getpass
from dataclasses import replace

from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.parse import Limits, ParsedQuery, parse
from engine.errors import (
    AlreadyExists,
    DependentsExist,
    InvalidArgument,
    NotFound,
    NotPopulated,
    QueryError,
    TrickleError,
)
from engine.event_records import EventKind
from engine.events import EventBus
from engine.lake import tables
from engine.lake.compute import Compute
from engine.names import check_name, same_name
from engine.records import RefreshMode, StreamTable, View
from engine.refresh import carried
from engine.refresh.define import Definitions
from engine.refresh.plans import Analyzer, Plans
from engine.refresh.sources import views_naming
from engine.results import ViewResult


class Views:
    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        plans: Plans,
        definitions: Definitions,
        events: EventBus,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._compute = compute
        self._plans = plans
        self._definitions = definitions
        self._events = events
        self._limits = limits
        self._clock = clock

    def all(self) -> tuple[View, ...]:
        return self._catalog.views()

    def create(self, name: str, query: str, *, or_replace: bool) -> ViewResult:
        """What reads the view must still make sense with the new text; its stream tables are rebuilt when next due."""
        check_name(name)
        before = {view.name.casefold(): view for view in self._catalog.views()}
        there = before.get(name.casefold())
        self._refuse_taken(name, there, or_replace=or_replace)
        if there is not None and there.query == query:
            return ViewResult(there, replaced=False, changed=False)
        view = View(there.name if there else name, query, self._clock.now(), getpass.getuser())
        after = tuple({**before, name.casefold(): view}.values())
        parsed = parse(query, self._limits, after, self._plans.relations)  # refuses circles
        self._compute.wait_ready()
        self._analyse(view, parsed, after)
        readers = tuple(self._with_other_text(each, view, parsed, after) for each in self._readers(there))
        self._catalog.save_view(view, replace=there is not None, readers=readers)
        for table in readers:
            # its own table has its whole definition: it would come back from there as it was otherwise
            tables.set_properties(table.path, carried.of(table, self._catalog, self._plans))
        kind, text = (
            (EventKind.VIEW_REPLACED, f"the view has another text: {len(readers)} stream tables read it")
            if there is not None
            else (EventKind.VIEW_CREATED, f"created, reads {', '.join(parsed.named) or 'nothing'}")
        )
        self._events.publish(kind, view.name, text)
        return ViewResult(view, there is not None, True, tuple(table.name for table in readers))

    def drop(self, name: str, *, if_exists: bool) -> bool:
        view = self.find(name)
        if view is None:
            if if_exists:
                return False
            raise self._missing(name)
        readers = [f"the stream table {each.name}" for each in self._readers(view)]
        readers += [f"the view {each}" for each in views_naming(self._catalog, self._limits, view.name)]
        if readers:
            raise DependentsExist(f"{view.name} is read by {', '.join(readers)}", hint="drop these first")
        self._catalog.drop_view(view.name)
        self._events.publish(EventKind.VIEW_DROPPED, view.name, "dropped")
        return True

    def find(self, name: str) -> View | None:
        return next((each for each in self._catalog.views() if each.name.casefold() == name.casefold()), None)

    # ---------------------------------------------------------------- what must hold

    def _refuse_taken(self, name: str, there: View | None, *, or_replace: bool) -> None:
        if there is not None and not or_replace:
            raise AlreadyExists(f"there is a view named {there.name} already", hint="say CREATE OR REPLACE VIEW")
        try:
            located = self._plans.relations.located(name)
        except NotFound:
            return
        kind = "stream table" if located.is_stream_table else "source"
        raise AlreadyExists(f"there is a {kind} named {located.name} already", hint="choose another name")

    def _analyse(self, view: View, parsed: ParsedQuery, views: tuple[View, ...]) -> None:
        """Spark must accept it; what can be made of it is up to what reads it."""
        analyzer = Analyzer(self._compute, self._plans.relations)
        self._plans.refuse_unknown(parsed)
        analyzer.show(parsed.sources)
        for each in parsed.views:
            analyzer.show_view(each.name, each.query.text)
        names = [column.name.casefold() for column in analyzer.describe(view.query)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidArgument(f"two columns of the view are named {twice}", hint="rename one with AS")

    def _with_other_text(
        self, table: StreamTable, view: View, parsed: ParsedQuery, views: tuple[View, ...]
    ) -> StreamTable:
        """What a stream table reads and knows from then on; refuses what it would not be created with.

        The new text may name columns that came after the stream table. Of what that text does not read, nothing is new.
        """
        sources = self._plans.sources_of(table.query, views)
        there, anew = self._plans.relations.types(sources), {name.casefold() for name in parsed.sources}
        known = {
            name: columns if name.casefold() in anew else table.known_columns.get(name, columns)
            for name, columns in there.items()
        }
        reader = replace(table, sources=sources, known_columns=known)
        try:
            plan = self._plans.compile(
                table.query,
                full=table.refresh_mode is RefreshMode.FULL,
                views=views,
                relations=self._plans.relations.as_known_to(reader),
            )
            self._definitions.fitted(reader, plan, views)
        except (QueryError, NotFound, InvalidArgument, NotPopulated) as error:
            raise InvalidArgument(
                f"the stream table {table.name}, which reads {view.name}, would make no sense any more",
                detail=str(error),
                hint=f"keep what it reads, or drop {table.name} first",
            ) from error
        return reader

    # ---------------------------------------------------------------- who reads what

    def _readers(self, there: View | None) -> tuple[StreamTable, ...]:
        """The stream tables whose queries name the view, also through other views."""
        if there is None:
            return ()
        return tuple(
            table
            for table in self._catalog.stream_tables()
            if any(same_name(view.name, there.name) for view in self._plans.parsed(table.query).views)
        )

    def _missing(self, name: str) -> TrickleError:
        names = ", ".join(view.name for view in self._catalog.views())
        return NotFound(f"there is no view {name}", hint=f"there are: {names}" if names else "there is no view yet")
