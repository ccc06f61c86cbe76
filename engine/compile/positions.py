"""Where in the text of a query something stands, for errors that point."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.tokenizer_core import Token, TokenType

from engine.algebra.dialect import Spark4
from engine.errors import Position

#: longer ones are cut
_FRAGMENT_MAX = 200
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


def position(node: exp.Expr, text: str) -> Position | None:
    """Where in the text the node begins: the first of its parts that knows."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return position_at(text, min(starts)) if starts else None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: keywords that stand before the first part of a clause that knows its place, by the clause they belong to
_LEADING: tuple[tuple[type[exp.Expr], frozenset[str]], ...] = (
    (exp.Join, _words("NATURAL INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI JOIN LATERAL (")),
    (exp.SetOperation, _words("UNION EXCEPT MINUS INTERSECT ALL DISTINCT SELECT WITH (")),
    (exp.Query, _words("NOT EXISTS SELECT DISTINCT WITH (")),
    (exp.Exists, _words("NOT EXISTS SELECT DISTINCT WITH (")),
    (exp.Lateral, _words("LATERAL VIEW OUTER SELECT (")),
    (exp.Limit, _words("LIMIT")),
    (exp.Offset, _words("OFFSET")),
    (exp.Qualify, _words("QUALIFY")),
    (exp.Sort, _words("SORT BY")),
    (exp.Cluster, _words("CLUSTER BY")),
    (exp.Rollup, _words("ROLLUP (")),
    (exp.Cube, _words("CUBE (")),
    (exp.GroupingSets, _words("GROUPING SETS (")),
    (exp.Values, _words("VALUES (")),
    (exp.With, _words("WITH RECURSIVE")),
)


def clause_position(node: exp.Expr, text: str, dialect: DialectType = Spark4) -> Position | None:
    """Where a clause begins, with its keywords, of which sqlglot does not keep the place."""
    start = _clause_start(node, text, dialect)
    return None if start is None else position_at(text, start)


def _clause_start(node: exp.Expr, text: str, dialect: DialectType) -> int | None:
    leading = next((words for kind, words in _LEADING if isinstance(node, kind)), frozenset[str]())
    # Of two queries the place between them tells most.
    first = node.expression if isinstance(node, exp.SetOperation) else node
    starts = [part.meta["start"] for part in first.walk() if "start" in part.meta]
    if not starts:
        return None
    start: int = min(starts)
    before = [each for each in _tokens(text, dialect) if each.start < start]
    if isinstance(node, exp.Func | exp.WithinGroup):
        # not all parsers remember where the name of a function stands
        name = before[:-1] if before and before[-1].text.upper() == "DISTINCT" else before
        if len(name) > 1 and _is_call(*name[-2:]):
            return int(name[-2].start)
    for token in reversed(before):
        if not set(token.text.upper().split()) <= leading:
            break
        start = token.start
    return start


@lru_cache(maxsize=8)
def _tokens(text: str, dialect: DialectType) -> tuple[Token, ...]:
    """Remembered: each part of a query is looked for in the same text."""
    return tuple(sqlglot.tokenize(text, dialect=dialect))


def _is_call(name: Token, bracket: Token) -> bool:
    return bracket.token_type is TokenType.L_PAREN and name.end + 1 == bracket.start and name.text.isidentifier()


def fragment(node: exp.Expr, text: str, dialect: DialectType = Spark4) -> str | None:
    """What the user wrote there, on one line: from the first to the last part that knows its place."""
    start = _clause_start(node, text, dialect)
    ends = [part.meta["end"] + 1 for part in node.walk() if "end" in part.meta]
    if start is None or not ends:
        return None
    end = max(ends)
    # of a call only the name knows its place, and of brackets around it nobody does: what is open is closed
    tokens = [each for each in _tokens(text, dialect) if each.end >= start]
    opened = least = 0
    for at, token in enumerate(tokens):
        opens = token.token_type in _OPENING
        if token.start >= end and opened <= least and not (opens and tokens[at - 1].end + 1 == token.start == end):
            break
        opened += opens - (token.token_type in _CLOSING)
        if opened < least and token.start >= end:
            break
        least, end = min(least, opened), max(end, token.end + 1)
    for token in reversed([each for each in _tokens(text, dialect) if each.start < start]):
        if least == 0 or token.token_type not in _OPENING:
            break
        least, start = least + 1, token.start
    words = " ".join(text[start:end].split())
    return words if len(words) <= _FRAGMENT_MAX else words[: _FRAGMENT_MAX - 1] + "…"


def output_position(query: exp.Query, index: int, count: int, text: str) -> Position | None:
    """Where one of `count` outputs is written; where a star stands for several, the place of the last one."""
    outputs = query.selects
    stars = [each for each in outputs if each.is_star]
    written = outputs[index] if len(outputs) == count else stars[-1] if stars else None
    return position(written, text) if written is not None else None


def placed_as(node: exp.Expr, written: exp.Expr) -> exp.Expr:
    """The node, which stands for what was written, with its place."""
    starts = [part.meta["start"] for part in written.walk() if "start" in part.meta]
    ends = [part.meta["end"] for part in written.walk() if "end" in part.meta]
    if starts and ends:
        node.meta.update(start=min(starts), end=max(ends))
    return node


def offset_of(place: Position, text: str) -> int:
    """The opposite of `position_at`."""
    return sum(map(len, text.splitlines(keepends=True)[: place.line - 1])) + place.column - 1


def position_at(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
