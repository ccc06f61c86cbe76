"""Looking into the compiler: what a query would become, how it gets there, and all about one stream table.

Nothing here changes anything. What comes out is printed by `engine.explain_text`, the only printer there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.algebra.display import show
from engine.algebra.nodes import Leaf, Node, Role
from engine.algebra.trees import columns_by_leaf
from engine.catalog.store import Catalog
from engine.compile.bind import Change, Statements, bind
from engine.compile.plan import MaintenancePlan
from engine.compile.render import by_name
from engine.errors import InvalidArgument, NotFound, QueryError
from engine.lake import queries, tables, views
from engine.lake.session import SparkHost
from engine.records import (
    CdcMode,
    Notice,
    Reason,
    ReasonCode,
    RefreshMode,
    SourceStatus,
    StreamTable,
    StreamTableStatus,
)
from engine.refresh import cost_book, immediate
from engine.refresh.define import mode_of, notice_without_feed, notices_of
from engine.refresh.foresee import error_of
from engine.refresh.plans import Plans, rendered
from engine.refresh.sources import Sources
from engine.results import (
    DeltaCase,
    DeltaExplanation,
    DeltaStatement,
    Explanation,
    Preview,
    Problem,
    Rewrite,
    SourceRead,
    Stage,
    StreamTableExplanation,
    Validation,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Explainer:
    catalog: Catalog
    host: SparkHost
    plans: Plans
    sources: Sources
    immediate_top_k_limit: int

    # ---------------------------------------------------------------- a query that is no stream table

    def validate(self, query: str, dialect: str | None = None) -> Validation:
        """What is wrong with the query is an answer, not an error."""
        try:
            return Validation(query, None, self.explained(self._plan(query, dialect), RefreshMode.AUTO))
        except (QueryError, NotFound, InvalidArgument) as error:
            return Validation(query, Problem.of(error), None)

    def _plan(self, query: str, dialect: str | None) -> MaintenancePlan:
        return self.plans.compile_written(self.plans.in_spark(query, dialect), full=False)

    def preview(self, query: str, refresh_mode: str, limit: int, dialect: str | None = None) -> Preview:
        mode = mode_of(refresh_mode)
        if limit < 0:
            raise InvalidArgument(f"a limit of {limit} rows", hint="0 rows show the columns alone")
        plan = self.plans.compile_written(self.plans.in_spark(query, dialect), full=mode is RefreshMode.FULL)
        explanation = self.explained(plan, mode)
        # refuses what a creation would refuse
        notices = (*explanation.notices, *notices_of(plan, mode), *self._feed_notices(plan, mode))
        if mode is RefreshMode.IMMEDIATE:
            immediate.refuse_unfit(plan, self.plans, self.catalog.stream_tables(), self.immediate_top_k_limit)
        return Preview(replace(explanation, notices=notices), self._rows(plan, limit), limit)

    def _rows(self, plan: MaintenancePlan, limit: int) -> pa.Table:
        session = self.host.session()
        self.plans.relations.show_latest(session, plan.sources)
        for name, text in plan.views:
            views.of_query(session, name, text)
        queries.tune(session, small=False)
        frame = queries.run(session, plan.canonical_query, "the preview").limit(limit)
        found = queries.collect(frame, "the preview")
        return found.rename_columns([column.name for column in plan.visible])

    def rewrite(self, query: str, *, every_step: bool, dialect: str | None = None) -> Rewrite:
        written = self.plans.in_spark(query, dialect)
        plan = self.plans.compile_written(written, full=False)
        steps = [Stage("text", query, True, 0.0)]
        if written.written is not None:
            name = f"translate from {written.written.dialect.value}"
            steps.append(Stage(name, written.text, written.text != query, 0.0))
        steps += [_made(stage) for stage in plan.stages]
        shown = tuple(step for step in steps if every_step or step.changed)
        return Rewrite(query, shown, len(steps) - len(shown), plan.full_reason)

    def delta(self, query: str, dialect: str | None = None) -> DeltaExplanation:
        plan = self._plan(query, dialect)
        return _delta("", plan, plan.full_reason or self._without_feed(plan))

    def delta_of(self, table: StreamTable) -> DeltaExplanation:
        plan = self.plans.plan_of(table)
        return _delta(table.name, plan, plan.full_reason or self._without_feed(plan))

    def explained(self, plan: MaintenancePlan, mode: RefreshMode) -> Explanation:
        kept, without_feed = plan.kept, self._without_feed(plan)
        full = kept is None or mode is RefreshMode.FULL or without_feed is not None
        return Explanation(
            query=plan.query,
            mode="full" if full else "differential",
            reason=plan.full_reason or (without_feed if mode is not RefreshMode.FULL else None),
            identity=f"{kept.rule.name} ({', '.join(kept.identity)})" if kept is not None else "recomputed as a whole",
            root=plan.tree,
            columns=plan.visible,
            hidden_columns=plan.hidden,
            sources=plan.sources,
            notices=plan.notices,
            planning_ms=plan.planning_ms,
            analysis_ms=plan.analysis_ms,
        )

    def _without_feed(self, plan: MaintenancePlan) -> Reason | None:
        """A source whose changes cannot be read makes every refresh a full one."""
        mute = next(iter(self._mute(plan)), None)
        return None if mute is None else Reason(ReasonCode.NO_CHANGE_FEED, f"{mute} does not record its changes")

    def _mute(self, plan: MaintenancePlan) -> list[str]:
        located = (self.plans.relations.located(name) for name in plan.sources)
        return [each.name for each in located if each.cdc_mode is CdcMode.CDF and not tables.cdf_enabled(each.path)]

    def _feed_notices(self, plan: MaintenancePlan, mode: RefreshMode) -> Iterator[Notice]:
        if mode is not RefreshMode.FULL and plan.full_reason is None:
            for located in map(self.plans.relations.located, plan.sources):
                if located.cdc_mode in (CdcMode.AUTO, CdcMode.CDF) and not tables.cdf_enabled(located.path):
                    yield notice_without_feed(located)

    # ---------------------------------------------------------------- a stream table

    def stream_table(self, table: StreamTable, status: StreamTableStatus) -> StreamTableExplanation:
        plan = self.plans.plan_of(table)
        explanation = self.explained(plan, table.refresh_mode)
        sql = ""
        if plan.kept is not None and explanation.mode == "differential":
            mixed = bind(plan.kept, dict.fromkeys(plan.sources, Change.MIXED))
            sql = ";\n\n".join(rendered(tree, by_name).text for _, tree in _trees(mixed))
        reads = tuple(self._read(name, plan, status) for name in plan.sources)
        error = error_of(cost_book.read(self.catalog, table, plan))
        return StreamTableExplanation(table, status, explanation, reads, sql, error)

    def _read(self, name: str, plan: MaintenancePlan, status: StreamTableStatus) -> SourceRead:
        at = (status.frontier or {}).get(name)
        columns = tuple(column.name for column in plan.used_columns.get(name, ()))
        frontier = None if at is None else at.version
        if self.plans.relations.located(name).is_stream_table:
            return SourceRead(name, "stream table", frontier, None, columns)
        found = self.sources.status(self.catalog.get_source(name))
        return SourceRead(name, _changes(found), frontier, found.head, columns, found.error)


def _delta(name: str, plan: MaintenancePlan, reason: Reason | None) -> DeltaExplanation:
    if plan.kept is None:
        return DeltaExplanation(name, reason, ())
    cases = tuple(_case(bind(plan.kept, changes), changes) for changes in _ways_to_change(plan.sources))
    return DeltaExplanation(name, reason, cases)


def _made(stage: Stage) -> Stage:
    """A step that makes something else of its input changes it by being there."""
    makes = stage.name in ("parse", "lower") or stage.name.startswith("keep ") or stage.name.endswith(": as derived")
    return replace(stage, changed=True) if makes else stage


def _changes(source: SourceStatus) -> str:
    """How the changes of a source are found."""
    match source.source.cdc_mode:
        case CdcMode.POLL:
            return "polled"
        case CdcMode.CDF if not source.cdf:
            return "none recorded: each change means recomputing everything"
        case CdcMode.AUTO | CdcMode.CDF if source.cdf:
            return "change data feed"
        case _:
            return "told by the files that commits add and remove"


def _ways_to_change(sources: tuple[str, ...]) -> Iterator[dict[str, Change]]:
    """Each source alone, all at once, and all by nothing but new rows."""
    if len(sources) > 1:
        yield from ({name: Change.MIXED} for name in sources)
    yield dict.fromkeys(sources, Change.MIXED)
    yield dict.fromkeys(sources, Change.APPEND)


def _case(statements: Statements, changes: dict[str, Change]) -> DeltaCase:
    changed = {name: change.value for name, change in changes.items()}
    if statements.is_empty:
        return DeltaCase(changed, ())
    return DeltaCase(changed, tuple(_statement(name, tree) for name, tree in _trees(statements)))


def _trees(statements: Statements) -> tuple[tuple[str, Node], ...]:
    named = (("shortcut", statements.shortcut), ("first", statements.first), ("change", statements.change))
    return tuple((name, tree) for name, tree in named if tree is not None)


def _statement(name: str, tree: Node) -> DeltaStatement:
    reads = tuple(_named(leaf) for leaf in columns_by_leaf(tree))
    return DeltaStatement(name, rendered(tree, by_name).text, show(tree), reads)


def _named(leaf: Leaf) -> str:
    match leaf.role:
        case Role.NEW:
            return f"{leaf.name} now"
        case Role.OLD:
            return f"{leaf.name} before"
        case Role.DELTA:
            return f"the change of {leaf.name}"
        case Role.STORED:
            return "what is stored"
        case _:
            return "the result of the first statement"
