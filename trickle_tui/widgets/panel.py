"""A round border with a title at its left and a count or hint at its lower right."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.containers import Container
from textual.widget import Widget

from trickle_tui import state

if TYPE_CHECKING:
    from trickle_tui.app import DashboardApp


class Panel(Container):
    """The focused one is lifted by the stylesheet; its texts follow the choice of signs."""

    def __init__(self, *children: Widget, id: str, title: str = "") -> None:
        super().__init__(*children, id=id, classes="panel")
        self._titles = (title, "")

    def on_mount(self) -> None:
        self.entitle(*self._titles)

    def entitle(self, title: str | None = None, subtitle: str | None = None) -> None:
        """What is None stays as it is."""
        plain = cast("DashboardApp", self.app).ascii_only
        if title is not None:
            self.border_title = state.to_ascii(title) if plain else title
        if subtitle is not None:
            self.border_subtitle = state.to_ascii(subtitle) if plain else subtitle

    def set_height(self, rows: int) -> None:
        """Only a change costs a layout."""
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def set_width(self, cells: int) -> None:
        if self.styles.width is None or self.styles.width.value != cells:
            self.styles.width = cells
