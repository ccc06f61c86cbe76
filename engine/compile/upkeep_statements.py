"""Statements that look after stream tables: REINITIALIZE, REPAIR, MAINTAIN, RENAME TO, and REFRESH in its forms."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.explain_statements import ExplainReader
from engine.compile.options import duration_of


@dataclass(frozen=True)
class RefreshStreamTable:
    name: str
    full: bool = False
    #: only if its rows are older than this duration
    older_than: str | None = None


@dataclass(frozen=True)
class RefreshAll:
    pass


@dataclass(frozen=True)
class ReinitializeStreamTable:
    name: str


@dataclass(frozen=True)
class RepairStreamTable:
    name: str


@dataclass(frozen=True)
class MaintainStreamTable:
    name: str


@dataclass(frozen=True)
class RenameStreamTable:
    name: str
    new_name: str


@dataclass(frozen=True)
class ShowCreate:
    name: str


UpkeepStatement = (
    RefreshStreamTable
    | RefreshAll
    | ReinitializeStreamTable
    | RepairStreamTable
    | MaintainStreamTable
    | RenameStreamTable
    | ShowCreate
)


class UpkeepReader(ExplainReader):
    def refresh(self) -> RefreshStreamTable | RefreshAll:
        self.usage = "REFRESH STREAM TABLE name [FULL | IF OLDER THAN '5m'], or REFRESH ALL STREAM TABLES"
        if self.take("ALL"):
            self.words("STREAM", "TABLES")
            return RefreshAll()
        self.words("STREAM", "TABLE")
        name = self.name("the stream table")
        if not self.take("IF"):
            return RefreshStreamTable(name, self.flag("FULL"))
        self.words("OLDER", "THAN")
        age, position = self.peek(), self.position()
        if age.kind != "string":
            raise self.unexpected("a duration in quotes")
        self.at += 1
        return RefreshStreamTable(name, older_than=duration_of(age.value, position, "the age"))

    def reinitialize(self) -> ReinitializeStreamTable:
        return ReinitializeStreamTable(self._named("REINITIALIZE"))

    def repair(self) -> RepairStreamTable:
        return RepairStreamTable(self._named("REPAIR"))

    def maintain(self) -> MaintainStreamTable:
        return MaintainStreamTable(self._named("MAINTAIN"))

    def rename(self, name: str) -> RenameStreamTable:
        self.words("TO")
        return RenameStreamTable(name, self.name("the stream table"))

    def show_create(self) -> ShowCreate:
        return ShowCreate(self._named("SHOW CREATE"))

    def _named(self, verb: str) -> str:
        self.usage = f"{verb} STREAM TABLE name"
        self.words("STREAM", "TABLE")
        return self.name("the stream table")
