"""Our own SQL statements: what they are, and how a text becomes one.

A hand-written parser over sqlglot's tokens, one function a statement. Queries inside a statement are taken as
they were written; Spark and the compiler look into them later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from engine.compile.dml_statements import DML_WORDS, Dml, DmlReader
from engine.compile.explain_statements import ExplainStatement
from engine.compile.options import (
    ALTER_OPTIONS,
    SOURCE_OPTIONS,
    STREAM_TABLE_OPTIONS,
    SourceOptions,
    StreamTableOptions,
    Value,
    read_options,
)
from engine.compile.source_ddl import AlterSource, DropSourceTable, SourceDdlReader
from engine.compile.tokens import BEGINNING, Token, position_of, tokenize, within
from engine.compile.upkeep_statements import UpkeepReader, UpkeepStatement
from engine.errors import InvalidArgument, Position, TrickleError


@dataclass(frozen=True)
class CreateStreamTable:
    name: str
    query: str
    #: where the query begins in the whole text
    query_position: Position
    options: StreamTableOptions
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class AlterStreamTable:
    """SET (…), AS SELECT …, or both."""

    name: str
    options: StreamTableOptions
    query: str | None = None
    #: where the query begins in the whole text
    query_position: Position = BEGINNING


@dataclass(frozen=True)
class DropStreamTable:
    name: str
    if_exists: bool = False
    cascade: bool = False


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
class ShowCdcStatus:
    pass


@dataclass(frozen=True)
class ShowChangeBuffers:
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


Statement = (
    CreateStreamTable
    | AlterStreamTable
    | DropStreamTable
    | UpkeepStatement
    | ExplainStatement
    | PauseStreamTable
    | ResumeStreamTable
    | VerifyStreamTable
    | ShowStreamTables
    | ShowSources
    | ShowCdcStatus
    | ShowChangeBuffers
    | CreateSource
    | DropSource
    | CreateView
    | DropView
    | ShowViews
    | Select
    | Dml
    | AlterSource
    | DropSourceTable
)

_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


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


class _Parser(UpkeepReader, SourceDdlReader, DmlReader):
    # --- statements ----------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        first = self.peek()
        if first.kind == "end":
            raise self.error("there is no statement", hint="write one, for example SHOW STREAM TABLES")
        if first.is_symbol("(") or first.is_word(*_QUERY_WORDS):
            return self._query_or_dml()
        if first.is_word(*DML_WORDS):
            return self.dml(self.at)
        self.one_statement_only()
        verbs: dict[str, Callable[[], Statement]] = {
            "CREATE": self._create,
            "DROP": self._drop,
            "REFRESH": self.refresh,
            "REINITIALIZE": self.reinitialize,
            "REPAIR": self.repair,
            "MAINTAIN": self.maintain,
            "EXPLAIN": self.explain,
            "VALIDATE": self.validate,
            "PREVIEW": self.preview,
            "ALTER": self._alter,
            "VERIFY": self._verify,
            "SHOW": self._show,
            "TRUNCATE": self.truncate,
        }
        verb = verbs.get(first.value.upper()) if first.kind == "word" else None
        if verb is None:
            known = (*verbs, *_QUERY_WORDS[:3], *DML_WORDS)
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
        self.usage = (
            "CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] name [WITH (…)] [APPEND ONLY] [PARTITION BY (…)] "
            "AS SELECT …"
        )
        or_replace = self.take("OR", "REPLACE")
        for words in (("MATERIALIZED", "VIEW"), ("DYNAMIC", "TABLE")):
            self.not_yet(words, "CREATE " + " ".join(words), f"write {self.usage}")
        if not self.peek().is_word("STREAM"):
            raise self.unexpected("STREAM TABLE, VIEW or SOURCE", ("STREAM", "VIEW", "SOURCE"))
        self.words("STREAM", "TABLE")
        position = self.position()
        if_not_exists = self.take("IF", "NOT", "EXISTS")
        if or_replace and if_not_exists:
            raise InvalidArgument(
                "OR REPLACE and IF NOT EXISTS contradict each other", position=position, hint="leave one of them out"
            )
        name = self.name("the stream table")
        given: tuple[tuple[str, Value, Position], ...] = ()
        if self.take("WITH"):
            given = self.option_list()
        given = (*given, *self._clauses())
        options = read_options(given, STREAM_TABLE_OPTIONS, "a stream table")
        if not self.peek().is_word("AS"):
            raise self.unexpected("AS", ("AS", "WITH", "APPEND", "PARTITION"))
        self.at += 1
        query, position = self.rest("the query")
        said = cast(StreamTableOptions, options)
        return CreateStreamTable(name, query, position, said, if_not_exists, or_replace)

    def _clauses(self) -> Iterator[tuple[str, Value, Position]]:
        """Options that have words of their own, in any order."""
        while True:
            position = self.position()
            if self.take("APPEND"):
                self.words("ONLY")
                yield "append_only", True, position
            elif self._takes_by("PARTITION", "PARTITIONED"):
                yield "partition_by", self._columns(), position
            elif self._takes_by("CLUSTER", "CLUSTERED"):
                raise InvalidArgument(
                    "stream tables cannot be clustered",
                    position=position,
                    detail="delta-rs writes no clustered tables, and every small change would take a MERGE of Spark's",
                    hint="PARTITION BY (…) keeps rows together that change together",
                )
            else:
                return

    def _takes_by(self, *words: str) -> bool:
        """sqlglot reads some words and the BY behind them as one."""
        said = self.peek().value.upper().split() if self.peek().kind == "word" else []
        if not said or said[0] not in words:
            return False
        self.at += 1
        if len(said) == 1:
            self.words("BY")
        return True

    def _columns(self) -> tuple[str, ...]:
        self.symbol("(")
        names = [self.dotted("a column", strings=True)]
        while not self.peek().is_symbol(")"):
            self.symbol(",")
            names.append(self.dotted("a column", strings=True))
        self.symbol(")")
        return tuple(names)

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
        if self.take("TABLE"):
            self.usage = "DROP TABLE name"
            return DropSourceTable(self.dotted("the table"))
        self.usage = "DROP STREAM TABLE [IF EXISTS] name [CASCADE]"
        self.not_yet(("MATERIALIZED", "VIEW"), "DROP MATERIALIZED VIEW", f"write {self.usage}")
        if not self.peek().is_word("STREAM"):
            raise self.unexpected("STREAM TABLE, VIEW or SOURCE", ("STREAM", "VIEW", "SOURCE"))
        self.words("STREAM", "TABLE")
        if_exists = self.take("IF", "EXISTS")
        name = self.name("the stream table")
        return DropStreamTable(name, if_exists, self.flag("CASCADE"))

    def _alter(self) -> Statement:
        if self.take("TABLE"):
            return self.alter_source(self.text, self.start)
        self.usage = "ALTER STREAM TABLE name [SET (…)] [AS SELECT …] | RENAME TO … | PAUSE | RESUME"
        self.words("STREAM", "TABLE")
        name = self.name("the stream table")
        if self.take("RENAME"):
            return self.rename(name)
        if self.take("PAUSE"):
            return PauseStreamTable(name)
        if self.take("RESUME"):
            return ResumeStreamTable(name)
        set_ = self.take("SET")
        given = self.option_list() if set_ else ()
        options = cast(StreamTableOptions, read_options(given, ALTER_OPTIONS, "ALTER STREAM TABLE"))
        if self.take("AS"):
            return AlterStreamTable(name, options, *self.rest("the query"))
        if not set_:
            words = ("SET", "AS", "RENAME", "PAUSE", "RESUME")
            raise self.unexpected("SET, AS, RENAME, PAUSE or RESUME", words)
        return AlterStreamTable(name, options)

    def _verify(self) -> Statement:
        self.usage = "VERIFY STREAM TABLE name"
        self.words("STREAM", "TABLE")
        return VerifyStreamTable(self.name("the stream table"))

    def _show(self) -> Statement:
        self.usage = "SHOW STREAM TABLES, CREATE STREAM TABLE name, VIEWS, SOURCES, CDC STATUS, or CHANGE BUFFERS"
        if self.take("CREATE"):
            return self.show_create()
        if self.take("SOURCES"):
            return ShowSources()
        if self.take("VIEWS"):
            return ShowViews()
        if self.take("CDC"):
            self.words("STATUS")
            return ShowCdcStatus()
        if self.take("CHANGE"):
            self.words("BUFFERS")
            return ShowChangeBuffers()
        if not self.peek().is_word("STREAM"):
            known = ("STREAM", "CREATE", "VIEWS", "SOURCES", "CDC", "CHANGE")
            raise self.unexpected("STREAM TABLES, VIEWS, SOURCES, CDC STATUS or CHANGE BUFFERS", known)
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
            elif depth == 0 and token.is_word(*DML_WORDS) and self.tokens[0].is_word("WITH", "FROM"):
                return self.dml(at)
            elif depth == 0 and token.is_word("SELECT"):
                break
        text, position = self.rest("the query")
        return Select(text, position)
