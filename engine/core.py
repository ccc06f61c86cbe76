"""The parts of an engine that work: wired together in one place, and what is smaller than a module of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.catalog.lease import Lease
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.compile.dml import relations_of, retargeted, target_of
from engine.compile.parse import Limits
from engine.errors import InvalidArgument, NotPopulated
from engine.events import EventBus
from engine.explain import Explainer
from engine.lake import queries, quoting, views
from engine.lake.compute import SparkCompute
from engine.lake.heads import HeadReader
from engine.lake.session import SparkHost
from engine.observe.history import History
from engine.records import StreamTable
from engine.refresh import verify
from engine.refresh.define import Definitions
from engine.refresh.ledger import Ledger
from engine.refresh.plans import Plans
from engine.refresh.repair import Repairs
from engine.refresh.run import Refresher
from engine.refresh.sources import Sources
from engine.results import VerifyResult
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
    explainer: Explainer

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
        plans = Plans(catalog, compute, limits, settings.compile.dialect)
        sources = Sources(catalog, compute, events, settings, clock)
        refresher = Refresher(catalog, compute, plans, ledger, events, settings, clock, lease.epoch)
        definitions = Definitions(
            catalog, compute, plans, sources, refresher, history, events, settings, clock, warehouse
        )
        scheduler = Scheduler(catalog, lease, refresher, host, history, events, settings, clock)
        repairs = Repairs(catalog, definitions, refresher, events, warehouse)
        explainer = Explainer(catalog, host, plans, sources)
        return Core(catalog, host, plans, sources, refresher, definitions, scheduler, repairs, explainer)

    # ---------------------------------------------------------------- reading

    def verify(self, table: StreamTable) -> VerifyResult:
        target = self.refresher.observer.target(table, self.catalog.get_progress(table.id))
        sources = [self.plans.relations.located(name) for name in table.sources]
        return verify.verify(self.host.session(), table, self.plans.plan_of(table).canonical_query, target, sources)

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
        names = relations_of(text)
        for name in names:
            if name.casefold() in {table.name.casefold() for table in self.catalog.stream_tables()}:
                self._refuse_unpopulated(name)
        self.plans.relations.show_latest(self.host.session(), names)
        self.host.analyze(text)  # its errors have names and positions
        queries.tune(self.host.session(), small=False)
        return queries.collect(queries.run(self.host.session(), text, "the query"), "the query")

    def _refuse_unpopulated(self, name: str) -> None:
        table = self.catalog.get_stream_table(name)
        if not self.catalog.get_progress(table.id).populated:
            raise NotPopulated(f"{table.name} was never populated", hint=f"`trickle refresh {table.name}` does it")

    # ---------------------------------------------------------------- writing to sources

    def change_source(self, text: str) -> int:
        name, _, _ = target_of(text)
        located = self.plans.relations.located(name)
        if located.is_stream_table:
            raise InvalidArgument(
                f"{located.name} is a stream table: only its query decides what is in it", hint="change its sources"
            )
        session = self.host.session()
        self.plans.relations.show_latest(session, relations_of(text))
        queries.tune(session, small=False)
        queries.run(session, retargeted(text, quoting.table(located.path)), f"changing {located.name}")
        return HeadReader().head(located.path).version
