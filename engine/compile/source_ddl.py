"""DDL on a source: what of it a statement touches, so that those who read that can be asked before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compile.token_reader import TokenReader
from engine.errors import Position

#: what ALTER TABLE does without touching a column that is there
_HARMLESS = ("ADD", "SET", "UNSET", "CLUSTER", "CLUSTER BY")


@dataclass(frozen=True)
class AlterSource:
    text: str
    position: Position
    #: the table, its parts joined by dots, and where it stands in the text
    target: str
    span: tuple[int, int]
    #: columns that go or become others; None: possibly all of them
    touched: tuple[str, ...] | None
    added: tuple[str, ...] = ()
    #: properties that it sets, and to what
    sets: tuple[tuple[str, str], ...] = ()
    #: does it lay the files out by columns?
    clusters: bool = False


@dataclass(frozen=True)
class DropSourceTable:
    target: str


class SourceDdlReader(TokenReader):
    def alter_source(self, text: str, position: Position) -> AlterSource:
        """Behind ALTER TABLE."""
        self.usage = "ALTER TABLE name ADD | ALTER | DROP | RENAME COLUMN …, or SET TBLPROPERTIES (…)"
        began = self.peek().start
        target = self.dotted("the table")
        span = (began, self.tokens[self.at - 1].end)
        touched: tuple[str, ...] | None = None
        added: tuple[str, ...] = ()
        sets: tuple[tuple[str, str], ...] = ()
        clusters = self.peek().is_word("CLUSTER", "CLUSTER BY")
        if self.peek().is_word("ADD") and self._next_is_word("COLUMN", "COLUMNS"):
            self.at += 2
            touched, added = (), tuple(self._listed())
        elif self.peek().is_word("DROP") and self._next_is_word("COLUMN", "COLUMNS"):
            self.at += 2
            self.take("IF", "EXISTS")
            touched = tuple(self._listed())
        elif self.peek().is_word("RENAME") and self._next_is_word("COLUMN"):
            self.at += 2
            touched = (self._first_part(),)
            self.words("TO")
            added = (self._first_part(),)
        elif self.peek().is_word("CHANGE"):
            # `CHANGE a b BIGINT` is another type and maybe another name, without a word that says so
            self.at += 1
            self.take("COLUMN")
            touched = (self._first_part(),)
        elif self.peek().is_word("ALTER"):
            self.at += 1
            self.take("COLUMN")
            column = self._first_part()
            touched = (column,) if any(token.is_word("TYPE") for token in self.tokens[self.at :]) else ()
        elif self.peek().is_word("SET") and self._next_is_word("TBLPROPERTIES"):
            self.at += 2
            touched, sets = (), tuple(self._properties())
        elif self.peek().is_word(*_HARMLESS) or (self.peek().is_word("DROP") and self._next_is_word("CONSTRAINT")):
            touched = ()
        self.at = len(self.tokens)
        return AlterSource(text, position, target, span, touched, added, sets, clusters)

    def _next_is_word(self, *words: str) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].is_word(*words)

    def _first_part(self) -> str:
        """Of a column, which may be a field within one."""
        first = self.peek().value
        self.dotted("a column")
        return first

    def _properties(self) -> Iterator[tuple[str, str]]:
        """Of `('a.b' = 'c', d.e = true)`; what is written otherwise is for Spark to refuse."""
        self.symbol("(")
        while self.peek().kind in ("word", "quoted", "string"):
            name = self.dotted("a property", strings=True)
            if self.peek().is_symbol("="):
                self.at += 1
            yield name, self.peek().value
            while self.peek().kind != "end" and not self.peek().is_symbol(","):
                self.at += 1
            self.at += 1

    def _listed(self) -> Iterator[str]:
        """The names in `a`, `a, b` or `(a INT, b STRUCT<c: INT>)`."""
        of_list = 1 if self.peek().is_symbol("(") else 0
        depth, begins = 0, True
        while self.peek().kind != "end":
            token = self.peek()
            if token.kind == "symbol":
                depth += sum(token.value.count(each) for each in "(<") - sum(token.value.count(each) for each in ")>")
                begins = begins or (token.value == "," and depth == of_list)
            elif begins:
                begins = False
                yield token.value
            self.at += 1
