"""The parts of an engine that work: wired together in one place, and what is smaller than a module of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from engine.catalog.lease import Lease
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.dml import relations_of, retargeted, target_of
from engine.compile.functions import FunctionRules, VolatileFunctionPolicy
from engine.compile.parse import Limits, ParsedView, naming_the_view
from engine.durations import parse_duration
from engine.errors import InvalidArgument, NotPopulated
from engine.events import EventBus
from engine.explain import Explainer
from engine.lake import apply, queries, quoting, views
from engine.lake.compute import SparkCompute
from engine.lake.session import SparkHost
from engine.lake.shared_changes import SharedChanges
from engine.lake.turns import Turns
from engine.observe.history import History
from engine.records import CdcMode, StreamTable
from engine.refresh import rename, verify
from engine.refresh.alter import Alterations
from engine.refresh.cdc import Cdc
from engine.refresh.define import Definitions
from engine.refresh.foresee import Foresight
from engine.refresh.ledger import Ledger
from engine.refresh.maintain import Maintainer
from engine.refresh.plans import Plans
from engine.refresh.rename import Renames
from engine.refresh.repair import Repairs
from engine.refresh.run import Refresher
from engine.refresh.source_ddl import SourceDdl
from engine.refresh.sources import Sources
from engine.refresh.views import Views
from engine.refresh.writes import Writes
from engine.results import VerifyResult, WriteResult
from engine.schedule.alerts import HistoryAlerts
from engine.schedule.loop import Scheduler
from engine.workspace import Workspace

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
    explainer: Explainer
    views: Views
    alterations: Alterations
    foresight: Foresight
    writes: Writes
    cdc: Cdc
    source_ddl: SourceDdl
    renames: Renames
    maintainer: Maintainer

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
        workspace: Workspace,
    ) -> Core:
        warehouse = workspace.warehouse
        turns = Turns(workspace.turns, parse_duration(settings.sources.write_wait))
        if not catalog.read_only:
            rename.finish(catalog, history)
        limits = Limits.of(settings.compile)
        shared = SharedChanges(settings.sources.shared_changes_mb * 1_000_000)
        compute = SparkCompute(host, shared)
        rules = FunctionRules(
            VolatileFunctionPolicy(settings.compile.volatile_function_policy), settings.compile.immutable_functions
        )
        plans = Plans(catalog, compute, limits, rules, settings.compile.dialect)
        sources = Sources(catalog, compute, events, settings, clock, turns)
        refresher = Refresher(catalog, compute, plans, ledger, events, settings, clock, lease.epoch)
        definitions = Definitions(
            catalog, compute, plans, sources, refresher, history, events, settings, clock, warehouse
        )
        cdc = Cdc(
            catalog,
            plans.relations,
            refresher.observer,
            refresher.polls,
            shared,
            clock,
            settings.sources.history_warning,
            settings.sources.history_alarm,
        )
        ddl = SourceDdl(catalog, host, plans, settings, turns)
        alerts = HistoryAlerts(cdc, events, clock, settings.scheduler.alert_cooldown_seconds)
        maintainer = Maintainer(catalog, compute, refresher, events, settings, clock)
        scheduler = Scheduler(
            catalog, lease, refresher, host, history, events, settings, clock, turns, alerts, maintainer
        )
        repairs = Repairs(catalog, definitions, refresher, history, events, warehouse)
        explainer = Explainer(catalog, host, plans, sources, settings.refresh.immediate_top_k_limit)
        made = Views(catalog, compute, plans, definitions, events, limits, clock)
        altering = Alterations(catalog, plans, definitions, refresher, events)
        writes = Writes(catalog, plans, refresher, ledger, events, settings, turns)
        foresight = Foresight(catalog, refresher.observer, plans, refresher.sizes, settings)
        renames = Renames(catalog, definitions, refresher, history, events, settings)
        return Core(
            catalog,
            host,
            plans,
            sources,
            refresher,
            definitions,
            scheduler,
            repairs,
            explainer,
            made,
            altering,
            foresight,
            writes,
            cdc,
            ddl,
            renames,
            maintainer,
        )

    # ---------------------------------------------------------------- reading

    def verify(self, table: StreamTable) -> VerifyResult:
        target = self.refresher.observer.target(table, self.catalog.get_progress(table.id))
        relations = self.plans.relations.as_known_to(table)
        sources = [relations.located(name) for name in table.sources]
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
        known = {view.name.casefold(): view for view in self.catalog.views()}
        inside = {name: self.plans.parsed(known[name.casefold()].query) for name in names if name.casefold() in known}
        read = dict.fromkeys(name for name in names if name not in inside)
        read |= dict.fromkeys(chain.from_iterable(parsed.sources for parsed in inside.values()))
        tables = {table.name.casefold() for table in self.catalog.stream_tables()}
        for name in read:
            if name.casefold() in tables:
                self._refuse_unpopulated(name)
        self.refresher.polls.look(read)
        session = self.host.session()
        self.plans.relations.show_latest(session, tuple(read))
        for name, parsed in inside.items():
            for part in (*parsed.views, ParsedView(name, parsed)):
                with naming_the_view(part.name, None):
                    views.of_query(session, part.name, part.query.text)

    def _refuse_unpopulated(self, name: str) -> None:
        table = self.catalog.get_stream_table(name)
        if not self.catalog.get_progress(table.id).populated:
            raise NotPopulated(f"{table.name} was never populated", hint=f"`trickle refresh {table.name}` does it")

    # ---------------------------------------------------------------- writing to sources

    def change_source(self, text: str, also: str | None) -> WriteResult:
        name, _, _ = target_of(text)
        if self.views.find(name) is not None:
            raise InvalidArgument(f"{name} is a view: it has no rows of its own", hint="change what it reads")
        located = self.plans.relations.located(name)
        if located.is_stream_table:
            raise InvalidArgument(
                f"{located.name} is a stream table: only its query decides what is in it", hint="change its sources"
            )
        if located.cdc_mode is CdcMode.POLL:
            raise InvalidArgument(
                f"{located.name} is polled: what Trickle has of it is a copy", hint="write to it where it lies"
            )

        def execute(said: str) -> None:
            session = self.host.session()
            self._show_latest(relations_of(text))
            queries.tune(session, small=False)
            with apply.saying(session, said):
                queries.run(session, retargeted(text, quoting.table(located.path)), f"changing {located.name}")

        return self.writes.run(located, execute, also)
