"""An engine without an engine: a shop with sixteen stream tables in every state, and a clock that stands.

It answers like the real bridge, so the screen can be driven without Spark. `FakeBridge.requests` records what
was asked; `fail_with` makes the next request fail; `block` holds requests until it is set.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from engine.errors import TrickleError
from engine.event_records import Event, EventKind, Severity
from engine.records import (
    Column,
    Initiator,
    OperatorStats,
    Outcome,
    Overview,
    Reason,
    ReasonCode,
    RefreshMode,
    RefreshRecord,
    RunningRefresh,
    SchedulerPlace,
    SchedulerStatus,
    SourceVersion,
    SparkPhase,
    SparkStatus,
    State,
    StreamTable,
    StreamTableStatus,
)
from engine.results import CostError, Explanation, PlanNode, StreamTableExplanation, VerifyResult
from trickle_tui.snapshot import (
    Answer,
    Cancel,
    Done,
    Drop,
    Explain,
    Explained,
    Focus,
    Maintain,
    Pause,
    Refresh,
    Reinitialize,
    Rename,
    Request,
    Resume,
    Rows,
    RunSql,
    Sample,
    Snapshot,
    UiSettings,
    Verified,
    Verify,
)

NOW = datetime(2026, 5, 4, 12, 4, 31, tzinfo=UTC)
_DIFFERENTIAL = Reason(ReasonCode.DIFFERENTIAL, "differential")


@dataclass(frozen=True)
class Made:
    """One line of the shop: what the list shows of a stream table."""

    name: str
    state: State
    stale_s: float | None
    every_s: float
    last_s: float
    rows: int
    due_s: float | None
    sources: tuple[str, ...]
    feeds: tuple[str, ...] = ()
    full: ReasonCode | None = None
    mode: RefreshMode = RefreshMode.AUTO
    error: str | None = None
    hint: str | None = None


_COST = ReasonCode.COST
SHOP = (
    Made("fx_exposure", State.FAILED, 1080, 60, 0.31, 0, None, ("payments", "fx_rates"),
         error="column fx_rates.rate was dropped at 11:46 by another writer",
         hint="put the column back, or drop and create fx_exposure"),
    Made("payments_daily", State.FUSED, 7512, 60, 0.24, 0, None, ("payments",), ("customer_ltv",),
         error="48,210 rows in one commit; usual 310 ± 95, ceiling 10,000"),
    Made("top_products", State.STALE, 192, 60, 4.10, 8140, 0, ("orders_enriched", "lines_clean"), full=_COST),
    Made("stock_live", State.LATE, 1.9, 1, 1.20, 61, 0, ("stock",), ("inventory_delta",)),
    Made("customer_ltv", State.RUNNING, 21, 30, 0.80, 15, None, ("orders_enriched", "payments_daily"),
         ("exec_summary",)),
    Made("revenue_by_region", State.FRESH, 12, 30, 0.21, 1242, 18, ("orders_enriched", "regions"), ("exec_summary",)),
    Made("orders_enriched", State.FRESH, 4, 10, 0.34, 1204, 6, ("orders", "customers"),
         ("revenue_by_region", "customer_ltv", "top_products")),
    Made("lines_clean", State.FRESH, 6, 10, 0.19, 3611, 4, ("lines",), ("top_products", "basket_affinity")),
    Made("sessions_hourly", State.FRESH, 161, 300, 0.92, 22408, 139, ("sessions",), ("cohort_retention",)),
    Made("basket_affinity", State.FRESH, 38, 120, 1.76, 504, 82, ("lines_clean",)),
    Made("refunds_by_reason", State.FRESH, 3, 60, 0.18, 7, 57, ("refunds",)),
    Made("shipments_open", State.FRESH, 21, 30, 0.26, 96, 9, ("shipments",)),
    Made("inventory_delta", State.FRESH, 9, 30, 0.22, 318, 21, ("stock_live",)),
    Made("supplier_scorecard", State.FRESH, 840, 3600, 2.05, 1090, 2760, ("suppliers", "shipments")),
    Made("cohort_retention", State.FRESH, 22320, 86400, 38.4, 412006, 61200, ("sessions_hourly",),
         mode=RefreshMode.FULL),
    Made("audit_2019", State.FROZEN, None, 86400, 0, 0, None, ("orders",), mode=RefreshMode.FULL),
)  # fmt: skip


def _ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def _reason(made: Made) -> Reason | None:
    if made.full is _COST:
        return Reason(_COST, "31 % of rows change, differential would cost 5.9s")
    if made.full is not None:
        return Reason(made.full, made.full.value)
    return Reason(ReasonCode.REQUESTED_FULL, "asked for") if made.mode is RefreshMode.FULL else _DIFFERENTIAL


def _operators() -> tuple[OperatorStats, ...]:
    return (
        OperatorStats("0", 0, "customer_ltv", "", "merge of a small delta", "", None, 15, 15, 110, 100),
        OperatorStats("1", 1, "Aggregate", "customer_id → sum(amount), count(*)", "algebraic: stored sums + Δ", "",
                      1204, 15, 20, 40, 50),
        OperatorStats("2", 2, "Join inner", "customer_id = customers.id", "Δ × old, new × Δ", "", 1204, 1204, 1150,
                      610, 430),
        OperatorStats("3", 3, "Filter", "status <> 'void'", "linear", "", 1261, 1204, 1210, 3, 3),
        OperatorStats("4", 4, "Δ orders", "403→404", "insert-only", "", None, 1261, 1261, 10, 10),
        OperatorStats("5", 3, "Join left", "region_id = regions.id", "unchanged: pruned", "", 0, 0, 0, None, None,
                      pruned=True),
        OperatorStats("6", 4, "customers", "@97", "unchanged, 150,000 rows read", "", None, 0, 0, None, None,
                      pruned=True),
        OperatorStats("7", 4, "regions", "@7", "unchanged", "", None, 0, 0, None, None, pruned=True),
    )  # fmt: skip


DELTA_SQL = """WITH d_orders AS ( -- Δ orders 403→404, insert-only
  SELECT customer_id, amount, _weight
  FROM orders_changes
  WHERE status <> 'void'
), d_join AS ( -- Δ × old; new × Δ is empty: pruned
  SELECT d.customer_id, d.amount, d._weight
  FROM d_orders AS d JOIN customers VERSION AS OF 97 AS c ON d.customer_id = c.id
)
SELECT customer_id, SUM(amount * _weight) AS d_sum, SUM(_weight) AS d_count
FROM d_join
GROUP BY customer_id"""

QUERY = """SELECT o.customer_id,
       SUM(o.amount) AS revenue,
       COUNT(*)      AS orders
