"""Plans of stream tables, compiled once per process and again when a definition or a schema changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.algebra.nodes import Leaf, Node, Output, Project
from engine.algebra.scalars import col
from engine.algebra.trees import columns_by_leaf, leaves
from engine.catalog.store import Catalog
from engine.compile.bind import Change, Statements, bind
from engine.compile.few import reads_any
from engine.compile.functions import FunctionRules, Kind, VolatileFunctionPolicy
from engine.compile.keyed_reads import KeyedRead
from engine.compile.parse import Limits, ParsedQuery, parse
from engine.compile.pipeline import Request, compile_query, known_sources
from engine.compile.places import in_views
from engine.compile.plan import MaintenancePlan, replaced_views
from engine.compile.render import Places, render
from engine.compile.steps import Steps, in_steps
from engine.compile.translate import InSpark, in_spark
from engine.errors import InternalError, NotFound, QueryError, SourceSchemaChanged
from engine.lake import tables, views
from engine.lake.by_hand import by_hand
from engine.lake.lookups import Lookup
from engine.lake.opinion import Opinion
from engine.lake.sql_functions import SqlFunction
from engine.lake.steps import Query, QueryStep
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


#: for so many steps it is remembered what is left to do once they came out empty
_WAYS = 64


class Relations(Mapping[str, tuple[Column, ...]]):
    """All sources and stream tables of a workspace; a schema is read when it is asked for."""

    def __init__(self, catalog: Catalog, known: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._catalog = catalog
        #: by folded name: what there is to be seen of it, where that is not everything
        self._known = {name.casefold(): columns for name, columns in (known or {}).items()}

    def as_known_to(self, table: StreamTable) -> Relations:
        """With those of their columns that there were when its query was written."""
        return Relations(self._catalog, table.known_columns)

    def columns(self, names: Iterable[str]) -> dict[str, tuple[Column, ...]]:
        return {name: self[name] for name in names}

    def types(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """What a query that is written now knows of them."""
        return {name: {column.name: column.type for column in self[name]} for name in names}

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
        known = self._known.get(name.casefold())
        table = self._stream_table(name)
        if table is not None:
            return Located(table.name, table.path, restricted(table.columns, known), True)
        source = self._catalog.get_source(name)
        columns = restricted(tables.columns(source.path), known)
        return Located(source.name, source.path, columns, False, source.cdc_mode)

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


def restricted(columns: tuple[Column, ...], known: Iterable[str] | None) -> tuple[Column, ...]:
    """Those that are known, in the order in which they are; None: all."""
    if known is None:
        return columns
    there = {column.name.casefold(): column for column in columns}
    return tuple(there[name.casefold()] for name in known if name.casefold() in there)


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


@dataclass(frozen=True)
class Sizes:
    """What there is to know of the sources of a statement before it is cut into steps."""

    #: those that Spark had better not read twice, nor bring to others
    large: frozenset[str] = frozenset()
    #: and of these, those in which the driver can look keys up
    looked_up: frozenset[str] = frozenset()


def rendered(tree: Node, places: Places = in_views, sizes: Sizes | None = None) -> Query:
    sizes = sizes or Sizes()
    return _rendered(in_steps(tree, large=sizes.large, looked_up=sizes.looked_up), places, sizes.large)


def _rendered(steps: Steps, places: Places, large: frozenset[str]) -> Query:
    views = {places(step.leaf).name: step.leaf.name for step in steps.before}
    before = tuple(
        QueryStep(
            places(step.leaf).name,
            render(step.tree, places, pretty=True),
            is_few=step.is_few,
            reads_much=reads_any(step.tree, large),
            lookup=None if step.lookup is None else _lookup(step.lookup, places),
            by_hand=by_hand(step.tree, lambda leaf: places(leaf).name),
            reads=_read(step.tree, places),
        )
        for step in steps.before
    )

    @lru_cache(_WAYS)
    def given_empty(view: str) -> Query:
        return _rendered(steps.given_empty(views[view]), places, large)

    last = render(steps.last, places, pretty=True)
    much, reads = reads_any(steps.last, large), _read(steps.last, places)
    return Query(last, steps.whole, before, much, reads, given_empty if before else None)


def _read(tree: Node, places: Places) -> frozenset[str]:
    return frozenset(places(scan.leaf).name for scan in leaves(tree))


def _lookup(asked: KeyedRead, places: Places) -> Lookup:
    touched = asked.node.touched
    keys = Project(touched, tuple(Output(key, col(key), touched.types[key]) for key in asked.keys))
    columns = tuple((own, name) for name, own, _ in asked.scan.fields)
    sql, chosen = render(keys, places), by_hand(keys, lambda leaf: places(leaf).name)
    return Lookup(places(asked.scan.leaf).name, columns, asked.by, sql, chosen, _read(touched, places))


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
    #: tried instead of `first`; a row of it without a weight says that it cannot tell
    shortcut: Query | None = None


@dataclass(frozen=True)
class _Known:
    query: str
    mode: RefreshMode
    known_columns: Mapping[str, Mapping[str, str]]
    plan: MaintenancePlan
    #: of the sources, as they were when it was made
    columns: Mapping[str, tuple[Column, ...]]
    #: by the ways in which sources changed, of which a stream table's life sees few
    prepared: dict[tuple[tuple[tuple[str, Change], ...], Sizes], Prepared] = field(default_factory=dict)


class Plans:
    def __init__(
        self,
        catalog: Catalog,
        compute: Compute,
        limits: Limits,
        rules: FunctionRules | None = None,
        dialect: str = SqlDialect.SPARK,
    ) -> None:
        self.catalog = catalog
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

    def compile_written(self, query: InSpark, *, full: bool, relations: Relations | None = None) -> MaintenancePlan:
        """The plan, whose places point into the text as it was written."""
        with query.placed():
            plan = self.compile(query.text, full=full, relations=relations)
        reason = query.placed_reason(plan.full_reason)
        return replace(plan, full_reason=reason, notices=(*query.notices, *query.placed_notices(plan.notices)))

    def compile(
        self,
        query: str,
        *,
        full: bool,
        rules: FunctionRules | None = None,
        views: tuple[View, ...] | None = None,
        relations: Relations | None = None,
    ) -> MaintenancePlan:
        """`views`: as they would be; otherwise as they are. `relations`: as they are known; otherwise as they are."""
        views = self.catalog.views() if views is None else views
        relations = relations or self.relations
        parsed = parse(query, self._limits, views, relations)
        analyzer = Analyzer(self._compute, relations)
        analyzer.show(parsed.sources)
        return compile_query(Request(query, relations, self._limits, views, full, rules or self._rules), analyzer)

    def parsed(self, query: str, views: tuple[View, ...] | None = None) -> ParsedQuery:
        """With the views as they are now, or would be. Asks nobody, and is asked several times in each refresh."""
        views = self.catalog.views() if views is None else views
        with self._lock:
            known = self._parsed.get(query)
        if known is not None and known[0] == views:
            return known[1]
        parsed = parse(query, self._limits, views, self.relations)
        if parsed.unread is None:  # or else it depends on which relations there are
            with self._lock:
                self._parsed[query] = views, parsed
        return parsed

    def views_of(self, table: StreamTable) -> tuple[tuple[str, str], ...]:
        """Names and texts of those that it reads, as they are now."""
        return _texts(self.parsed(table.query))

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
        relations = self.relations.as_known_to(table)
        try:
            columns = relations.columns(table.sources)
            plan = self.compile(
                table.query,
                full=table.refresh_mode is RefreshMode.FULL,
                rules=self._rules_for(table),
                relations=relations,
            )
        except (QueryError, NotFound) as error:
            # It was accepted once, so it is the sources that changed.
            raise SourceSchemaChanged(
                f"the query of {table.name} no longer fits its sources",
                detail=error.message,
                hint=f"bring the column or table back and `trickle resume {table.name}`, or give it another query",
                position=error.position,
            ) from error
        with self._lock:
            self._known[table.id] = _Known(table.query, table.refresh_mode, table.known_columns, plan, columns)
        return plan

    def fitting_plan_of(self, table: StreamTable) -> MaintenancePlan:
        """The same, also where somebody changed the columns of its sources, and no refresh has noticed yet."""
        plan = self.plan_of(table)
        for name, used in plan.used_columns.items():
            now = {column.name.casefold(): column.type for column in self.relations[name]}
            if any(now.get(column.name.casefold()) != column.type for column in used):
                self.forget(table.id)
                return self.plan_of(table)
        return plan

    def _rules_for(self, table: StreamTable) -> FunctionRules:
        """What was accepted goes on when the policy becomes stricter."""
        accepted = table.full_reason is not None and table.full_reason.code is ReasonCode.STABLE
        return replace(self._rules, policy=VolatileFunctionPolicy.WARN) if accepted else self._rules

    def _holds(self, known: _Known, table: StreamTable) -> bool:
        """Functions that somebody made may be made anew at any time."""
        if (known.query, known.mode, known.known_columns) != (table.query, table.refresh_mode, table.known_columns):
            return False
        if known.plan.views != _texts(self.parsed(table.query)):
            return False
        functions = known.plan.functions
        return not functions or self._compute.meaning(functions) == known.plan.meaning

    def prepared(self, table: StreamTable, changes: Mapping[str, Change], sizes: Sizes | None = None) -> Prepared:
        """The statements for these changes; made once, because making them costs more than sending them."""
        sizes = sizes or Sizes()
        plan = self.plan_of(table)
        if plan.kept is None:
            raise InternalError("a query that can only be recomputed has no change")
        with self._lock:
            known = self._known[table.id]
        key = tuple(sorted(changes.items())), sizes
        found = known.prepared.get(key)
        if found is None:
            statements = bind(plan.kept, changes)
            first = None if statements.first is None else rendered(statements.first, sizes=sizes)
            change = rendered(statements.change, sizes=sizes)
            may_grow = bool(statements.whole_relations)
            shortcut = None if statements.shortcut is None else rendered(statements.shortcut, sizes=sizes)
            reads = columns_by_leaf(*(query.tree for query in (shortcut, first, change) if query and query.tree))
            found = Prepared(statements, first, change, reads, may_grow, shortcut)
            known.prepared[key] = found
        return found

    def still_means_the_same(self, table: StreamTable) -> bool:
        """Nobody made one of its views or functions anew. A query that has Spark's own functions only asks nobody."""
        if not self.has_its_views(table):
            return False
        if not self.parsed(table.query).functions:
            return True
        self._compute.wait_ready()
        return self.plan_of(table).fingerprint == table.fingerprint

    def has_its_views(self, table: StreamTable) -> bool:
        """Are the views that it names those that its fingerprint knows?"""
        return not replaced_views(table.fingerprint, _texts(self.parsed(table.query)))

    def at_hand(self, table: StreamTable) -> MaintenancePlan | None:
        """Its plan, where somebody asked for it before; it may be outdated."""
        with self._lock:
            known = self._known.get(table.id)
        return None if known is None else known.plan

    def look_again(self, table: StreamTable) -> None:
        """Forgets a plan that was made for other columns: nobody read in the logs whether there are such."""
        with self._lock:
            known = self._known.get(table.id)
        if known is not None and known.columns != self.relations.as_known_to(table).columns(known.columns):
            self.forget(table.id)

    def forget(self, table_id: str) -> None:
        with self._lock:
            known = self._known.pop(table_id, None)
            if known is not None:
                self._parsed.pop(known.query, None)


def _texts(parsed: ParsedQuery) -> tuple[tuple[str, str], ...]:
    return tuple((view.name, view.query.text) for view in parsed.views)
