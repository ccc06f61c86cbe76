"""DML as a statement: its kind and the table that it changes. What else it says is Spark's business."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.token_reader import TokenReader
from engine.errors import Position

DML_WORDS = ("INSERT", "UPDATE", "DELETE", "MERGE")


@dataclass(frozen=True)
class Dml:
    text: str
    position: Position
    #: INSERT, UPDATE, DELETE, MERGE or TRUNCATE
    kind: str
    #: the table that it changes, its parts joined by dots
    target: str


class DmlReader(TokenReader):
    def dml(self, at: int) -> Dml:
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

    def truncate(self) -> Dml:
        """All rows go, as those of any DELETE."""
        self.usage = "TRUNCATE TABLE name"
        position = self.position()
        self.words("TABLE")
        began = self.peek().start
        target = self.dotted("the table")
        written = self.text[began : self.tokens[self.at - 1].end]
        return Dml(f"DELETE FROM {written}", position, "TRUNCATE", target)  # noqa: S608  as it was written
