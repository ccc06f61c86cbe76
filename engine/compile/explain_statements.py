"""Statements that look into the compiler: VALIDATE, PREVIEW and the kinds of EXPLAIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from engine.compile.option_reader import OptionReader
from engine.compile.options import (
    PREVIEW_OPTIONS,
    QUERY_OPTIONS,
    Option,
    PreviewOptions,
    QueryOptions,
    read_options,
)
from engine.errors import Position


@dataclass(frozen=True)
class ExplainStreamTable:
    name: str


@dataclass(frozen=True)
class ValidateQuery:
    query: str
    query_position: Position
    options: QueryOptions


@dataclass(frozen=True)
class PreviewStreamTable:
    query: str
    query_position: Position
    options: PreviewOptions


@dataclass(frozen=True)
class ExplainRewrite:
    #: of a stream table; None where a query follows
    name: str | None
    query: str
    query_position: Position
    options: QueryOptions
    every_step: bool = False


@dataclass(frozen=True)
class ExplainDelta:
    name: str | None
    query: str
    query_position: Position
    options: QueryOptions


@dataclass(frozen=True)
class ExplainRefreshMode:
    name: str


ExplainStatement = (
    ExplainStreamTable | ExplainRefreshMode | ValidateQuery | PreviewStreamTable | ExplainRewrite | ExplainDelta
)


class ExplainReader(OptionReader):
    def explain(self) -> ExplainStreamTable | ExplainRefreshMode | ExplainRewrite | ExplainDelta:
        self.usage = (
            "EXPLAIN STREAM TABLE name, EXPLAIN REFRESH MODE [FOR] name, "
            "EXPLAIN REWRITE [ALL] | DELTA [FOR] name | AS SELECT …, or VALIDATE AS SELECT …"
        )
        self.not_yet(("ANALYZE",), "EXPLAIN ANALYZE", "leave ANALYZE out")
        if self.take("REWRITE"):
            every_step = self.take("ALL")
            return ExplainRewrite(*self._name_or_query(), every_step)
        if self.take("DELTA"):
            self.take("FOR")
            return ExplainDelta(*self._name_or_query())
        if self.take("REFRESH"):
            self.words("MODE")
            self.take("FOR")
            self.take("STREAM", "TABLE")
            return ExplainRefreshMode(self.name("the stream table"))
        if not self.peek().is_word("STREAM"):
            raise self.unexpected(
                "STREAM TABLE, REFRESH MODE, REWRITE or DELTA", ("STREAM", "REFRESH", "REWRITE", "DELTA")
            )
        self.words("STREAM", "TABLE")
        return ExplainStreamTable(self.name("the stream table"))

    def _name_or_query(self) -> tuple[str | None, str, Position, QueryOptions]:
        if self.peek().is_word("AS", "WITH"):
            options = self._options(QUERY_OPTIONS, "a query")
            return None, *self._as_query(), cast(QueryOptions, options)
        self.take("STREAM", "TABLE")
        return self.name("the stream table"), "", self.position(), {}

    def validate(self) -> ValidateQuery:
        self.usage = "VALIDATE [WITH (…)] AS SELECT …"
        options = self._options(QUERY_OPTIONS, "a query")
        return ValidateQuery(*self._as_query(), cast(QueryOptions, options))

    def preview(self) -> PreviewStreamTable:
        self.usage = "PREVIEW STREAM TABLE [WITH (…)] AS SELECT …"
        self.words("STREAM", "TABLE")
        options = self._options(PREVIEW_OPTIONS, "a preview")
        return PreviewStreamTable(*self._as_query(), cast(PreviewOptions, options))

    def _options(self, known: tuple[Option, ...], where: str) -> dict[str, Any]:
        return read_options(self.option_list() if self.take("WITH") else (), known, where)

    def _as_query(self) -> tuple[str, Position]:
        self.words("AS")
        return self.rest("the query")
