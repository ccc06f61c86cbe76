"""The first page: all stream tables, what needs attention, what happened, and the selected one at the side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.records import StreamTableStatus
from trickle_tui import actions, filtering
from trickle_tui.attention import attention
from trickle_tui.paint import EMPTY, Line, Span, line, span
from trickle_tui.screens.page import Page, bindings_of
from trickle_tui.views import events, side, tables
from trickle_tui.widgets.canvas import Canvas
from trickle_tui.widgets.grid import Grid
from trickle_tui.widgets.panel import Panel
from trickle_tui.widgets.popups import Place

#: from this width on there is a side panel
_SIDE_FROM = 140
#: a panel's border and the head of the list
_LIST_FRAME = 3
_PANEL_FRAME = 2
_EMPTY_ROWS = 8
_LEAST_LIST = 6
_LEAST_EVENTS = 5


@dataclass(frozen=True)
class Heights:
    """Rows of each panel; zero is hidden."""

    table_list: int
    attention: int
    events: int
    event_line: int


def heights(body: int, rows: int, needs: int, events_wanted: bool | None) -> Heights:
    """Who gets how many rows. `events_wanted` is what the user said, None if nothing."""
    if body < 24:
        if not events_wanted:
            return Heights(body - 1, 0, 0, 1)
        shown = max(_LEAST_EVENTS, body // 2)
        return Heights(body - shown, 0, shown, 0)
    # without rows the list says what to do, which takes more than one
    wanted_list = (rows or _EMPTY_ROWS) + _LIST_FRAME
    wanted_attention = min(needs, 7) + _PANEL_FRAME
    least_events = 0 if events_wanted is False else min(8, max(4, body // 4 - 4))
    attention_rows = min(wanted_attention, max(3, body // 4))
    free = body - attention_rows - least_events
    list_rows = min(wanted_list, max(_LEAST_LIST, free))
    if events_wanted is False:
        return Heights(body - attention_rows, attention_rows, 0, 0)
    return Heights(list_rows, attention_rows, body - list_rows - attention_rows, 0)


class OverviewPage(Page):
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(actions.OVERVIEW)
    AUTO_FOCUS = "#table-grid"
    page_name = actions.OVERVIEW

    def __init__(self) -> None:
        super().__init__()
        self.filter = filtering.parse("")
        self.order_at = 0
        self.reversed = False
        self.marks: frozenset[str] = frozenset()
        self.events_wanted: bool | None = None
        self._shown: dict[str, StreamTableStatus] = {}

    def middle(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield Panel(Grid(id="table-grid"), Canvas(id="empty"), id="list", title="stream tables")
                yield Panel(Canvas(id="attention-text"), id="attention")
                yield Panel(Canvas(id="events-text"), id="events", title="events")
                yield Canvas(id="event-line")
            yield Panel(Canvas(id="side-text"), id="side")

    @property
    def grid(self) -> Grid:
        return self.query_one(Grid)

    @property
    def order(self) -> filtering.Order:
        return filtering.ORDERS[self.order_at]

    def main_widget(self) -> Widget:
        return self.grid

    def selected(self) -> StreamTableStatus | None:
        cursor = self.grid.cursor if self.is_mounted else None
        return self._shown.get(cursor) if cursor else None

    def marked_count(self) -> int:
        return len(self.marks)

    def targets(self) -> tuple[str, ...]:
        return tuple(sorted(self.marks)) or super().targets()

    def popup_place(self) -> Place | None:
        region = self.grid.region
        return Place(region.x + 2, region.y + self.grid.cursor_line)

    # Drawing

    def draw(self) -> None:
        overview = self.dashboard.snapshot.overview
        self._lay_out()
        arranged = filtering.arrange(overview.tables, self.filter, self.order, self.reversed)
        self._shown = {table.name: table for table in arranged}
        # marks survive a filter, not the end of the table
        self.marks &= {table.name for table in overview.tables}
        self._draw_list()
        self._draw_attention()
        self._draw_events()
        self._draw_side()

    def draw_turn(self) -> None:
        super().draw_turn()
        self._draw_list()

    def _moment(self) -> tables.Moment:
        app = self.dashboard
        return tables.Moment(app.snapshot.overview.at, app.now(), app.turn)

    def _lay_out(self) -> None:
        """Give each panel its rows; nothing is touched that stays as it is."""
        overview = self.dashboard.snapshot.overview
        said = 1 if self.dashboard.said is not None else 0
        needed = attention(overview, self.dashboard.now())
        rows = len(needed.needs) + (2 if needed.hints and needed.needs else 1 if needed.hints else 0)
        shape = heights(self.area.height - 3 - said, len(overview.tables), max(1, rows), self.events_wanted)
        for name, height in (("list", shape.table_list), ("attention", shape.attention), ("events", shape.events)):
            box = self.query_one(f"#{name}", Panel)
            box.display = height > 0
            if height:
                box.set_height(height)
        self.query_one("#event-line").display = shape.event_line > 0
        side_box, side_width = self.query_one("#side", Panel), self._side_width()
        side_box.display = side_width > 0
        if side_width:
            side_box.set_width(side_width)

    def _side_width(self) -> int:
        """A quarter of what is beyond the width from which there is a side panel, up to a readable line."""
        if self.area.width < _SIDE_FROM or not self.dashboard.snapshot.overview.tables:
            return 0
        return min(60, 36 + (self.area.width - _SIDE_FROM) // 4)

    def _list_room(self) -> int:
        beside = self._side_width()
        frame = 4
        scrollbar = 1 if self.grid.show_vertical_scrollbar else 0
        return self.area.width - beside - frame - scrollbar

    def _draw_list(self) -> None:
        overview = self.dashboard.snapshot.overview
        arranged = tuple(self._shown.values())
        room = self._list_room()
        shape = tables.layout(overview.tables, room)
        moment = self._moment()

        def paint(key: str, selected: bool) -> Line:
            return tables.row(shape, self._shown[key], moment, selected, key in self.marks)

        box = self.query_one("#list", Panel)
        has_rows = bool(arranged)
        self.grid.display = has_rows
        empty = self.canvas("empty")
        empty.display = not has_rows
        self.grid.show(tables.head(shape), tuple(self._shown), paint)
        if not has_rows:
            empty.show(self._nothing())
        count = filtering.title(len(arranged), len(overview.tables), self.order, self.reversed, len(self.marks))
        box.entitle(f"stream tables · {self.filter.text}" if self.filter.text else "stream tables", count)

    def _nothing(self) -> tuple[Line, ...]:
        """What to do where there is nothing to see."""
        if self.dashboard.snapshot.overview.tables:
            return (
                EMPTY,
                span(" no stream table passes the filter", "text"),
                line(" ", Span("esc", "accent bold"), Span(" shows all again", "dim")),
            )
        if self.dashboard.read_only:
            return (EMPTY, span(" no stream tables in this workspace yet", "text"))
        example = "create stream table revenue as select region, sum(amount) as amount from orders group by region"
        return (
            EMPTY,
            span(" no stream tables yet", "text bold"),
            EMPTY,
            line(" first a source   ", Span("trickle source add orders --path /path/to/delta/table", "accent")),
            line(" then one on it   ", Span(f":sql {example}", "accent")),
            EMPTY,
            line(Span(" or see it all at work with ", "dim"), Span("trickle demo", "accent")),
        )

    def _draw_attention(self) -> None:
        needed = attention(self.dashboard.snapshot.overview, self.dashboard.now())
        box = self.query_one("#attention", Panel)
        count = len(needed.needs)
        box.entitle(f"needs attention · {count}" if count else "needs attention")
        room = self._list_room_below()
        height = max(1, _rows_inside(box))

        def key_of(action: str) -> str:
            return actions.BY_ID[action].shown_key

        self.canvas("attention-text").show(events.attention_lines(needed, room, height, key_of))

    def _list_room_below(self) -> int:
        return self.area.width - self._side_width() - 4

    def _draw_events(self) -> None:
        overview = self.dashboard.snapshot.overview
        box = self.query_one("#events", Panel)
        box.entitle(subtitle="E hide")
        room = self._list_room_below()
        lines = events.event_lines(overview.events, room, max(1, _rows_inside(box)))
        self.canvas("events-text").show(lines or (span("nothing happened yet", "dim"),))
        self.canvas("event-line").show([events.last_event(overview.events, self.area.width - 2)])

    def _draw_side(self) -> None:
        box = self.query_one("#side", Panel)
        table = self.selected()
        if not box.display:
            return
        if table is None:
            box.entitle("")
            self.canvas("side-text").show(())
            return
        box.entitle(table.name)
        focus = self.dashboard.snapshot.focus_on(table.name)
        height = self.area.height - 5 - (1 if self.dashboard.said is not None else 0)
        self.canvas("side-text").show(side.panel(table, focus, self._moment(), self._side_width() - 4, height))

    # Events

    def on_grid_moved(self, event: Grid.Moved) -> None:
        self.dashboard.watch_table(event.key)
        self.draw_frame()
        self._draw_side()

    def on_grid_opened(self, event: Grid.Opened) -> None:
        self.dashboard.act("open")

    def set_filter(self, text: str) -> None:
        self.filter = filtering.parse(text)
        self.draw_all()

    # Actions of this page; `DashboardApp.act` calls them by their name in the registry

    def do_filter(self, argument: str) -> None:
        if argument:
            self.set_filter(argument)
            return
        self.prompt.ask("filter", "/", self.filter.text, lambda text: (), lambda text: filtering.parse(text).problems)

    def do_mark(self, argument: str) -> None:
        cursor = self.grid.cursor
        if cursor is not None:
            self.marks ^= {cursor}
            self.grid.action_move(1)
            self.draw_all()

    def do_sort(self, argument: str) -> None:
        self.order_at = (self.order_at + 1) % len(filtering.ORDERS)
        self.reversed = False
        self.draw_all()

    def do_reverse(self, argument: str) -> None:
        self.reversed = not self.reversed
        self.draw_all()

    def do_events(self, argument: str) -> None:
        shown = self.events_wanted if self.events_wanted is not None else self.area.height - 3 >= 24
        self.events_wanted = not shown
        self.draw_all()

    def do_back(self, argument: str) -> None:
        if self.marks:
            self.marks = frozenset()
        elif self.filter.text:
            self.filter = filtering.parse("")
        self.draw_all()


def _rows_inside(box: Panel) -> int:
    height = box.styles.height
    return int(height.value) - _PANEL_FRAME if height is not None else 0
