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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.algebra.dialect import Spark4
from engine.compile.parse import Limits, guard, parse_error
from engine.compile.positions import offset_of, position_at
from engine.compile.translate.rules import Translation, translated
from engine.errors import InvalidArgument, Position, QueryParseError, QueryTooComplex, TrickleError
from engine.records import Column, Notice, Reason, SqlDialect, Written


@dataclass(frozen=True)
class InSpark:
    """A query in Spark's words, and how it was written."""

    text: str
    #: None where it was written for Spark
    written: Written | None = None
    notices: tuple[Notice, ...] = ()

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors inside point into the text as it was written, where that is possible."""
        try:
            yield
        except TrickleError as error:
            error.position = self.place(error.position)
            raise

    def placed_reason(self, reason: Reason | None) -> Reason | None:
        return None if reason is None else replace(reason, position=self.place(reason.position))

    def place(self, position: Position | None) -> Position | None:
        """The same word in the text as it was written; None where it cannot be told which one that is."""
        if self.written is None or position is None:
            return position
        offset = offset_of(position, self.text)
        word = re.match(r"\w+", self.text[offset:])
        if word is None:
            return None
        pattern = re.compile(rf"\b{re.escape(word[0])}\b", re.IGNORECASE)
        here = [each.start() for each in pattern.finditer(self.text)]
        there = [each.start() for each in pattern.finditer(self.written.text)]
        if len(here) != len(there) or offset not in here:
            return None
        return position_at(self.written.text, there[here.index(offset)])


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
    return InSpark(done.tree.sql(dialect=Spark4, pretty=True), written, done.notices)


def dialect_of(name: str) -> SqlDialect:
    try:
        return SqlDialect(name.lower())
    except ValueError:
        known = ", ".join(SqlDialect)
        raise InvalidArgument(f"there is no dialect {name}", hint=f"one of {known}") from None


def _parsed(text: str, dialect: SqlDialect) -> exp.Query:
    try:
        statements = [each for each in sqlglot.parse(text, dialect=dialect.value) if each is not None]
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
