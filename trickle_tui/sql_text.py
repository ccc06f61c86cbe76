"""SQL as painted lines: keywords, literals, comments, functions. A scanner for the eye, not a parser."""

from __future__ import annotations

import re

from trickle_tui.paint import EMPTY, Line, Span, cut, line, right, span, width

_WORDS = """
    all alter and anti any array as asc between bigint boolean by case cast changes create cross cube current
    database date decimal delete desc describe distinct double drop else end escape except exists explain
    false filter first float following for from full group grouping having if ilike in inner insert int
    integer intersect interval into is join last lateral left like limit map matched merge minus natural not
    null nulls of offset on or order outer over partition pause pivot preceding qualify range recursive
    refresh replace resume right rollup row rows schedule select semi set sets show source sources stream
    string struct table tables then timestamp to true unbounded union unnest update using values verify
    version view when where window with within
"""
_KEYWORDS = frozenset(_WORDS.split())
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.|'')*')
      | (?P<quoted>`[^`]*`|"[^"]*")
      | (?P<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)
      | (?P<word>[^\W\d]\w*)
      | (?P<space>\s+)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


def highlight(sql: str) -> tuple[Line, ...]:
    """One painted line for each line of the text."""
    lines: list[list[Span]] = [[]]
    for token in _TOKEN.finditer(sql.expandtabs(4)):
        role = _role(token, sql)
        first, *rest = token.group().split("\n")
        lines[-1].append(Span(first, role))
        for piece in rest:
            lines.append([Span(piece, role)])
    return tuple(line(*spans) for spans in lines)


def _role(token: re.Match[str], sql: str) -> str:
    match token.lastgroup:
        case "comment":
            return "dim italic"
        case "string" | "number":
            return "string"
        case "word":
            word = token.group().lower()
            if word in _KEYWORDS:
                return "accent"
            return "text bold" if sql[token.end() : token.end() + 1] == "(" else "text"
        case "sign":
            return "dim"
        case _:
            return "text"


def numbered(sql: str, room: int) -> tuple[Line, ...]:
    """With line numbers; lines that are too long go on below, between two words where there are some."""
    painted = highlight(sql.strip("\n"))
    label = max(4, len(str(len(painted))) + 1)
    lines: list[Line] = []
    for number, text in enumerate(painted, 1):
        for index, piece in enumerate(_folded(text, room - label - 2)):
            head = right(span(str(number), "faint"), label) if index == 0 else span(" " * label)
            lines.append(line(head, "  ", piece))
    return tuple(lines)


def _folded(text: Line, room: int) -> tuple[Line, ...]:
    """Break before the span that no longer fits; what follows is indented a little deeper."""
    if width(text) <= room or room < 20:
        return (cut(text, room),)
    indent = len(text[0].text) if text and text[0].text.isspace() else 0
    indent = min(indent + 4, room // 2)
    pieces: list[Line] = []
    current: Line = EMPTY
    for each in text:
        if width(current) + len(each.text) > room and current:
            pieces.append(current)
            current = span(" " * indent) if not each.text.isspace() else span(" " * (indent - 1))
        current = (*current, each)
    pieces.append(current)
    return tuple(cut(piece, room) for piece in pieces)
