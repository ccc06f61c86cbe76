"""What stands on the screen, cell by cell: as text for tests, as styled cells for pictures."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.app import App
from textual.strip import Strip


class Cell(NamedTuple):
    """One cell; a wide character is followed by an empty one."""

    text: str
    style: Style | None


def to_text(app: App[Any]) -> str:
    """The screen as plain lines, without blanks at their ends."""
    return "\n".join(line.rstrip() for line in ("".join(s.text for s in strip) for strip in _strips(app))) + "\n"


def _strips(app: App[Any]) -> list[Strip]:
    return app.screen._compositor.render_strips()


def cells(app: App[Any]) -> list[list[Cell]]:
    """The screen as rows of cells."""
    return [[cell for segment in strip for cell in _of_segment(segment.text, segment.style)] for strip in _strips(app)]


def _of_segment(text: str, style: Style | None) -> list[Cell]:
    found: list[Cell] = []
    for letter in text:
        found.append(Cell(letter, style))
        found.extend([Cell("", style)] * (cell_len(letter) - 1))
    return found
