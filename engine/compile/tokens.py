"""The words of an SQL text and where each stands; sqlglot's Spark tokenizer does the reading."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import Position, QueryParseError

if TYPE_CHECKING:
    from sqlglot.tokens import Tokenizer


BEGINNING = Position(1, 1)


@dataclass(frozen=True)
class Token:
    #: 'word', 'quoted' (a name in backticks), 'string', 'number', 'symbol' or 'end'
    kind: str
    #: without quotes and escapes
    value: str
    #: offsets in the text, `end` excluded
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.value.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind == "symbol" and self.value == symbol


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of `text`, without comments."""
    from sqlglot.errors import TokenError

    try:
        raw = _tokenizer().tokenize(text)
    except TokenError as error:
        at = _where_it_breaks(text)
        raise QueryParseError(
            "a quotation or comment is opened and never closed",
            position=position_of(text, at),
            detail=f"it starts with {text[at : at + 20]!r}",
            hint="close it",
        ) from error
    tokens: list[Token] = []
    for each in raw:
        # `1L` is read as three tokens in one place; as a place, it is one.
        if tokens and each.start < tokens[-1].end:
            continue
        token = _token(text, each)
        if tokens and _is_doubled_quote(text, tokens[-1], token):
            before = tokens.pop()
            token = Token("string", before.value + text[token.start] + token.value, before.start, token.end)
        tokens.append(token)
    return tuple(tokens)


def position_of(text: str, offset: int, start: Position = BEGINNING) -> Position:
    """The line and column of an offset in `text`, which itself begins at `start`."""
    lines_before = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    if lines_before == 0:
        return Position(start.line, start.column + column)
    return Position(start.line + lines_before, column + 1)


def within(position: Position | None, start: Position) -> Position | None:
    """A position in a part of a text, as a position in the whole; the part begins at `start`."""
    if position is None:
        return None
    if position.line == 1:
        return Position(start.line, start.column + position.column - 1)
    return Position(start.line + position.line - 1, position.column)


def _token(text: str, raw: Any) -> Token:
    source = text[raw.start : raw.end + 1]
    first = source[0]
    if first == "`":
        kind = "quoted"
    elif first in "'\"" or (first.isalpha() and source[-1] in "'\""):
        kind = "string"
    elif first.isdigit() or (first == "." and len(source) > 1):
        kind = "number"
    elif first.isalpha() or first == "_":
        kind = "word"
    else:
        kind = "symbol"
    return Token(kind, raw.text if kind in ("quoted", "string") else source, raw.start, raw.end + 1)


def _is_doubled_quote(text: str, one: Token, next_one: Token) -> bool:
    """Spark 4 reads 'it''s' as one string, sqlglot as two."""
    return (
        one.kind == next_one.kind == "string"
        and one.end == next_one.start
        and text[one.end - 1] == text[next_one.start]
    )


@cache
def _tokenizer() -> Tokenizer:
    from sqlglot.dialects.spark import Spark

    class OurTokenizer(Spark.Tokenizer):
        # sqlglot swallows the rest of a statement after these words; we want to look into it.
        COMMANDS = set()  # noqa: RUF012 (as the base class spells it)

    return OurTokenizer(dialect=Spark())


def _where_it_breaks(text: str) -> int:
    """The place of the quotation mark or comment that is never closed.

    The text before that place can be tokenized, and none that reaches beyond it; so the last place that may
    be cut off with success is the one.
    """
    from sqlglot.errors import TokenError

    openers = [at for at, each in enumerate(text) if each in "'\"`" or text.startswith("/*", at)]
    for at in reversed(openers[-200:]):
        try:
            _tokenizer().tokenize(text[:at])
        except TokenError:
            continue
        return at
    return 0
