"""DDL on sources that is sent through Trickle: refused beforehand where it would stop a stream table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from engine.catalog.store import Catalog
from engine.compile.source_ddl import AlterSource
from engine.compile.unnamed import joined_by_name
from engine.errors import DependentsExist, InvalidArgument, TrickleError
from engine.lake import queries, quoting, undo
from engine.lake.heads import HeadReader
from engine.lake.turns import Turns
from engine.names import same_name
from engine.records import CdcMode, RefreshMode, StreamTable
from engine.refresh.plans import Located, Plans
from engine.refresh.sources import refuse_while_views_read

if TYPE_CHECKING:
    from engine.config import Settings
    from engine.lake.session import SparkHost


@dataclass(frozen=True)
class SourceDdl:
    catalog: Catalog
    host: SparkHost
    plans: Plans
    settings: Settings
    turns: Turns

    def alter(self, statement: AlterSource) -> int:
        """In its turn: a commit between DML and its undoing would keep that DML, as if somebody else had written."""
        located = self._owned_by_others(statement.target)
        with self.turns.taken((located.path,)):
            return self._altered(located, statement)

    def _altered(self, located: Located, statement: AlterSource) -> int:
        for table in self._readers(located.name):
            harm = self._harm(table, located, statement)
            if harm is not None:
                raise DependentsExist(
                    f"{table.name} {harm}",
                    detail="it would have to stop, or mean something else",
                    hint=f"alter or drop {table.name} first",
                )
        start, end = statement.span
        text = statement.text[:start] + quoting.table(located.path) + statement.text[end:]
        queries.run(self.host.session(), text, f"altering {located.name}")
        return HeadReader().head(located.path).version

    def drop(self, name: str) -> NoReturn:
        """Spark drops no table by its path, and a folder that others own is not Trickle's to delete."""
        located = self._owned_by_others(name)
        readers = self.catalog.dependents(located.name)
        if readers:
            raise DependentsExist(
                f"{located.name} is read by {', '.join(readers)}", hint="drop these first, if nobody needs them"
            )
        refuse_while_views_read(self.catalog, self.settings, located.name)
        raise InvalidArgument(
            f"{located.name} is a folder that somebody else owns, which Trickle does not delete",
            detail=located.path,
            hint=f"DROP SOURCE {located.name} forgets it; remove the folder where you made it",
        )

    def _owned_by_others(self, name: str) -> Located:
        if any(same_name(view.name, name) for view in self.catalog.views()):
            raise InvalidArgument(f"{name} is a view", hint="CREATE OR REPLACE VIEW gives it another text")
        located = self.plans.relations.located(name)
        if located.is_stream_table:
            raise InvalidArgument(
                f"{located.name} is a stream table: its query decides what its columns are",
                hint=f"ALTER STREAM TABLE {located.name} AS …, or DROP STREAM TABLE {located.name}",
            )
        if located.cdc_mode is CdcMode.POLL:
            raise InvalidArgument(
                f"{located.name} is polled: what Trickle has of it is a copy", hint="alter it where it lies"
            )
        return located

    def _readers(self, name: str) -> Iterator[StreamTable]:
        for each in self.catalog.dependents(name):
            yield self.catalog.get_stream_table(each)

    def _harm(self, table: StreamTable, source: Located, statement: AlterSource) -> str | None:
        """Why a stream table would have to stop."""
        if table.refresh_mode is RefreshMode.IMMEDIATE:
            why = undo.why_no_more(statement.sets, clusters=statement.clusters)
            if why is not None:
                return f"is IMMEDIATE, and DML on {source.name} could not be taken back any more: {why}"
        try:
            used = self.plans.plan_of(table).used_columns.get(source.name, ())
        except TrickleError:
            return None  # it stands already, for a reason of its own
        names = [column.name for column in used]
        if statement.touched is not None:
            touched = {name.casefold() for name in statement.touched}
            names = [name for name in names if name.casefold() in touched]
        if names:
            return f"uses {', '.join(names)} of {source.name}"
        if not statement.added:
            return None
        now = {name: {column.name for column in self.plans.relations[name]} for name in table.sources}
        joined = joined_by_name(self.plans.parsed(table.query), {source.name: statement.added}, now)
        return None if joined is None else f"has a NATURAL JOIN, which would join by {joined[1]} of {source.name}, too"
