"""A widget that shows painted lines and repaints only those that changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from trickle_tui import state
from trickle_tui.paint import EMPTY, Line

if TYPE_CHECKING:
    from trickle_tui.app import DashboardApp


def to_strip(app: DashboardApp, painted: Line, room: int, ground: str = "bg") -> Strip:
    """Styles come from the theme in use; in ASCII mode every sign is replaced by one of the same width."""
    style = app.palette.style
    plain = app.ascii_only
    segments = [Segment(state.to_ascii(text) if plain else text, style(role, ground)) for text, role in painted]
    return Strip(segments).adjust_cell_length(room, style("text", ground))


class Canvas(Widget):
    """`show` lines; what does not fit is not painted."""

    def __init__(
        self,
        *,
        id: str | None = None,
        classes: str | None = None,
        ground: str = "bg",
        on_line: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._ground = ground
        self._on_line = on_line

    @property
    def dashboard(self) -> DashboardApp:
        return cast("DashboardApp", self.app)

    def show(self, lines: Sequence[Line]) -> None:
        fresh = tuple(lines)
        before = self._lines
        if fresh == before:
            return
        self._lines = fresh
        if len(fresh) != len(before) and self.styles.auto_dimensions:
            self.refresh(layout=True)
            return
        changed = [
            y
            for y in range(max(len(fresh), len(before)))
            if (fresh[y] if y < len(fresh) else EMPTY) != (before[y] if y < len(before) else EMPTY)
        ]
        if changed and self.size.width:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed if y < self.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        painted = self._lines[y] if y < len(self._lines) else EMPTY
        return to_strip(self.dashboard, painted, self.size.width, self._ground)

    def on_click(self, event: events.Click) -> None:
        if self._on_line is not None:
            self._on_line(event.x, event.y)
