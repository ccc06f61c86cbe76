"""An Engine that answers from memory, for tests of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine import config
from engine.alternatives import Alternative, CostPart, Way
from engine.errors import NotFound, Position, RefreshFailed, SourceWithoutChanges
from engine.event_records import Event, EventKind, Severity
from engine.records import (
    CdcMode,
    Column,
    Initiator,
    Notice,
    Outcome,
    Overview,
    Polled,
    Reason,
    ReasonCode,
    RefreshMode,
    RefreshRecord,
    SchedulerPlace,
    SchedulerStatus,
    Source,
    SourceStatus,
    SourceVersion,
    SparkPhase,
    SparkStatus,
    State,
    StreamTable,
    StreamTableStatus,
)
from engine.results import (
    CdcStatus,
    ChangeBuffer,
    CostError,
    CreateResult,
    DeltaCase,
    DeltaExplanation,
    DeltaStatement,
    DropResult,
    Explanation,
    Maintenance,
    PendingChange,
    PlanNode,
    Preview,
    Problem,
    RefreshModeExplanation,
    Rewrite,
    SourceRead,
    SqlResult,
    Stage,
    StreamTableExplanation,
    Validation,
    VerifyResult,
    VersionInfo,
    WriteResult,
)

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def refresh_record(st: str, outcome: Outcome = Outcome.DIFFERENTIAL, **other: Any) -> RefreshRecord:
    made = RefreshRecord(
        refresh_id="r1",
        number=1842,
        st=st,
        started_at=NOON,
        finished_at=NOON,
        outcome=outcome,
        requested_mode=RefreshMode.AUTO,
        reason=Reason(ReasonCode.DIFFERENTIAL, "every operator has a rule"),
        strategy="driver merge",
        initiated_by=Initiator.MANUAL,
        sequence=3,
        rows_in=1204,
        rows_inserted=12,
        rows_updated=1003,
        rows_deleted=4,
        duration_ms=212.0,
    )
    return replace(made, **other)


def stream_table(name: str, sources: tuple[str, ...] = ("orders",)) -> StreamTable:
    return StreamTable(
        id=name,
        name=name,
        query=f"SELECT 1 AS a -- {name}",
        refresh_mode=RefreshMode.AUTO,
        schedule="30s",
        interval_s=30.0,
        path=f"/w/{name}",
        owner="etl",
        created_at=NOON,
        sources=sources,
        columns=(Column("a", "int", False),),
        fingerprint="f",
    )


def status(name: str, state: State = State.FRESH, **other: Any) -> StreamTableStatus:
    made = StreamTableStatus(
        name=name,
        state=state,
        refresh_mode=RefreshMode.AUTO,
        effective_mode="differential",
        reason=None,
        schedule="30s",
        interval_s=30.0,
        staleness_s=12.3,
        next_due_at=NOON,
        last=refresh_record(name),
        sources=("orders",),
        frontier={"orders": SourceVersion(412, "h", "t")},
        owner="etl",
    )
    return replace(made, **other)


def explanation(query: str) -> Explanation:
    scan = PlanNode("2", "Scan", "orders", "delta", "")
    root = PlanNode("1", "Aggregate", "a → sum", "algebraic", "sums are exact", (scan,))
    return Explanation(
        query=query,
        mode="differential",
        reason=None,
        identity="by key",
        root=root,
        columns=(Column("a", "int"),),
        hidden_columns=(Column("__trickle_rows", "bigint"),),
        sources=("orders",),
        notices=(Notice("max(a): re-aggregates the touched groups", "use sums"),),
        planning_ms=1.0,
        analysis_ms=2.0,
    )


class FakeEngine:
    """Records every call in `calls`; `behaviour` replaces single answers."""

    calls: list[tuple[str, Any]]
    behaviour: dict[str, Callable[..., Any]]
    tables: tuple[StreamTable, ...]
    listeners: list[Callable[[Event], None]]
    place: SchedulerPlace
    settings: config.Settings

    @classmethod
    def fresh(cls) -> type[FakeEngine]:
        cls.calls, cls.behaviour, cls.listeners = [], {}, []
        cls.tables = (stream_table("revenue"), stream_table("top", ("revenue",)), stream_table("other"))
        cls.place = SchedulerPlace.HERE
        return cls

    def _did(self, verb: str, *what: Any) -> Any:
        type(self).calls.append((verb, what[0] if len(what) == 1 else what))
        replacement = self.behaviour.get(verb)
        return None if replacement is None else replacement(*what)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        read_only: bool = False,
        overrides: Mapping[str, str] | None = None,
        start_spark: bool = False,
    ) -> FakeEngine:
        engine = cls()
        engine.settings = config.load(Path(path), overrides or {}, env={})
        engine._did("open", (Path(path), read_only, dict(overrides or {}), start_spark))
        return engine

    @staticmethod
    def init(path: Path | str, name: str | None = None) -> Path:
        from engine.workspace import Workspace

        FakeEngine.calls.append(("init", (path, name)))
        return Workspace.create(Path(path)).root

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._did("close", ())

    def start_spark(self) -> None:
        self._did("start_spark", ())

    def spark_status(self) -> SparkStatus:
        return SparkStatus(SparkPhase.READY)

    def wait_for_spark(self, timeout_s: float | None = None) -> None:
        self._did("wait_for_spark", ())

    def start_scheduler(self) -> SchedulerStatus:
        self._did("start_scheduler", ())
        for listener in self.listeners:
            listener(Event(NOON, EventKind.SCHEDULER_STARTED, Severity.WARN, "revenue", "began", None, 1))
        return self.scheduler_status()

    def stop_scheduler(self, drain_timeout_s: float = 0.0) -> None:
        self._did("stop_scheduler", drain_timeout_s)

    def scheduler_status(self) -> SchedulerStatus:
        return SchedulerStatus(self.place, None if self.place is SchedulerPlace.HERE else 4711)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def overview(self, events: int = 200) -> Overview:
        failed = status("other", State.FAILED, error="column fx_rate is gone", error_hint="reinitialize")
        tables = (status("revenue"), status("top", last=None, staleness_s=None, next_due_at=None), failed)
        answer = self._did("overview")
        if answer is not None:
            return answer
        return Overview("shop", "/shop", NOON, self.scheduler_status(), self.spark_status(), tables, ())

    def stream_tables(self) -> tuple[StreamTable, ...]:
        return self.tables

    def stream_table(self, name: str) -> StreamTable:
        for table in self.tables:
            if table.name == name:
                return table
        raise NotFound(f"there is no stream table {name}", detail="looked", hint="there are: revenue")

    def status(self, name: str) -> StreamTableStatus:
        return status(self.stream_table(name).name)

    def create_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        append_only: bool = False,
        comment: str = "",
        enable_cdf: bool | None = None,
        dialect: str | None = None,
        differential_max_change_ratio: float | None = None,
        partition_by: Sequence[str] = (),
    ) -> CreateResult:
        given = {
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "initialize": initialize,
            "append_only": append_only,
            "comment": comment,
            "enable_cdf": enable_cdf,
            "dialect": dialect,
            "differential_max_change_ratio": differential_max_change_ratio,
            "partition_by": partition_by,
        }
        answer = self._did("create", name, query, given)
        refresh = refresh_record(name, Outcome.FULL) if initialize else None
        notices = (Notice("sources without a key", "declare one"),)
        return answer or CreateResult(stream_table(name), True, refresh, notices)

    def create_stream_table_if_not_exists(self, name: str, query: str, **options: Any) -> CreateResult:
        self._did("create_if_not_exists", name, query)
        return CreateResult(stream_table(name), False, None)

    def drop_stream_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> DropResult:
        self._did("drop", name, if_exists, cascade)
        if not if_exists:
            self.stream_table(name)
        return DropResult((name,) if any(each.name == name for each in self.tables) else ())

    def refresh_stream_table(
        self, name: str, *, full: bool = False, initiated_by: Initiator = Initiator.MANUAL
    ) -> RefreshRecord:
        answer = self._did("refresh", name, full)
        self.stream_table(name)
        return answer or refresh_record(name)

    def reinitialize_stream_table(self, name: str) -> RefreshRecord:
        self._did("reinitialize", name)
        self.stream_table(name)
        return refresh_record(name, Outcome.REINITIALIZE)

    def refresh_if_stale(self, name: str, max_age: str | float) -> RefreshRecord | None:
        self._did("refresh_if_stale", name, max_age)
        return refresh_record(name) if max_age == "5m" else None

    def rename_stream_table(self, name: str, new_name: str) -> StreamTable:
        self._did("rename", name, new_name)
        return replace(self.stream_table(name), name=new_name)

    def maintain_stream_table(self, name: str) -> Maintenance:
        self._did("maintain", name)
        self.stream_table(name)
        return Maintenance(name, 40, 2, 51, 169)

    def export_definition(self, name: str) -> str:
        return f"CREATE STREAM TABLE {self.stream_table(name).name} AS SELECT 1"

    def bulk_create(self, definitions: Sequence[Mapping[str, Any]]) -> tuple[CreateResult, ...]:
        self._did("bulk_create", *definitions)
        return tuple(CreateResult(stream_table(each["name"]), True, None) for each in definitions)

    def refresh_all(self) -> tuple[RefreshRecord, ...]:
        failed = refresh_record("other", Outcome.FAILED, error="boom", error_hint="mend it")
        return self._did("refresh_all") or (refresh_record("revenue"), failed)

    def pause_stream_table(self, name: str) -> StreamTableStatus:
        self._did("pause", name)
        return self.status(name)

    def resume_stream_table(self, name: str) -> StreamTableStatus:
        self._did("resume", name)
        return self.status(name)

    def verify(self, name: str) -> VerifyResult:
        self._did("verify", name)
        self.stream_table(name)
        equal = name != "top"
        return VerifyResult(name, equal, 1000, 0 if equal else 3, 0, () if equal else ("(1, a)",), {}, 88.0)

    def explain_st(self, name: str) -> StreamTableExplanation:
        table = self.stream_table(name)
        read = SourceRead("orders", "change data feed", 412, 413, ("a",))
        return StreamTableExplanation(
            table, status(name), explanation(table.query), (read,), "SELECT delta", CostError(0.12, 20)
        )

    def explain_refresh_mode(self, name: str) -> RefreshModeExplanation:
        table = self.stream_table(name)
        parts = (CostPart("any refresh of 2 operators", 90.0), CostPart("12 changed rows", 30.0))
        fails = (
            None if name != "top" else Problem("Tampered", "somebody else changed it", "by hand", "mend it", None, None)
        )
        return RefreshModeExplanation(
            name=table.name,
            requested_mode=RefreshMode.AUTO,
            outcome=Outcome.DIFFERENTIAL if fails is None else Outcome.FAILED,
            reason=Reason(ReasonCode.DIFFERENTIAL, "orders 412→413"),
            alternatives=(
                Alternative(Way.NO_DATA, None, (), "there is something to do"),
                Alternative(Way.DIFFERENTIAL, 120.0, parts, "by its last 7 refreshes of this kind", chosen=True),
                Alternative(Way.FULL, 2_100.0, (), "by its last refresh of this kind"),
            ),
            changes=(PendingChange("orders", 412, 413, "append", 12, 12, is_guess=False, source_rows=1_000),),
            max_change_ratio=None,
            error=CostError(0.12, 20),
            problem=fails,
        )

    def validate_query(self, query: str, *, dialect: str | None = None) -> Validation:
        self._did("validate_query", query, dialect)
        if "nope" in query:
            problem = Problem("NotFound", "there is no nope", None, "did you mean orders?", Position(1, 15), "nope")
            return Validation(query, problem, None)
        return Validation(query, None, explanation(query))

    def preview_stream_table(
        self, query: str, *, refresh_mode: str = "AUTO", limit: int = 10, dialect: str | None = None
    ) -> Preview:
        import pyarrow

        self._did("preview_stream_table", query, refresh_mode, limit, dialect)
        return Preview(explanation(query), pyarrow.table({"a": [1, None], "b": ["x", "y\x1b"]}), 2)

    def explain_query_rewrite(self, query: str, *, every_step: bool = False, dialect: str | None = None) -> Rewrite:
        self._did("explain_query_rewrite", query, every_step, dialect)
        steps = (
            Stage("parse", "PARSED", True, 1.0),
            Stage("push_filters", "AFTER", True, 1.0, "BEFORE"),
            Stage("prune", "SAME", False, 1.0, None),
        )
        shown = steps if every_step else steps[:2]
        return Rewrite(query, shown, 3 - len(shown), None)

    def explain_delta(
        self, name: str | None = None, *, query: str | None = None, dialect: str | None = None
    ) -> DeltaExplanation:
        self._did("explain_delta", name, query, dialect)
        statement = DeltaStatement("change", "SELECT delta", "Δ orders", ("the change of orders", "what is stored"))
        cases = (DeltaCase({"orders": "mixed"}, (statement,)), DeltaCase({"orders": "append"}, ()))
        return DeltaExplanation(name or "", None, cases)

    def history(self, st: str | None = None, limit: int = 50) -> tuple[RefreshRecord, ...]:
        self._did("history", st, limit)
        failed = refresh_record("other", Outcome.FAILED, error="boom\x1b[2J\nmore")
        return (refresh_record("revenue"), failed)[:limit]

    def add_source(
        self,
        name: str,
        path: str | Path,
        *,
        format: str = "delta",
        cdc_mode: str = "auto",
        key: tuple[str, ...] = (),
        enable_cdf: bool | None = None,
        options: Mapping[str, str] | None = None,
    ) -> SourceStatus:
        self._did("add_source", name, path, format, cdc_mode, key, enable_cdf)
        if format != "delta":
            polled = Polled(format, str(path), dict(options or {}))
            source = Source(name, f"/ws/polled/{name}", format, CdcMode.POLL, polled=polled)
            return SourceStatus(source, 1, False, (Column("a", "int"),), ())
        is_mute = name == "mute" and not enable_cdf
        if is_mute and cdc_mode == "cdf":
            raise SourceWithoutChanges("mute has no Change Data Feed", hint="allow Trickle to switch it on")
        source = Source(name, str(path), cdc_mode=CdcMode(cdc_mode))
        return SourceStatus(source, 412, not is_mute, (Column("a", "int"),), ())

    def enable_change_feed(self, name: str) -> SourceStatus:
        self._did("enable_change_feed", name)
        return SourceStatus(Source(name, "/d"), 413, True, (Column("a", "int"),), ())

    def sources(self) -> tuple[SourceStatus, ...]:
        good = SourceStatus(Source("orders", "/d/orders"), 1234, True, (Column("a", "int"),), ("revenue",))
        bad = SourceStatus(Source("gone", "/d/gone"), None, False, (), (), "no Delta table there")
        return self._did("sources") or (good, bad)

    def cdc_status(self) -> tuple[CdcStatus, ...]:
        waits = CdcStatus("orders", "revenue", "auto", "cdf", "its Change Data Feed is on", 412, 413, 1, 1204, 90_210)
        late = CdcStatus(
            "orders",
            "top",
            "auto",
            "diff",
            "its Change Data Feed is off",
            frontier=400,
            head=413,
            pending_versions=13,
            head_room_s=600.0,
            head_room_why="the log may forget version 401 in 10m",
            severity=Severity.ERROR,
        )
        return self._did("cdc_status") or (waits, late)

    def change_buffer_stats(self) -> tuple[ChangeBuffer, ...]:
        return self._did("change_buffer_stats") or (ChangeBuffer("orders", 2, "top", 13, 5000, 90_210, NOON, 4096),)

    def drop_source(self, name: str, *, if_exists: bool = False) -> bool:
        self._did("drop_source", name)
        return True

    def write_and_refresh(self, text: str, name: str) -> WriteResult:
        self._did("write_and_refresh", text, name)
        return WriteResult("orders", 8, (refresh_record(name),))

    def sql(self, text: str) -> SqlResult:
        answer = self._did("sql", text)
        if answer is None:
            raise RefreshFailed("the fake cannot do that")
        return answer

    def version(self) -> VersionInfo:
        return VersionInfo("0.1", 1, "4.2.0", "4.4.0", "1.6.6", "17", "1.5.5", "3.11")
