"""A list of any length with a cursor that stays on its row, wherever that row moves.

Only visible rows are ever painted, and of these only the ones that changed; so a thousand rows cost no more
than a screenful.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from trickle_tui.paint import EMPTY, Line
from trickle_tui.widgets.canvas import to_strip

if TYPE_CHECKING:
    from trickle_tui.app import DashboardApp

#: paints the row of a key; told whether the cursor is on it
PaintRow = Callable[[str, bool], Line]


class Grid(ScrollView, can_focus=True):
    """A head that stays and rows that scroll below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False, priority=True),
        Binding("down,j", "move(1)", show=False, priority=True),
        Binding("pageup,ctrl+b", "page(-1)", show=False, priority=True),
        Binding("pagedown,ctrl+f", "page(1)", show=False, priority=True),
        Binding("home,g", "edge(0)", show=False, priority=True),
        Binding("end,G", "edge(1)", show=False, priority=True),
    ]

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, grid: Grid, key: str | None) -> None:
            super().__init__()
            self.grid = grid
            self.key = key

        @property
        def control(self) -> Grid:
            return self.grid

    class Opened(Message):
        """A row was asked for by double click."""

        def __init__(self, grid: Grid, key: str) -> None:
            super().__init__()
            self.grid = grid
            self.key = key

        @property
        def control(self) -> Grid:
            return self.grid

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._head: Line = EMPTY
        self._keys: tuple[str, ...] = ()
        self._paint: PaintRow = lambda key, selected: EMPTY
        self._cursor: str | None = None
        self._painted: list[tuple[Line, bool]] = []

    @property
    def dashboard(self) -> DashboardApp:
        return cast("DashboardApp", self.app)

    @property
    def cursor(self) -> str | None:
        """The key of the selected row."""
        return self._cursor

    @property
    def cursor_line(self) -> int:
        """Where the selected row stands in the widget."""
        return self._index() + 1 - self.scroll_offset.y

    @property
    def room(self) -> int:
        """Cells for one row."""
        return self.scrollable_content_region.width

    def show(self, head: Line, keys: Sequence[str], paint: PaintRow) -> None:
        """New content. The cursor stays on its key; if that is gone, on the row that took its place."""
        index = self._index()
        fresh = tuple(keys)
        if fresh != self._keys:
            longer = len(fresh) != len(self._keys)
            self._keys = fresh
            if longer:
                self._measure()
            if self._cursor not in fresh:
                self._set_cursor(fresh[min(index, len(fresh) - 1)] if fresh else None)
            elif self._index() != index:
                # it moved away under the cursor: follow
                self._scroll_to_cursor()
        self._head, self._paint = head, paint
        self.repaint_changed()

    def select(self, key: str) -> None:
        if key in self._keys:
            self._set_cursor(key)
            self.repaint_changed()

    def repaint_changed(self) -> None:
        """Paint what is visible and send to the terminal the lines that differ from what stands there."""
        fresh = self._visible()
        if len(fresh) != len(self._painted):
            self._painted = fresh
            self.refresh()
            return
        changed = [y for y, painted in enumerate(fresh) if painted != self._painted[y]]
        self._painted = fresh
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _visible(self) -> list[tuple[Line, bool]]:
        height = self.size.height
        if height <= 0:
            return []
        first = self.scroll_offset.y
        rows: list[tuple[Line, bool]] = [(self._head, False)]
        for key in self._keys[first : first + height - 1]:
            selected = key == self._cursor
            rows.append((self._paint(key, selected), selected))
        rows += [(EMPTY, False)] * (height - len(rows))
        return rows

    def render_line(self, y: int) -> Strip:
        painted, selected = self._painted[y] if y < len(self._painted) else (EMPTY, False)
        return to_strip(self.dashboard, painted, self.size.width, "select" if selected else "bg")

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self._painted = self._visible()
        self.refresh()

    def on_resize(self) -> None:
        self._measure()
        self._painted = self._visible()
        self._scroll_to_cursor()
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._keys) + 1)

    def _index(self) -> int:
        return self._keys.index(self._cursor) if self._cursor in self._keys else 0

    def _set_cursor(self, key: str | None) -> None:
        if key != self._cursor:
            self._cursor = key
            self.post_message(self.Moved(self, key))
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        height, index, first = self.size.height, self._index(), self.scroll_offset.y
        if height <= 1:
            return
        if index < first:
            self.scroll_to(y=index, animate=False, immediate=True)
        elif index > first + height - 2:
            self.scroll_to(y=index - height + 2, animate=False, immediate=True)

    def _move_to(self, index: int) -> None:
        if self._keys:
            self._set_cursor(self._keys[min(len(self._keys) - 1, max(0, index))])
            self.repaint_changed()

    def action_move(self, step: int) -> None:
        self._move_to(self._index() + step)

    def action_page(self, step: int) -> None:
        self._move_to(self._index() + step * max(1, self.size.height - 2))

    def action_edge(self, end: int) -> None:
        self._move_to((len(self._keys) - 1) * end)

    def on_click(self, event: events.Click) -> None:
        index = event.y - 1 + self.scroll_offset.y
        if event.y >= 1 and 0 <= index < len(self._keys):
            self._move_to(index)
            if event.chain == 2:
                self.post_message(self.Opened(self, self._keys[index]))
