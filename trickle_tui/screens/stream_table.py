"""The page of one stream table: Summary, Query, Plan, History."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget

from engine.records import RefreshRecord, StreamTableStatus
from engine.results import Explanation, StreamTableExplanation
from trickle_tui import actions, format, sql_text, state
from trickle_tui.paint import Line, Span, line, span, spread
from trickle_tui.screens.page import Page, bindings_of
from trickle_tui.snapshot import Explain, Focus
from trickle_tui.views import header, history, modes, plan, summary
from trickle_tui.views.tables import Moment
from trickle_tui.widgets.canvas import Canvas
from trickle_tui.widgets.grid import Grid
from trickle_tui.widgets.panel import Panel

TABS = ("Summary", "Query", "Plan", "History")
_FOCUS = {"Summary": "#summary-scroll", "Query": "#query-scroll", "Plan": "#plan-scroll", "History": "#history-grid"}
_SIDE = 44


class StreamTablePage(Page):
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(actions.TABLE)
    AUTO_FOCUS = None
    page_name = actions.TABLE

    def __init__(self, name: str, tab: str = "Summary") -> None:
        super().__init__()
        self.table_name = name
        self._tab = tab
        #: the refresh shown on the plan; None is the newest that did work
        self._chosen: int | None = None
        self._asked_to_explain = False

    def middle(self) -> ComposeResult:
        yield Canvas(id="tabs", on_line=self._tab_clicked)
        with Horizontal(id="tab-Summary", classes="tab"):
            yield Panel(_scroll("summary"), id="summary", title="summary")
            yield Panel(Canvas(id="plots-text"), id="plots", title="over time")
        with Horizontal(id="tab-Query", classes="tab"):
            yield Panel(_scroll("query"), id="query", title="query")
            yield Panel(_scroll("columns"), id="columns", title="columns")
        with Vertical(id="tab-Plan", classes="tab"):
            yield Panel(Canvas(id="refresh-text"), id="refresh", title="refresh")
            yield Panel(_scroll("plan"), id="plan", title="plan")
            yield Panel(_scroll("delta"), id="delta", title="delta SQL")
        with Horizontal(id="tab-History", classes="tab"):
            yield Panel(Grid(id="history-grid"), id="history", title="history")

    # What the page is about

    def selected(self) -> StreamTableStatus | None:
        return self.dashboard.snapshot.table(self.table_name)

    def focus_data(self) -> Focus | None:
        return self.dashboard.snapshot.focus_on(self.table_name)

    def explained(self) -> StreamTableExplanation | None:
        return self.dashboard.explanations.get(self.table_name)

    def explanation(self) -> Explanation | None:
        explained = self.explained()
        return explained.explanation if explained else None

    def active_tab(self) -> str:
        return self._tab

    def trail(self) -> Line:
        return header.trail("Overview", self.table_name)

    def main_widget(self) -> Widget:
        return self.query_one(_FOCUS[self._tab])

    def copy_text(self) -> str | None:
        focus = self.focus_data()
        match self._tab:
            case "Query":
                return focus.table.query if focus and focus.table else None
            case "Plan":
                record = self._record()
                return (record.sql if record else None) or None
            case _:
                return None

    def _records(self) -> tuple[RefreshRecord, ...]:
        focus = self.focus_data()
        return focus.history if focus else ()

    def _record(self) -> RefreshRecord | None:
        records = self._records()
        index = plan.chosen_index(records, self._chosen)
        return records[index] if index is not None else None

    # Drawing

    def on_mount(self) -> None:
        self._show_tab(self._tab)

    def draw(self) -> None:
        table = self.selected()
        self._draw_tabs(table)
        if table is None:
            # it was dropped while we looked at it
            self.canvas("summary-text").show([span(f"{self.table_name} is gone", "text bold")])
            return
        moment = Moment(self.dashboard.snapshot.overview.at, self.dashboard.now(), self.dashboard.turn)
        match self._tab:
            case "Summary":
                self._draw_summary(table, moment)
            case "Query":
                self._draw_query()
            case "Plan":
                self._draw_plan(moment)
            case "History":
                self._draw_history(moment)

    def draw_turn(self) -> None:
        super().draw_turn()
        self._draw_tabs(self.selected())

    def _draw_tabs(self, table: StreamTableStatus | None) -> None:
        room = self.area.width
        tabs = [span(f" {tab} ", "text bold on select" if tab == self._tab else "dim") for tab in TABS]
        sign = Span("  ")
        facts: Line = ()
        if table is not None:
            sign = Span(f"{state.glyph(table.state, self.dashboard.turn)} ", state.token(table.state))
            words = [modes.short_mode(table), f"every {format.interval(table.interval_s)}"]
            facts = span(" · ".join([*words, f"owner {table.owner}"] if table.owner else words), "dim")
        start = line(sign, Span(self.table_name, "text bold"), "   ", *tabs)
        self.canvas("tabs").show([line(" ", spread(start, facts, room - 2), " ")])

    def _draw_summary(self, table: StreamTableStatus, moment: Moment) -> None:
        wide = self.area.width >= 100
        beside = max(50, self.area.width // 2 - 10) if wide else 0
        plots = self.query_one("#plots", Panel)
        plots.display = wide
        if wide:
            plots.set_width(beside)
        room = self.area.width - beside - 5
        focus = self.focus_data()
        self.canvas("summary-text").show(summary.is_lines(table, focus, self.dashboard.snapshot, moment, room))
        if wide:
            height = self.query_one("#plots-text").size.height or self.area.height - 6
            self.canvas("plots-text").show(summary.plots_panel(table, focus, moment, beside - 4, height))

    def _draw_query(self) -> None:
        wide = self.area.width >= 100
        self.query_one("#columns").display = wide
        focus = self.focus_data()
        if focus is None or focus.table is None:
            self.canvas("query-text").show([span("reading its definition", "dim")])
            return
        room = self.area.width - (_SIDE if wide else 0) - 5
        self.canvas("query-text").show(sql_text.numbered(focus.table.query, room))
        self.canvas("columns-text").show(summary.column_lines(focus.table.columns, self.explanation(), _SIDE - 5))
        self.query_one("#query", Panel).entitle(subtitle="y copy")

    def _draw_plan(self, moment: Moment) -> None:
        room = self.area.width - 5
        records, record = self._records(), self._record()
        explained, explanation = self.explained(), self.explanation()
        refresh, box, delta = (self.query_one(f"#{name}", Panel) for name in ("refresh", "plan", "delta"))
        refresh.display = record is not None
        used = 0
        if record is None:
            box.entitle(subtitle="no refresh yet")
        else:
            lines = plan.refresh_lines(records, records.index(record), moment.now, room + 1)
            used = len(lines) + 2
            refresh.set_height(used)
            self.canvas("refresh-text").show(lines)
            refresh.entitle(subtitle=self._newer(records, record))
            box.entitle(subtitle=f"numbers of #{record.number}")
        plan_lines = self._plan_lines(record, explanation, room)
        sql = (record.sql if record else "") or (explained.delta_sql if explained else "")
        sql_lines = sql_text.numbered(sql, room) if sql else ()
        plan_rows, sql_rows = plan.shares(self._body_height() - used, len(plan_lines), len(sql_lines))
        box.set_height(plan_rows)
        self.canvas("plan-text").show(plan_lines)
        delta.display = sql_rows > 0
        if sql_rows:
            delta.set_height(sql_rows)
            self.canvas("delta-text").show(sql_lines)
        delta.entitle("delta SQL" if record and record.sql else "delta SQL, as planned", "y copy")

    def _body_height(self) -> int:
        """Below header, views and tabs; above message and keys."""
        return self.area.height - 4 - (1 if self.dashboard.said is not None else 0)

    def _plan_lines(self, record: RefreshRecord | None, explanation: Explanation | None, room: int) -> tuple[Line, ...]:
        lines: list[Line] = []
        if record is not None and record.operators:
            lines += [*plan.operator_lines(record, room), ()]
        elif explanation is not None:
            lines += [*plan.explanation_lines(explanation, room), ()]
        elif record is None:
            lines += [span("reading its plan", "dim")]
        if record is not None:
            lines += plan.why_lines(record, room)
        return tuple(lines)

    def _newer(self, records: tuple[RefreshRecord, ...], record: RefreshRecord) -> str:
        newer = len(records) - 1 - records.index(record)
        return f"{newer} newer →" if newer else "the newest"

    def _draw_history(self, moment: Moment) -> None:
        records = {str(record.number): record for record in reversed(self._records())}
        grid = self.query_one("#history-grid", Grid)
        room = self.area.width - 4
        grid.show(
            history.head(room),
            tuple(records),
            lambda key, selected: history.row(records[key], moment.now, room, selected),
        )
        self.query_one("#history", Panel).entitle(subtitle=history.title(self._records()))

    # Tabs

    def _show_tab(self, tab: str) -> None:
        self._tab = tab
        for each in TABS:
            self.query_one(f"#tab-{each}").display = each == tab
        self.main_widget().focus()
        if tab in ("Query", "Plan") and self.explanation() is None and not self._asked_to_explain:
            self._asked_to_explain = True
            self.dashboard.submit(Explain(self.table_name))
        self.draw_all()

    def _tab_clicked(self, x: int, y: int) -> None:
        start = 1 + 2 + len(self.table_name) + 3
        for tab in TABS:
            end = start + len(tab) + 2
            if start <= x < end:
                self._show_tab(tab)
            start = end

    def do_next_tab(self, argument: str) -> None:
        self._show_tab(TABS[(TABS.index(self._tab) + 1) % len(TABS)])

    def do_previous_tab(self, argument: str) -> None:
        self._show_tab(TABS[TABS.index(self._tab) - 1])

    # Refreshes

    def do_older_refresh(self, argument: str) -> None:
        self._step(-1)

    def do_newer_refresh(self, argument: str) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        records, record = self._records(), self._record()
        if record is not None:
            index = min(len(records) - 1, max(0, records.index(record) + by))
            self._chosen = records[index].number
            self.draw_all()

    def do_show_plan(self, argument: str) -> None:
        cursor = self.query_one("#history-grid", Grid).cursor
        if cursor is not None:
            self._chosen = int(cursor)
            self._show_tab("Plan")

    def on_grid_opened(self, event: Grid.Opened) -> None:
        self.do_show_plan("")


def _scroll(name: str) -> VerticalScroll:
    return VerticalScroll(Canvas(id=f"{name}-text", classes="long"), id=f"{name}-scroll")
