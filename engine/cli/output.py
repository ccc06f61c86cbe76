"""What the command line prints: tables, JSON, notices and errors."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from engine.errors import Position, TrickleError
from engine.records import Notice
from engine.results import Preview, SqlResult

_COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "dim": "2",
    "bold": "1",
}

Cell = str | tuple[str, str]


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False


class Output:
    """`as_json` turns every answer into JSON; notices, questions and errors always go to stderr."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err

    # --- answers -------------------------------------------------------------------------------------------

    def json(self, value: Any) -> None:
        self.line(json.dumps(json_value(value), ensure_ascii=False, indent=2))

    def line(self, text: str = "") -> None:
        print(text, file=self.out, flush=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
        """Aligned columns; a cell is text, or text with the colour it gets on a terminal."""
        cells = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
        widths = [
            max([display_width(column.title), *(display_width(row[at][0]) for row in cells)])
            for at, column in enumerate(columns)
        ]
        room = self._width() - sum(widths[:-1]) - 2 * (len(columns) - 1)
        titles = [
            self.painted(_aligned(each.title, width, each.right), "dim")
            for each, width in zip(columns, widths, strict=True)
        ]
        self.line("  ".join(titles).rstrip())
        for row in cells:
            shown = []
            for at, (column, (text, colour)) in enumerate(zip(columns, row, strict=True)):
                clean = printable(text)
                if at == len(columns) - 1:
                    clean = clipped(clean, room) if not column.right else _aligned(clean, widths[at], True)
                else:
                    clean = _aligned(clean, widths[at], column.right)
                shown.append(self.painted(clean, colour))
            self.line("  ".join(shown).rstrip())

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Name and value, one pair a line."""
        known = [(name, value) for name, value in pairs if value]
        width = max((display_width(name) for name, _ in known), default=0)
        for name, value in known:
            self.line(f"{self.painted(_aligned(name, width, False), 'dim')}  {value}")

    # --- beside the answers --------------------------------------------------------------------------------

    def notice(self, notice: Notice) -> None:
        print(f"NOTICE: {notice.text}", file=self.err)
        if notice.hint:
            print(f"hint: {notice.hint}", file=self.err)

    def error(self, error: TrickleError, text: str | None = None) -> None:
        """The error, with its place in `text` marked if it has one."""
        lines = [f"{self._painted_on_err('error:', 'red')} {error}"]
        if text is not None and error.position is not None:
            lines += _marked(text, error.position)
        if error.detail:
            lines.append(f"detail: {error.detail}")
        if error.hint:
            lines.append(f"hint: {error.hint}")
        print("\n".join(lines), file=self.err, flush=True)

    def progress(self, text: str) -> None:
        """A line that the next one replaces; only on a terminal. Empty text clears it."""
        if self.err.isatty():
            self.err.write(f"\r\x1b[K{text}")
            self.err.flush()

    def confirmed(self, question: str, *, yes: bool) -> bool:
        """Asks when there is somebody to ask; a script is taken at its word."""
        if yes or not (sys.stdin.isatty() and self.err.isatty()):
            return True
        return self.asked(question)

    def asked(self, question: str) -> bool:
        self.err.write(f"{question} [y/N] ")
        self.err.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def can_ask(self) -> bool:
        return sys.stdin.isatty() and self.err.isatty()

    # --- colour --------------------------------------------------------------------------------------------

    def painted(self, text: str, colour: str) -> str:
        return _paint(text, colour) if colour and _has_colour(self.out) else text

    def _painted_on_err(self, text: str, colour: str) -> str:
        return _paint(text, colour) if _has_colour(self.err) else text

    def _width(self) -> int:
        return shutil.get_terminal_size().columns if self.out.isatty() else 1 << 30


def json_value(value: Any) -> Any:
    """Records, and the rows of a result, as JSON can hold them."""
    from engine.codec import to_plain

    match value:
        case SqlResult():
            return {
                "kind": value.kind,
                "rows": None if value.rows is None else _json_rows(value.rows),
                "value": json_value(value.value),
                "notices": json_value(value.notices),
            }
        case Preview():
            return {
                "explanation": json_value(value.explanation),
                "rows": _json_rows(value.rows),
                "limit": value.limit,
            }
        case Mapping():
            return {str(key): json_value(each) for key, each in value.items()}
        case list() | tuple():
            return [json_value(each) for each in value]
        case _:
            return to_plain(value)


def _json_rows(table: Any) -> dict[str, Any]:
    """Rows as lists: two columns of a result may have one name."""
    columns = [[_json_cell(each) for each in column.to_pylist()] for column in table.columns]
    return {"columns": list(table.column_names), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _json_cell(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            # JSON has no NaN and no infinity.
            return value if value - value == 0 else str(value)
        case Mapping():
            return {str(key): _json_cell(each) for key, each in value.items()}
        case list() | tuple():
            return [_json_cell(each) for each in value]
        case bytes():
            return value.hex()
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)


def cell_text(value: Any) -> str:
    """One value of a result, as SQL people expect to see it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return "x'" + value.hex() + "'"
        case Mapping():
            return "{" + ", ".join(f"{key}: {cell_text(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(cell_text(each) for each in value) + "]"
        case _:
            return str(value)


def printable(text: str) -> str:
    """Data must not move the cursor: control characters are shown, not sent."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def display_width(text: str) -> int:
    return sum(_cells(each) for each in printable(text))


def clipped(text: str, room: int) -> str:
    if display_width(text) <= room or room < 8:
        return text
    kept = ""
    for each in text:
        if display_width(kept + each) > room - 1:
            break
        kept += each
    return kept + "…"


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _aligned(text: str, width: int, right: bool) -> str:
    gap = " " * max(0, width - display_width(text))
    return gap + text if right else text + gap


def _marked(text: str, position: Position) -> list[str]:
    lines = text.splitlines()
    if not 1 <= position.line <= len(lines):
        return []
    line = lines[position.line - 1]
    begin = max(0, position.column - 1 - 60)
    shown = printable(line[begin : begin + 100].replace("\t", " "))
    return [f"    {shown}", "    " + " " * (position.column - 1 - begin) + "^"]


def _has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
