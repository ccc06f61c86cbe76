"""What opens over a page: a menu, a question, a text, the rows of a statement. Escape leaves each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import ModalScreen

from trickle_tui.paint import EMPTY, Line, Span, line, span
from trickle_tui.widgets.canvas import Canvas


@dataclass(frozen=True)
class Place:
    """Where a popup opens: below the cursor, or above it where there is no room below."""

    x: int
    y: int


class Popup(ModalScreen[str | None]):
    """Raised, with an accent bar at its left, at its place or in the middle."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, width: int, place: Place | None = None) -> None:
        super().__init__()
        self._width = width
        self._place = place

    def action_leave(self) -> None:
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """A click beside a popup leaves it."""
        if event.widget is self:
            self.dismiss(None)

    def put(self, height: int) -> int:
        """Place the box for that many lines; gives the width inside."""
        box = self.query_one("#popup", Container)
        wide = min(self._width, self.size.width - 4)
        # two rows on top and two at the bottom belong to the page: the error line is never covered
        high = min(height + 2, max(3, self.size.height - 5))
        box.styles.width, box.styles.height = wide, high
        if self._place is None:
            x, y = (self.size.width - wide) // 2, (self.size.height - high) // 2
        else:
            x = min(self._place.x, self.size.width - wide - 2)
            below = self._place.y + 1
            y = below if below + high <= self.size.height - 2 else self._place.y - high
        box.styles.offset = (max(1, x), max(2, y))
        return wide - 4


class Menu(Popup):
    """Choose one of the lines; those that cannot be chosen stay and say why."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("x", "leave", show=False),
    ]

    def __init__(
        self,
        title: Line,
        entries: Sequence[tuple[str, Line, bool]],
        width: int = 72,
        place: Place | None = None,
        keys: dict[str, str] | None = None,
    ) -> None:
        """Entries are (id, line, possible); `keys` choose one directly."""
        super().__init__(width, place)
        self._title = title
        self._entries = tuple(entries)
        self._keys = keys or {}
        self._at = next((index for index, (_, _, possible) in enumerate(entries) if possible), 0)

    def compose(self) -> ComposeResult:
        with Container(id="popup"):
            yield Canvas(id="popup-text", ground="raised", on_line=self._clicked)

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.put(len(self._entries) + 2)
        lines = [self._title, EMPTY]
        for index, (_, entry, _) in enumerate(self._entries):
            ground = "select" if index == self._at else "raised"
            lead = Span("▌" if index == self._at else " ", "accent")
            lines.append(_on(line(lead, entry), ground))
        self.query_one("#popup-text", Canvas).show(lines)

    def action_move(self, step: int) -> None:
        self._at = (self._at + step) % len(self._entries)
        self._draw()

    def action_choose(self) -> None:
        name, _, possible = self._entries[self._at]
        if possible:
            self.dismiss(name)

    def _clicked(self, x: int, y: int) -> None:
        if 0 <= y - 2 < len(self._entries):
            self._at = y - 2
            self._draw()
            self.action_choose()

    def on_key(self, event: events.Key) -> None:
        name = self._keys.get(event.key)
        if name is not None and any(each == name and possible for each, _, possible in self._entries):
            event.stop()
            self.dismiss(name)


class Question(Popup):
    """Says what will happen; Cancel is focused first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,right,tab,shift+tab,h,l", "switch", show=False),
        Binding("enter", "choose", show=False),
    ]

    def __init__(self, text: Sequence[Line], yes: str, place: Place | None = None) -> None:
        super().__init__(66, place)
        self._text = tuple(text)
        self._yes = yes
        self._agreed = False

    def compose(self) -> ComposeResult:
        with Container(id="popup", classes="-dangerous"):
            yield Canvas(id="popup-text", ground="raised", on_line=self._clicked)

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.put(len(self._text) + 2)
        self.query_one("#popup-text", Canvas).show([*self._text, EMPTY, self._buttons()])

    def _buttons(self) -> Line:
        def button(label: str, chosen: bool) -> Line:
            if chosen:
                return line(Span("▌", "accent on select"), Span(f"{label} ", "text bold on select"))
            return span(f" {label} ", "dim")

        return line(button("Cancel", not self._agreed), "   ", button(self._yes, self._agreed))

    def action_switch(self) -> None:
        self._agreed = not self._agreed
        self._draw()

    def action_choose(self) -> None:
        self.dismiss("yes" if self._agreed else None)

    def _clicked(self, x: int, y: int) -> None:
        if y == len(self._text) + 1:
            self.dismiss("yes" if x >= len(" Cancel    ") else None)


class Reading(Popup):
    """Lines to read and scroll: help, notices, the rows of a statement."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark", "leave", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(20)", show=False),
        Binding("pageup", "scroll(-20)", show=False),
        Binding("right,l", "sideways(8)", show=False),
        Binding("left,h", "sideways(-8)", show=False),
    ]

    def __init__(self, lines: Sequence[Line], width: int = 100) -> None:
        super().__init__(width)
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        with Container(id="popup"), VerticalScroll(id="popup-scroll"):
            yield Canvas(id="popup-long", ground="raised")

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        inside = self.put(len(self._lines))
        canvas = self.query_one("#popup-long", Canvas)
        canvas.styles.width = max(inside, max((sum(len(text) for text, _ in each) for each in self._lines), default=0))
        canvas.show(self._lines)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#popup-scroll").scroll_relative(y=rows, animate=False)

    def action_sideways(self, cells: int) -> None:
        self.query_one("#popup-scroll").scroll_relative(x=cells, animate=False)


def _on(painted: Line, ground: str) -> Line:
    return tuple(Span(text, role if " on " in role else f"{role} on {ground}") for text, role in painted)