FROM orders AS o
JOIN customers AS c ON o.customer_id = c.id
WHERE o.status <> 'void' -- cancelled before payment
GROUP BY o.customer_id"""


def _history(made: Made, many: int = 60) -> tuple[RefreshRecord, ...]:
    chance = random.Random(made.name)
    base = 1742 - many
    records: list[RefreshRecord] = []
    for index in range(many):
        ago = (many - 1 - index) * made.every_s + (made.stale_s or 0)
        seconds = made.last_s * chance.uniform(0.85, 1.15)
        rows = round(made.rows * chance.uniform(0.6, 1.3))
        if index == many - 18:
            seconds, rows = made.last_s * 2.2, made.rows * 3
        if index == many - 1:
            seconds, rows = made.last_s, made.rows
        quiet = made.name == "shipments_open" and index % 3 == 1
        full = made.full is not None or made.mode is RefreshMode.FULL
        outcome = Outcome.NO_DATA if quiet else Outcome.FULL if full else Outcome.DIFFERENTIAL
        deleted = rows // 40
        records.append(
            RefreshRecord(
                refresh_id=f"{made.name}-{index}",
                number=base + index,
                st=made.name,
                started_at=_ago(ago + seconds),
                finished_at=_ago(ago),
                outcome=outcome,
                requested_mode=made.mode,
                reason=Reason(ReasonCode.NO_DATA, "nothing changed upstream")
                if quiet
                else _reason(made) or _DIFFERENTIAL,
                strategy="merge of a small delta",
                initiated_by=Initiator.SCHEDULER,
                sequence=index,
                rows_in=0 if quiet else rows,
                rows_inserted=0 if quiet else rows - deleted,
                rows_deleted=0 if quiet else deleted,
                duration_ms=3 if quiet else seconds * 1000,
                phases_ms={} if quiet else {"detect": 12, "plan": 18, "read": 10, "run": seconds * 800, "commit": 110},
                estimated_ms=made.last_s * 940,
                operators=() if quiet else _operators(),
                sql="" if quiet else DELTA_SQL,
            )
        )
    if made.error is not None:
        records[-1] = replace(records[-1], outcome=Outcome.FAILED, error=made.error, error_hint=made.hint)
    return tuple(records)


def status(made: Made) -> StreamTableStatus:
    history = _history(made)
    running = None
    if made.state is State.RUNNING:
        running = RunningRefresh(made.name, "r", _ago(0.5), "join", 2, 3, Initiator.EVENT)
    full = made.full is not None or made.mode is RefreshMode.FULL
    never = made.state is State.FROZEN
    return StreamTableStatus(
        name=made.name,
        state=made.state,
        refresh_mode=made.mode,
        effective_mode="full" if full else "differential",
        reason=_reason(made),
        schedule=f"{made.every_s:g}s",
        interval_s=made.every_s,
        staleness_s=made.stale_s,
        next_due_at=None if made.due_s is None else NOW + timedelta(seconds=made.due_s),
        last=None if never else history[-1],
        recent_ms=() if never else tuple(r.duration_ms for r in history if r.outcome is not Outcome.NO_DATA)[-20:],
        running=running,
        error=made.error,
        error_hint=made.hint,
        sources=made.sources,
        dependents=made.feeds,
        frontier={name: SourceVersion(412 - i * 24, "c", "t") for i, name in enumerate(made.sources)},
        owner="etl",
        verified_at=_ago(8671) if made.name == "revenue_by_region" else None,
        verified_equal=True if made.name == "revenue_by_region" else None,
    )


def _event(
    number: int, ago: float, subject: str, text: str, kind: EventKind, severity: Severity = Severity.OK
) -> Event:
    return Event(_ago(ago), kind, severity, subject, text, number=number)


_DONE = EventKind.REFRESH_COMPLETED
EVENTS = (
    _event(1, 209, "", "scheduler started, 4 workers", EventKind.SCHEDULER_STARTED),
    _event(2, 181, "refunds_by_reason", "differential 0.18s, +7 −0", _DONE),
    _event(3, 139, "payments_daily", "still blown after 2h03m (reminder)", EventKind.REFRESH_SKIPPED, Severity.WARN),
    _event(4, 120, "inventory_delta", "differential 0.22s, +160 −158", _DONE),
    _event(5, 107, "basket_affinity", "differential 1.76s, +252 −252", _DONE),
    _event(6, 104, "sessions_hourly", "differential 0.92s, +22,180 −228", _DONE),
    _event(7, 79, "payments_daily", "still blown after 2h04m (reminder)", EventKind.REFRESH_SKIPPED, Severity.WARN),
    _event(8, 51, "shipments_open", "nothing changed upstream, 3ms", _DONE),
    _event(9, 33, "top_products", "full instead of differential: cost (5.9s against 4.1s)", EventKind.MODE_FALLBACK,
           Severity.WARN),
    _event(10, 12, "revenue_by_region", "differential 0.21s, +1,204 −38", _DONE),
    _event(11, 5, "orders_enriched", "differential 0.34s, +1,204 −0", _DONE),
    _event(12, 2, "stock_live", "commit 9031 of stock was not sent through Trickle", EventKind.REFRESH_SKIPPED,
           Severity.WARN),
    _event(13, 0, "customer_ltv", "started, differential: orders 411→412, 1,204 rows", EventKind.REFRESH_STARTED),
)  # fmt: skip


def shop() -> Overview:
    tables = tuple(status(made) for made in SHOP)
    running = tuple(table.running for table in tables if table.running)
    return Overview(
        workspace="shop",
        path="/srv/shop",
        at=NOW,
        scheduler=SchedulerStatus(SchedulerPlace.HERE, running=running),
        spark=SparkStatus(SparkPhase.READY, running_jobs=2),
        tables=tables,
        events=EVENTS,
    )


def many_tables(number: int) -> Overview:
    """The shop again and again under other names."""
    tables = shop().tables
    return replace(
        shop(),
        tables=tuple(
            replace(tables[index % len(tables)], name=f"{tables[index % len(tables)].name}_{index}")
            for index in range(number)
        ),
    )


def empty_workspace(phase: SparkPhase = SparkPhase.STARTING, detail: str = "") -> Overview:
    return replace(shop(), tables=(), events=(), spark=SparkStatus(phase, detail))


def explanation() -> Explanation:
    orders = PlanNode("4", "Δ orders", "@412", "feed", "")
    customers = PlanNode("6", "Δ customers", "@97", "feed", "")
    join = PlanNode("2", "Join inner", "customer_id = customers.id", "Δ × old, new × Δ", "", (orders, customers))
    root = PlanNode("1", "Aggregate", "customer_id → sum(amount), count(*)", "algebraic: stored sums + Δ", "", (join,))
    return Explanation(
        query=QUERY,
        mode="differential",
        reason=_DIFFERENTIAL,
        identity="by key",
        root=root,
        columns=COLUMNS,
        hidden_columns=(Column("__trickle_count", "bigint", False),),
        sources=("orders", "customers"),
        notices=(),
        planning_ms=4.1,
        analysis_ms=120.0,
    )


COLUMNS = (
    Column("customer_id", "bigint", False),
    Column("revenue", "decimal(22,2)"),
    Column("orders", "bigint", False),
)


def definition(made: Made) -> StreamTable:
    return StreamTable(
        id=made.name, name=made.name, query=QUERY, refresh_mode=made.mode, schedule=f"{made.every_s:g}s",
        interval_s=made.every_s, path=f"/srv/shop/.trickle/warehouse/{made.name}", owner="etl", created_at=_ago(86400),
        sources=made.sources, columns=COLUMNS, fingerprint="f", comment="what each customer brought in",
    )  # fmt: skip


@dataclass
class FakeBridge:
    overview: Overview = field(default_factory=shop)
    ui: UiSettings = field(default_factory=UiSettings)
    is_read_only: bool = False
    requests: list[Request] = field(default_factory=list)
    fail_with: TrickleError | None = None
    block: threading.Event | None = None
    clock: Callable[[], datetime] = lambda: NOW
    started: bool = False
    closed: bool = False
    wake: Callable[[], None] = lambda: None
    snapshots_taken: int = 0

    @property
    def read_only(self) -> bool:
        return self.is_read_only

    @property
    def settings(self) -> UiSettings:
        return self.ui

    def now(self) -> datetime:
        return self.clock()

    def start(self) -> None:
        self.started = True

    def snapshot(self, focus: str | None) -> Snapshot:
        self.snapshots_taken += 1
        made = next((made for made in SHOP if made.name == focus), None)
        if made is None:
            return Snapshot(self.overview)
        cycle = made.every_s * 1.1
        samples = tuple(
            Sample(_ago(ago), (made.stale_s or 0) + (cycle - ago) % cycle * 0.9) for ago in range(120, 0, -1)
        )
        return Snapshot(self.overview, Focus(made.name, definition(made), _history(made), samples))

    def perform(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.block is not None:
            self.block.wait()
        if self.fail_with is not None:
            error, self.fail_with = self.fail_with, None
            raise error
        match request:
            case Refresh(name) | Reinitialize(name):
                return Done(f"{name}: differential 0.80s, +12 −3")
            case Pause(name) | Resume(name) | Cancel(name) | Drop(name) | Maintain(name) | Rename(name):
                return Done(f"{name}: done")
            case Verify(name):
                return Verified(VerifyResult(name, True, 1242, 0, 0, (), {}, 310.0))
            case Explain(name):
                made = next(made for made in SHOP if made.name == name)
                status = next(table for table in self.overview.tables if table.name == name)
                return Explained(
                    StreamTableExplanation(definition(made), status, explanation(), (), DELTA_SQL, CostError(0.12, 20))
                )
            case RunSql(text):
                return Rows(
                    text, ("region", "revenue"), ("string", "decimal(22,2)"), (("Nordics", "9,120,533.10"),),
                    (False, True), 1,
                )  # fmt: skip

    def subscribe(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def close(self) -> None:
        self.closed = True
