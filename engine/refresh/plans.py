"""Plans of stream tables, compiled once per process and again when a definition or a schema changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.algebra.nodes import Leaf, Node
from engine.catalog.store import Catalog
from engine.compile.bind import Change, Statements, bind
from engine.compile.functions import FunctionRules, Kind, VolatileFunctionPolicy
from engine.compile.parse import Limits, ParsedQuery, parse
from engine.compile.pipeline import Request, compile_query, known_sources
from engine.compile.places import in_views
from engine.compile.plan import MaintenancePlan, replaced_views
from engine.compile.render import Places, render
from engine.compile.steps import in_steps
from engine.compile.translate import InSpark, in_spark
from engine.errors import InternalError, NotFound, QueryError, SourceSchemaChanged
from engine.lake import tables, views
from engine.lake.compute import Query, QueryStep
from engine.lake.opinion import Opinion
from engine.lake.sql_functions import SqlFunction
from engine.records import CdcMode, Column, ReasonCode, RefreshMode, SqlDialect, StreamTable, View

if TYPE_CHECKING:
    from engine.lake.compute import Compute
    from engine.lake.spark_types import SparkSession


@dataclass(frozen=True)
class Located:
    """A relation that queries may name: where it is, and what may be read of it."""

    name: str
    path: str
    columns: tuple[Column, ...]
    is_stream_table: bool
    cdc_mode: CdcMode = CdcMode.AUTO


class Relations(Mapping[str, tuple[Column, ...]]):
    """All sources and stream tables of a workspace; a schema is read when it is asked for."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def path(self, name: str) -> str:
        """Where it is, by the catalog alone."""
        table = self._stream_table(name)
        return table.path if table is not None else self._catalog.get_source(name).path

    def cdc_mode(self, name: str) -> CdcMode:
        """How its changes are to be found."""
        return CdcMode.AUTO if self._stream_table(name) is not None else self._catalog.get_source(name).cdc_mode

    def _stream_table(self, name: str) -> StreamTable | None:
        return next((each for each in self._catalog.stream_tables() if each.name.casefold() == name.casefold()), None)

    def located(self, name: str) -> Located:
        table = self._stream_table(name)
        if table is not None:
            return Located(table.name, table.path, table.columns, True)
        source = self._catalog.get_source(name)
        return Located(source.name, source.path, tables.columns(source.path), False, source.cdc_mode)

    def show_latest(self, session: SparkSession, names: tuple[str, ...]) -> None:
        """Makes them readable under their names, as they are. Of names that are not known Spark tells."""
        for name in names:
            try:
                located = self.located(name)
            except NotFound:
                views.forget(session, name)
                continue
            views.of_latest(session, located.name, located.path, located.columns)

    def __getitem__(self, name: str) -> tuple[Column, ...]:
        return self.located(name).columns

    def __iter__(self) -> Iterator[str]:
        yield from (source.name for source in self._catalog.sources())
        yield from (table.name for table in self._catalog.stream_tables())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Analyzer:
    """Spark's opinion on queries, in the calling thread's session.

    `show` makes sources known under their names, without their rows: names and types are all that analysis needs.
    """

    def __init__(self, compute: Compute, relations: Relations) -> None:
        self._compute = compute
        self._relations = relations

    def show(self, names: tuple[str, ...]) -> None:
        for name in names:
            try:
                located = self._relations.located(name)
            except NotFound:
                continue  # the compiler tells it better, with a position and the nearest name
            self._compute.show_empty(located.name, located.columns)

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self._compute.describe(sql)

    def same_semantics(self, one: str, other: str) -> bool:
        return self._compute.same_semantics(one, other)

    def opinion(self, sql: str) -> Opinion:
        return self._compute.opinion(sql)

    def show_view(self, name: str, sql: str) -> None:
        self._compute.show_view(name, sql)

    def kind_of(self, function: str) -> Kind:
        aggregates = self._compute.aggregates(function)
        return Kind.UNKNOWN if aggregates is None else Kind.AGGREGATE if aggregates else Kind.SCALAR

    def look_up(self, function: str) -> SqlFunction | None:
        return self._compute.look_up(function)

    def meaning(self, functions: tuple[str, ...]) -> str:
        return self._compute.meaning(functions)


def rendered(tree: Node, places: Places = in_views) -> Query:
    steps = in_steps(tree)
    before = tuple(QueryStep(places(step.leaf).name, render(step.tree, places, pretty=True)) for step in steps.before)
    return Query(render(steps.last, places, pretty=True), tree, before)


@dataclass(frozen=True)
class Prepared:
    """What a refresh runs when its sources changed in one certain way, ready to be sent."""

    statements: Statements
    #: what has to be known before the change set can be asked for
    first: Query | None
    change: Query
    reads: Mapping[Leaf, tuple[Column, ...]]
    #: may the result be larger than the change?
    may_grow: bool


@dataclass(frozen=True)
class _Known:
    query: str
    mode: RefreshMode
    plan: MaintenancePlan
    #: by the ways in which sources changed, of which a stream table's life sees few
    prepared: dict[tuple[tuple[str, Change], ...], Prepared] = field(default_factory=dict)


