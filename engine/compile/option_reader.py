"""Reading `(name = value, …)`, which stands behind WITH."""

from __future__ import annotations

from engine.compile.options import Value
from engine.compile.token_reader import TokenReader
from engine.errors import Position


class OptionReader(TokenReader):
    def option_list(self) -> tuple[tuple[str, Value, Position], ...]:
        self.symbol("(")
        given: list[tuple[str, Value, Position]] = []
        while not self.peek().is_symbol(")"):
            if given:
                self.symbol(",")
            token, position = self.peek(), self.position()
            if token.kind not in ("word", "quoted", "string"):
                raise self.unexpected("the name of an option")
            name = self.dotted("the name of an option", strings=True)
            self.symbol("=")
            given.append((name, self._value(), position))
        self.at += 1
        return tuple(given)

    def _value(self) -> Value:
        token = self.peek()
        self.at += 1
        match token.kind:
            case "string" | "quoted":
                return token.value
            case "word" if token.is_word("TRUE", "FALSE"):
                return token.is_word("TRUE")
            case "word" if token.is_word("NULL"):
                return None
            case "word":
                return token.value
            case "number" if token.value.replace(".", "", 1).isdigit():
                return float(token.value)
            case "symbol" if token.value == "(":
                return self._list()
        self.at -= 1
        raise self.unexpected("a value")

    def _list(self) -> tuple[str, ...]:
        items: list[str] = []
        while not self.peek().is_symbol(")"):
            if items:
                self.symbol(",")
            if self.peek().kind not in ("string", "word", "quoted"):
                raise self.unexpected("a name")
            items.append(self.peek().value)
            self.at += 1
        self.at += 1
        return tuple(items)
