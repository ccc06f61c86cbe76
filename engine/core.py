"""The parts of an engine that work: wired together in one place, and what is smaller than a module of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.catalog.lease import Lease
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.bind import Change, bind
from engine.compile.dml import relations_of, retargeted, target_of
from engine.compile.functions import FunctionRules, VolatileFunctionPolicy
from engine.compile.parse import Limits, ParsedQuery, ParsedView, naming_the_view
from engine.compile.plan import MaintenancePlan
from engine.compile.render import render
from engine.errors import InvalidArgument, NotPopulated
from engine.events import EventBus
from engine.lake import queries, quoting, tables, views
from engine.lake.compute import SparkCompute
from engine.lake.heads import HeadReader
from engine.lake.session import SparkHost
from engine.lake.views import of_query as show_query
from engine.observe.history import History
from engine.records import Reason, ReasonCode, RefreshMode, StreamTable
from engine.refresh import verify
from engine.refresh.define import Definitions
from engine.refresh.ledger import Ledger
from engine.refresh.plans import Plans
from engine.refresh.repair import Repairs
from engine.refresh.run import Refresher
from engine.refresh.sources import Sources
from engine.refresh.views import Views
from engine.results import Explanation, VerifyResult
from engine.schedule.loop import Scheduler

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.config import Settings


@dataclass(frozen=True)
class Core:
    catalog: Catalog
    host: SparkHost
    plans: Plans
    sources: Sources
    refresher: Refresher
    definitions: Definitions
    scheduler: Scheduler
    repairs: Repairs
    views: Views

    @staticmethod
    def build(
        catalog: Catalog,
        host: SparkHost,
        history: History,
        events: EventBus,
        ledger: Ledger,
        settings: Settings,
        clock: Clock,
        lease: Lease,
        warehouse: Path,
    ) -> Core:
        limits = Limits(settings.compile.max_parse_depth, settings.compile.max_parse_nodes)
        compute = SparkCompute(host)
        rules = FunctionRules(
            VolatileFunctionPolicy(settings.compile.volatile_function_policy), settings.compile.immutable_functions
        )
        plans = Plans(catalog, compute, limits, rules)
        sources = Sources(catalog, compute, events, settings, clock)
        refresher = Refresher(catalog, compute, plans, ledger, events, settings, clock, lease.epoch)
        definitions = Definitions(
            catalog, compute, plans, sources, refresher, history, events, settings, clock, warehouse
        )
        scheduler = Scheduler(catalog, lease, refresher, host, history, events, settings, clock)
        repairs = Repairs(catalog, definitions, refresher, events, warehouse)
        made = Views(catalog, compute, plans, events, limits, clock)
        return Core(catalog, host, plans, sources, refresher, definitions, scheduler, repairs, made)

    # ---------------------------------------------------------------- explain

    def explain(self, table: StreamTable) -> Explanation:
        plan = self.plans.plan_of(table)
        return _explanation(table.name, plan, table.refresh_mode, self._without_feed(plan))

    def explain_query(self, query: str) -> Explanation:
        plan = self.plans.compile(query, full=False)
        return _explanation("", plan, RefreshMode.AUTO, self._without_feed(plan))

    def _without_feed(self, plan: MaintenancePlan) -> Reason | None:
        """A source whose changes cannot be read makes every refresh a full one."""
        located = (self.plans.relations.located(name) for name in plan.sources)
        mute = next((each.name for each in located if not tables.cdf_enabled(each.path)), None)
        return None if mute is None else Reason(ReasonCode.NO_CHANGE_FEED, f"{mute} does not record its changes")

    # ---------------------------------------------------------------- reading

    def verify(self, table: StreamTable) -> VerifyResult:
        target = self.refresher.observer.target(table, self.catalog.get_progress(table.id))
        sources = [self.plans.relations.located(name) for name in table.sources]
        plan = self.plans.plan_of(table)
        me = SparkCompute(self.host).evaluates(datetime.now(UTC)) if plan.replay is not None else None
        return verify.verify(self.host.session(), table, plan, target, sources, me)

    def preview(self, table: StreamTable, limit: int) -> pa.Table:
        self._refuse_unpopulated(table.name)
        session = self.host.session()
        queries.tune(session, small=True)
        views.of_latest(session, table.name, table.path, table.columns)
        name = quoting.name(table.name)
        return queries.collect(
            queries.run(session, f"SELECT * FROM {name} LIMIT {int(limit)}", f"reading {table.name}"),  # noqa: S608
            f"reading {table.name}",
        )

    def select(self, text: str) -> pa.Table:
        self._show_latest(relations_of(text))
        self.host.analyze(text)  # its errors have names and positions
        queries.tune(self.host.session(), small=False)
        return queries.collect(queries.run(self.host.session(), text, "the query"), "the query")

    def _show_latest(self, names: tuple[str, ...]) -> None:
        """Sources, stream tables and views, with all that views read, as they are now."""
        views = {view.name.casefold(): view for view in self.catalog.views()}
        inside = {name: self.plans.parsed(views[name.casefold()].query) for name in names if name.casefold() in views}
        read = dict.fromkeys((*(name for name in names if name not in inside), *_all_sources(inside.values())))
        for name in read:
            if name.casefold() in {table.name.casefold() for table in self.catalog.stream_tables()}:
                self._refuse_unpopulated(name)
        session = self.host.session()
        self.plans.relations.show_latest(session, tuple(read))
        for name, parsed in inside.items():
            for part in (*parsed.views, ParsedView(name, parsed)):
                with naming_the_view(part.name, None):
                    show_query(session, part.name, part.query.text)

    def _refuse_unpopulated(self, name: str) -> None:
        table = self.catalog.get_stream_table(name)
        if not self.catalog.get_progress(table.id).populated:
            raise NotPopulated(f"{table.name} was never populated", hint=f"`trickle refresh {table.name}` does it")

    # ---------------------------------------------------------------- writing to sources

    def change_source(self, text: str) -> int:
        name, _, _ = target_of(text)
        if self.views.find(name) is not None:
            raise InvalidArgument(f"{name} is a view: it has no rows of its own", hint="change what it reads")
        located = self.plans.relations.located(name)
        if located.is_stream_table:
            raise InvalidArgument(
                f"{located.name} is a stream table: only its query decides what is in it", hint="change its sources"
            )
        session = self.host.session()
        self._show_latest(relations_of(text))
        queries.tune(session, small=False)
        queries.run(session, retargeted(text, quoting.table(located.path)), f"changing {located.name}")
        return HeadReader().head(located.path).version


def _all_sources(queries: Iterable[ParsedQuery]) -> Iterator[str]:
    for query in queries:
        yield from query.sources


def _explanation(name: str, plan: MaintenancePlan, mode: RefreshMode, without_feed: Reason | None) -> Explanation:
    kept = plan.kept
    full = kept is None or mode is RefreshMode.FULL or without_feed is not None
    sql = ""
    began = time.perf_counter()
    if kept is not None and not full:
        statements = bind(kept, dict.fromkeys(plan.sources, Change.MIXED))
        parts = [statements.first] if statements.first is not None else []
        sql = ";\n\n".join(render(tree, pretty=True) for tree in (*parts, statements.change))
    planning_ms = plan.planning_ms + (time.perf_counter() - began) * 1000
    return Explanation(
        name=name,
        query=plan.query,
        mode="full" if full else "differential",
        reason=plan.full_reason or (without_feed if mode is not RefreshMode.FULL else None),
        identity=f"{kept.rule.name} ({', '.join(kept.identity)})" if kept is not None else "recomputed as a whole",
        root=plan.tree,
        stages=plan.stages,
        delta_sql=sql,
        columns=plan.visible,
        hidden_columns=plan.hidden,
        planning_ms=planning_ms,
        analysis_ms=plan.analysis_ms,
    )
