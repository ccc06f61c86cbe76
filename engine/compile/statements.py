"""Our own SQL statements: what they are, and how a text becomes one.

A hand-written parser over sqlglot's tokens, one function a statement. Queries inside a statement are taken as
they were written; Spark and the compiler look into them later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from engine.compile.explain_statements import ExplainReader, ExplainStatement
from engine.compile.options import (
    SOURCE_OPTIONS,
    STREAM_TABLE_OPTIONS,
    SourceOptions,
    StreamTableOptions,
    Value,
    read_options,
)
from engine.compile.tokens import BEGINNING, Token, position_of, tokenize, within
from engine.errors import InvalidArgument, Position, TrickleError


@dataclass(frozen=True)
class CreateStreamTable:
    name: str
    query: str
    #: where the query begins in the whole text
    query_position: Position
    options: StreamTableOptions
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropStreamTable:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RefreshStreamTable:
    name: str
    full: bool = False


@dataclass(frozen=True)
class PauseStreamTable:
    name: str


@dataclass(frozen=True)
class ResumeStreamTable:
    name: str


@dataclass(frozen=True)
class VerifyStreamTable:
    name: str


@dataclass(frozen=True)
class ShowStreamTables:
    pass


@dataclass(frozen=True)
class ShowSources:
    pass


@dataclass(frozen=True)
class CreateSource:
    name: str
    path: str
    options: SourceOptions


@dataclass(frozen=True)
class DropSource:
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    name: str
    query: str
    #: where the query begins in the whole text
    query_position: Position
    or_replace: bool = False


@dataclass(frozen=True)
class DropView:
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowViews:
    pass


@dataclass(frozen=True)
class Select:
    text: str
    position: Position


@dataclass(frozen=True)
class Dml:
    text: str
    position: Position
    #: INSERT, UPDATE, DELETE or MERGE
    kind: str
    #: the table that it changes, its parts joined by dots
    target: str


Statement = (
    CreateStreamTable
    | DropStreamTable
    | RefreshStreamTable
    | ExplainStatement
    | PauseStreamTable
    | ResumeStreamTable
    | VerifyStreamTable
    | ShowStreamTables
    | ShowSources
    | CreateSource
    | DropSource
    | CreateView
    | DropView
    | ShowViews
    | Select
    | Dml
)

_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_DML_WORDS = ("INSERT", "UPDATE", "DELETE", "MERGE")


def split_script(text: str) -> tuple[tuple[str, Position], ...]:
    """The statements of a script with their places, without the semicolons between them."""
    parts: list[tuple[str, Position]] = []
    start: Token | None = None
    end = 0
    for token in tokenize(text):
        if token.is_symbol(";"):
            if start is not None:
                parts.append((text[start.start : end], position_of(text, start.start)))
            start = None
            continue
        start, end = start or token, token.end
    if start is not None:
        parts.append((text[start.start : end], position_of(text, start.start)))
    return tuple(parts)


def parse_statement(text: str, start: Position = BEGINNING) -> Statement:
    """The one statement in `text`, which begins at `start` of the text that errors speak of."""
    tokens = _shifted(lambda: tokenize(text), start)
    while tokens and tokens[-1].is_symbol(";"):
        tokens = tokens[:-1]
    return _Parser(text, tokens, start).statement()


def _shifted(read: Callable[[], tuple[Token, ...]], start: Position) -> tuple[Token, ...]:
    try:
        return read()
    except TrickleError as error:
        error.position = within(error.position, start)
        raise


class _Parser(ExplainReader):
    # --- statements ----------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        first = self.peek()
        if first.kind == "end":
            raise self.error("there is no statement", hint="write one, for example SHOW STREAM TABLES")
        if first.is_symbol("(") or first.is_word(*_QUERY_WORDS):
            return self._query_or_dml()
        if first.is_word(*_DML_WORDS):
            return self._dml(self.at)
        self.one_statement_only()
        verbs: dict[str, Callable[[], Statement]] = {
            "CREATE": self._create,
            "DROP": self._drop,
            "REFRESH": self._refresh,
            "EXPLAIN": self.explain,
            "VALIDATE": self.validate,
            "PREVIEW": self.preview,
            "ALTER": self._alter,
            "VERIFY": self._verify,
            "SHOW": self._show,
        }
        verb = verbs.get(first.value.upper()) if first.kind == "word" else None
        if verb is None:
            known = (*verbs, *_QUERY_WORDS[:3], *_DML_WORDS)
            raise self.unexpected("a statement", known)
        self.at += 1
        statement = verb()
        self.end()
        return statement

    def _create(self) -> Statement:
        if self.peek().is_word("SOURCE"):
            return self._create_source()
        ahead = [token.value.upper() for token in self.tokens[self.at : self.at + 3] if token.kind == "word"]
        if ahead[:1] == ["VIEW"] or ahead == ["OR", "REPLACE", "VIEW"]:
            return self._create_view()
        self.usage = "CREATE STREAM TABLE [IF NOT EXISTS] name [WITH (…)] AS SELECT …"
        self.not_yet(("OR", "REPLACE"), "CREATE OR REPLACE", "drop the stream table first, then create it")
        for words in (("MATERIALIZED", "VIEW"), ("DYNAMIC", "TABLE")):
            self.not_yet(words, "CREATE " + " ".join(words), f"write {self.usage}")
        if not self.peek().is_word("STREAM"):
            raise self.unexpected("STREAM TABLE, VIEW or SOURCE", ("STREAM", "VIEW", "SOURCE"))
        self.words("STREAM", "TABLE")
        if_not_exists = self.take("IF", "NOT", "EXISTS")
        name = self.name("the stream table")
        given: tuple[tuple[str, Value, Position], ...] = ()
        if self.take("WITH"):
            given = self.option_list()
        if self.peek().is_word("APPEND"):
            position = self.position()
            self.words("APPEND", "ONLY")
            given = (*given, ("append_only", True, position))
        if self.peek().is_word("PARTITION", "PARTITION BY", "PARTITIONED"):
            raise InvalidArgument(
                "PARTITION BY is not available in this version",
                position=self.position(),
                hint="leave it out",
            )
        options = read_options(given, STREAM_TABLE_OPTIONS, "a stream table")
        if not self.peek().is_word("AS"):
            raise self.unexpected("AS", ("AS", "WITH"))
        self.at += 1
        query, position = self.rest("the query")
        return CreateStreamTable(name, query, position, cast(StreamTableOptions, options), if_not_exists)

    def _create_view(self) -> CreateView:
        self.usage = "CREATE [OR REPLACE] VIEW name AS SELECT …"
        or_replace = self.take("OR", "REPLACE")
        self.words("VIEW")
        self.not_yet(
            ("IF", "NOT", "EXISTS"), "CREATE VIEW IF NOT EXISTS", "write CREATE OR REPLACE VIEW name AS SELECT …"
        )
        name = self.name("the view")
        if self.peek().is_symbol("("):
            raise InvalidArgument(
                "a view's columns cannot be named before its query",
                position=self.position(),
                hint="name them there: SELECT a AS b",
            )
        self.words("AS")
        return CreateView(name, *self.rest("the query"), or_replace)

    def _create_source(self) -> CreateSource:
        self.usage = "CREATE SOURCE name PATH '…' [WITH (…)]"
        self.words("SOURCE")
        name = self.name("the source")
        self.words("PATH")
        path = self.peek()
        if path.kind != "string" or not path.value:
            raise self.unexpected("the path in quotes")
        self.at += 1
        given = self.option_list() if self.take("WITH") else ()
        options = read_options(given, SOURCE_OPTIONS, "a source")
        return CreateSource(name, path.value, cast(SourceOptions, options))

    def _drop(self) -> Statement:
        if self.take("SOURCE"):
            self.usage = "DROP SOURCE [IF EXISTS] name"
            if_exists = self.take("IF", "EXISTS")
            return DropSource(self.name("the source"), if_exists)
        if self.take("VIEW"):
            self.usage = "DROP VIEW [IF EXISTS] name"
            if_exists = self.take("IF", "EXISTS")
            return DropView(self.name("the view"), if_exists)
        self.usage = "DROP STREAM TABLE [IF EXISTS] name [CASCADE]"
        self.not_yet(("MATERIALIZED", "VIEW"), "DROP MATERIALIZED VIEW", f"write {self.usage}")
        if not self.peek().is_word("STREAM"):
            raise self.unexpected("STREAM TABLE, VIEW or SOURCE", ("STREAM", "VIEW", "SOURCE"))
        self.words("STREAM", "TABLE")
        if_exists = self.take("IF", "EXISTS")
        name = self.name("the stream table")
        return DropStreamTable(name, if_exists, self.flag("CASCADE"))

    def _refresh(self) -> Statement:
        self.usage = "REFRESH STREAM TABLE name [FULL]"
        self.words("STREAM", "TABLE")
        name = self.name("the stream table")
        return RefreshStreamTable(name, self.flag("FULL"))

    def _alter(self) -> Statement:
        self.usage = "ALTER STREAM TABLE name PAUSE | RESUME"
        self.words("STREAM", "TABLE")
        name = self.name("the stream table")
        for word in ("SET", "AS", "RENAME"):
            self.not_yet((word,), f"ALTER STREAM TABLE … {word}", "drop the stream table and create it anew")
        if self.take("PAUSE"):
            return PauseStreamTable(name)
        if self.take("RESUME"):
            return ResumeStreamTable(name)
        raise self.unexpected("PAUSE or RESUME", ("PAUSE", "RESUME"))

    def _verify(self) -> Statement:
        self.usage = "VERIFY STREAM TABLE name"
        self.words("STREAM", "TABLE")
        return VerifyStreamTable(self.name("the stream table"))

    def _show(self) -> Statement:
        self.usage = "SHOW STREAM TABLES, SHOW VIEWS, or SHOW SOURCES"
        if self.take("SOURCES"):
            return ShowSources()
        if self.take("VIEWS"):
            return ShowViews()
        if not self.peek().is_word("STREAM"):
            raise self.unexpected("STREAM TABLES, VIEWS or SOURCES", ("STREAM", "VIEWS", "SOURCES"))
        self.words("STREAM", "TABLES")
        return ShowStreamTables()

    def _query_or_dml(self) -> Statement:
        """`WITH … INSERT` is DML too: the first such word outside of all brackets decides."""
        self.one_statement_only()
        depth = 0
        for at, token in enumerate(self.tokens):
            if token.is_symbol("("):
                depth += 1
            elif token.is_symbol(")"):
                depth -= 1
            elif depth == 0 and token.is_word(*_DML_WORDS) and self.tokens[0].is_word("WITH", "FROM"):
                return self._dml(at)
            elif depth == 0 and token.is_word("SELECT"):
                break
        text, position = self.rest("the query")
        return Select(text, position)

    def _dml(self, at: int) -> Dml:
        self.one_statement_only()
        text, position = self.rest("the statement")
        self.at = at
        kind = self.peek().value.upper()
        self.at += 1
        match kind:
            case "INSERT":
                self.usage = "INSERT INTO name SELECT … | VALUES …"
                if not (self.take("INTO") or self.take("OVERWRITE")):
                    raise self.unexpected("INTO or OVERWRITE", ("INTO", "OVERWRITE"))
                self.take("TABLE")
            case "DELETE":
                self.usage = "DELETE FROM name [WHERE …]"
                self.words("FROM")
            case "MERGE":
                self.usage = "MERGE INTO name USING … ON … WHEN …"
                self.take("WITH", "SCHEMA", "EVOLUTION")
                self.words("INTO")
            case _:
                self.usage = "UPDATE name SET … [WHERE …]"
        return Dml(text, position, kind, self.dotted("the table"))
