"""Queries in another database's SQL, in Spark's words: `CREATE STREAM TABLE … WITH (dialect = 'postgres') AS …`.

sqlglot reads the text and writes it for Spark, and is not believed: of the same text two databases often make
something else. So a list says what is known to mean the same, rules say how what differs is spelled out, and
everything else is refused, with its place. docs/DIALECTS.md is the list for people.

    plain     what means the same everywhere
    rules     the whole tree, part by part
    numbers, casts, texts, dates, lists, clauses     what means something else in Spark
    kinds     what kind of value an expression has, on which that may hang
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError

from engine.algebra.dialect import Spark4
from engine.compile.parse import IN_THE_VIEW, Limits, guard, parse_error, says_anything
from engine.compile.positions import offset_of, position_at
from engine.compile.translate.rules import Translation, translated
from engine.errors import InvalidArgument, Position, QueryParseError, QueryTooComplex, TrickleError, UnsupportedOperator
from engine.records import Column, Notice, Reason, SqlDialect, Written

#: how Spark and Trickle tell a place in a sentence
_PLACE = re.compile(r"[;,]? ?\(?\bline (?P<line>\d+),? (?P<word>column|pos) (?P<column>\d+)\)?;?")
#: words that Spark has for what is called otherwise elsewhere
_ALSO_WRITTEN = {"LIMIT": "LIMIT|FETCH|TOP"}


@dataclass(frozen=True)
class InSpark:
    """A query in Spark's words, and how it was written."""

    text: str
    #: None where it was written for Spark
    written: Written | None = None
    notices: tuple[Notice, ...] = ()

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors inside speak of the text as it was written, as far as that can be told."""
        try:
            yield
        except TrickleError as error:
            error.position, error.fragment = self.place(error.position), self._fragment(error.fragment)
            error.detail = self._placed_text(error.detail or "", in_view=IN_THE_VIEW in error.message) or None
            raise

    def placed_reason(self, reason: Reason | None) -> Reason | None:
        if reason is None:
            return None
        return replace(reason, position=self.place(reason.position), fragment=self._fragment(reason.fragment))

    def placed_notices(self, notices: Sequence[Notice]) -> tuple[Notice, ...]:
        return tuple(replace(each, text=self._placed_text(each.text)) for each in notices)

    def _placed_text(self, text: str, *, in_view: bool = False) -> str:
        """A sentence with places in it, of which those in a view's text stand in its error already."""
        if self._is_as_written:
            return text

        def placed(found: re.Match[str]) -> str:
            column = int(found["column"]) + (found["word"] == "pos")  # Spark counts from 0
            place = None if in_view else self.place(Position(int(found["line"]), column))
            return f" ({place})" if place is not None else ""

        return _PLACE.sub(placed, text)

    def _fragment(self, fragment: str | None) -> str | None:
        """None where nobody wrote it."""
        if self.written is None or fragment is None:
            return fragment
        return fragment if fragment.rstrip("…") in " ".join(self.written.text.split()) else None

    @property
    def _is_as_written(self) -> bool:
        return self.written is None or self.written.text == self.text

    def place(self, position: Position | None) -> Position | None:
        """The same word in the text as it was written; None where it cannot be told which one that is."""
        if self.written is None or position is None or self._is_as_written:
            return position
        offset = offset_of(position, self.text)
        word = re.match(r"\w+", self.text[offset:])
        if word is None:
            return None
        here = _places(re.escape(word[0]), self.text)
        there = _places(_ALSO_WRITTEN.get(word[0].upper(), re.escape(word[0])), self.written.text)
        if len(here) != len(there) or offset not in here:
            return None
        return position_at(self.written.text, there[here.index(offset)])


def _places(words: str, text: str) -> list[int]:
    return [each.start() for each in re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE)]


def in_spark(
    text: str, dialect: str, relations: Mapping[str, tuple[Column, ...]], limits: Limits | None = None
) -> InSpark:
    """The query in Spark's words. What Spark reads by itself stays as it is, and Spark decides what it means."""
    chosen = dialect_of(dialect)
    if chosen is SqlDialect.SPARK:
        return InSpark(text)
    written = Written(chosen, text)
    if chosen is SqlDialect.DATABRICKS:
        return InSpark(text, written)  # Databricks is Spark; what only it has, Spark refuses
    tree = _parsed(text, chosen)
    guard(tree, text, limits or Limits())
    done: Translation = translated(tree, text, chosen, relations)
    return InSpark(_rendered(done.tree, chosen), written, done.notices)


def _rendered(tree: exp.Expr, dialect: SqlDialect) -> str:
    """sqlglot leaves out what it has no words for, unless it is told not to."""
    try:
        return tree.sql(dialect=Spark4, pretty=True, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise UnsupportedOperator(
            f"{dialect.value}: a part of the query has no words in Spark",
            detail=str(error),
            hint="say it in another way, or write the query in Spark's SQL",
        ) from error


def dialect_of(name: str) -> SqlDialect:
    try:
        return SqlDialect(name.lower())
    except ValueError:
        known = ", ".join(SqlDialect)
        raise InvalidArgument(f"there is no dialect {name}", hint=f"one of {known}") from None


def _parsed(text: str, dialect: SqlDialect) -> exp.Query:
    try:
        statements = [each for each in sqlglot.parse(text, dialect=dialect.value) if says_anything(each)]
    except RecursionError:
        raise QueryTooComplex("the query is nested too deeply", hint="split it into several stream tables") from None
    except SqlglotError as error:
        raise parse_error(text, error, dialect.value) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise QueryParseError(
            "a stream table is defined by one SELECT", position=Position(1, 1), hint="start with SELECT or WITH"
        )
    return statements[0]


__all__ = ["InSpark", "dialect_of", "in_spark"]
