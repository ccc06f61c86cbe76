"""Reading tokens one after the other, and saying what was expected instead."""

from __future__ import annotations

import difflib

from engine.compile.tokens import Token, position_of
from engine.errors import InvalidArgument, Position, QueryParseError
from engine.names import check_name


class TokenReader:
    def __init__(self, text: str, tokens: tuple[Token, ...], start: Position) -> None:
        self.text = text
        self.tokens = tokens
        self.start = start
        self.at = 0
        #: how the statement being read is written, for hints
        self.usage = ""

    def name(self, of_what: str) -> str:
        position = self.position()
        name = self.dotted(f"the name of {of_what}")
        try:
            return check_name(name)
        except InvalidArgument as error:
            error.position = position
            raise

    def dotted(self, what: str, *, strings: bool = False) -> str:
        kinds = ("word", "quoted", "string") if strings else ("word", "quoted")
        parts: list[str] = []
        while True:
            if self.peek().kind not in kinds:
                raise self.unexpected(what)
            parts.append(self.peek().value)
            self.at += 1
            if not self.peek().is_symbol("."):
                return ".".join(parts)
            self.at += 1

    def rest(self, what: str) -> tuple[str, Position]:
        """Everything up to the end of the statement, as it was written."""
        self.one_statement_only()
        if self.at >= len(self.tokens):
            raise self.unexpected(what)
        first, last = self.tokens[self.at], self.tokens[-1]
        self.at = len(self.tokens)
        return self.text[first.start : last.end], position_of(self.text, first.start, self.start)

    def flag(self, word: str) -> bool:
        if self.peek().kind != "end" and not self.peek().is_word(word):
            raise self.unexpected(f"{word} or the end", (word,))
        return self.take(word)

    # --- tokens --------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        if self.at < len(self.tokens):
            return self.tokens[self.at]
        end = len(self.text.rstrip())
        return Token("end", "", end, end)

    def take(self, *words: str) -> bool:
        """Goes past `words` if they come next; all of them once the first one is there."""
        if not self.peek().is_word(words[0]):
            return False
        self.words(*words)
        return True

    def words(self, *words: str) -> None:
        for word in words:
            if not self.peek().is_word(word):
                raise self.unexpected(word, (word,))
            self.at += 1

    def symbol(self, symbol: str) -> None:
        if not self.peek().is_symbol(symbol):
            raise self.unexpected(symbol)
        self.at += 1

    def end(self) -> None:
        if self.peek().kind != "end":
            raise self.unexpected("the end of the statement")

    def one_statement_only(self) -> None:
        for token in self.tokens[self.at :]:
            if token.is_symbol(";"):
                raise QueryParseError(
                    "one statement at a time",
                    position=position_of(self.text, token.start, self.start),
                    detail="something follows the semicolon",
                    hint="run them as a script, or one after the other",
                )

    def not_yet(self, words: tuple[str, ...], what: str, hint: str) -> None:
        ahead = self.tokens[self.at : self.at + len(words)]
        if len(ahead) == len(words) and all(token.is_word(word) for token, word in zip(ahead, words, strict=True)):
            raise InvalidArgument(f"{what} is not available in this version", position=self.position(), hint=hint)

    # --- errors --------------------------------------------------------------------------------------------

    def position(self) -> Position:
        return position_of(self.text, self.peek().start, self.start)

    def error(self, message: str, hint: str | None = None) -> QueryParseError:
        return QueryParseError(message, position=self.position(), hint=hint)

    def unexpected(self, wanted: str, words: tuple[str, ...] = ()) -> QueryParseError:
        token = self.peek()
        raw = self.text[token.start : token.end]
        found = "the end" if token.kind == "end" else raw if raw.isprintable() else repr(raw)
        near = difflib.get_close_matches(token.value.upper(), words, n=1) if token.kind == "word" else []
        if near:
            hint = f"did you mean {near[0]}?"
        elif self.usage:
            hint = f"write {self.usage}"
        else:
            hint = f"a statement begins with {', '.join(words)}"
        return self.error(f"expected {wanted}, found {found}", hint)