class Plans:
    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        limits: Limits,
        rules: FunctionRules | None = None,
        dialect: str = SqlDialect.SPARK,
    ) -> None:
        self._catalog = catalog
        self._dialect = dialect
        self._compute = compute
        self._limits = limits
        self._rules = rules or FunctionRules()
        self.relations = Relations(catalog)
        self._known: dict[str, _Known] = {}
        #: by their texts, with the views that there were
        self._parsed: dict[str, tuple[tuple[View, ...], ParsedQuery]] = {}
        self._lock = threading.Lock()

    def in_spark(self, query: str, dialect: str | None) -> InSpark:
        """A query in Spark's words; without a dialect it is in that of the settings."""
        return in_spark(query, dialect or self._dialect, self.relations, self._limits)

    def compile_written(self, query: InSpark, *, full: bool) -> MaintenancePlan:
        """The plan, whose places point into the text as it was written."""
        with query.placed():
            plan = self.compile(query.text, full=full)
        reason = query.placed_reason(plan.full_reason)
        return replace(plan, full_reason=reason, notices=(*query.notices, *plan.notices))

    def compile(
        self,
        query: str,
        *,
        full: bool,
        rules: FunctionRules | None = None,
        views: tuple[View, ...] | None = None,
    ) -> MaintenancePlan:
        """`views`: as they would be; otherwise as they are."""
        views = self._catalog.views() if views is None else views
        parsed = parse(query, self._limits, views, self.relations)
        analyzer = Analyzer(self._compute, self.relations)
        analyzer.show(parsed.sources)
        return compile_query(Request(query, self.relations, self._limits, views, full, rules or self._rules), analyzer)

    def parsed(self, query: str) -> ParsedQuery:
        """With the views as they are now. Asks nobody, and is asked several times in each refresh."""
        views = self._catalog.views()
        with self._lock:
            known = self._parsed.get(query)
        if known is not None and known[0] == views:
            return known[1]
        parsed = parse(query, self._limits, views, self.relations)
        if parsed.unread is None:  # or else it depends on which relations there are
            with self._lock:
                self._parsed[query] = views, parsed
        return parsed

    def refuse_unknown(self, parsed: ParsedQuery) -> None:
        """Every name in its texts must be known."""
        known_sources(parsed, self.relations)

    def sources_of(self, query: str, views: tuple[View, ...] | None = None) -> tuple[str, ...]:
        """What it reads, as it is called in the workspace; with other views than those of now, what it would read."""
        known = {name.casefold(): name for name in self.relations}
        parsed = self.parsed(query) if views is None else parse(query, self._limits, views, known.values())
        return tuple(known.get(name.casefold(), name) for name in parsed.sources)

    def plan_of(self, table: StreamTable) -> MaintenancePlan:
        """The plan of a stream table, from its text."""
        with self._lock:
            known = self._known.get(table.id)
        if known is not None and self._holds(known, table):
            return known.plan
        try:
            plan = self.compile(table.query, full=table.refresh_mode is RefreshMode.FULL, rules=self._rules_for(table))
        except (QueryError, NotFound) as error:
            # It was accepted once, so it is the sources that changed.
            raise SourceSchemaChanged(
                f"the query of {table.name} no longer fits its sources",
                detail=error.message,
                hint="bring the column or table back, or drop the stream table and create it anew",
                position=error.position,
            ) from error
        with self._lock:
            self._known[table.id] = _Known(table.query, table.refresh_mode, plan)
        return plan

    def _rules_for(self, table: StreamTable) -> FunctionRules:
        """What was accepted goes on when the policy becomes stricter."""
        accepted = table.full_reason is not None and table.full_reason.code is ReasonCode.STABLE
        return replace(self._rules, policy=VolatileFunctionPolicy.WARN) if accepted else self._rules

    def _holds(self, known: _Known, table: StreamTable) -> bool:
        """Functions that somebody made may be made anew at any time."""
        if (known.query, known.mode) != (table.query, table.refresh_mode):
            return False
        if known.plan.views != _texts(self.parsed(table.query)):
            return False
        functions = known.plan.functions
        return not functions or self._compute.meaning(functions) == known.plan.meaning

    def prepared(self, table: StreamTable, changes: Mapping[str, Change]) -> Prepared:
        """The statements for these changes; made once, because making them costs more than sending them."""
        plan = self.plan_of(table)
        if plan.kept is None:
            raise InternalError("a query that can only be recomputed has no change")
        with self._lock:
            known = self._known[table.id]
        key = tuple(sorted(changes.items()))
        found = known.prepared.get(key)
        if found is None:
            statements = bind(plan.kept, changes)
            first = None if statements.first is None else rendered(statements.first)
            may_grow = bool(statements.whole_relations)
            found = Prepared(statements, first, rendered(statements.change), statements.reads, may_grow)
            known.prepared[key] = found
        return found

    def still_means_the_same(self, table: StreamTable) -> bool:
        """Nobody made one of its views or functions anew. A query that has Spark's own functions only asks nobody."""
        parsed = self.parsed(table.query)
        if replaced_views(table.fingerprint, _texts(parsed)):
            return False
        if not parsed.functions:
            return True
        self._compute.wait_ready()
        return self.plan_of(table).fingerprint == table.fingerprint

    def forget(self, table_id: str) -> None:
        with self._lock:
            known = self._known.pop(table_id, None)
            if known is not None:
                self._parsed.pop(known.query, None)


def _texts(parsed: ParsedQuery) -> tuple[tuple[str, str], ...]:
    return tuple((view.name, view.query.text) for view in parsed.views)
