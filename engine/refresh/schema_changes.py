"""Sources whose columns are not those that a query was written for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.compile.plan import MaintenancePlan, replaced_views
from engine.compile.unnamed import joined_by_name, takes_all_columns
from engine.errors import NotFound, SourceReplaced, SourceSchemaChanged
from engine.event_records import EventKind, Severity
from engine.events import EventBus
from engine.records import CdcMode, Frontier, Outcome, Reason, ReasonCode, StreamTable
from engine.refresh.choose import Choice, meaning_changed
from engine.refresh.observe import SourceMove
from engine.refresh.plans import Plans, Relations


@dataclass(frozen=True)
class SchemaChange:
    """Of one source, as far as it concerns one stream table."""

    source: str
    text: str

    def refused(self, table: StreamTable) -> SourceSchemaChanged:
        return SourceSchemaChanged(
            f"{self.source} is not what the query of {table.name} was written for",
            detail=self.text,
            hint=f"bring it back and `trickle resume {table.name}`, or take it as it is now: "
            f"`trickle refresh {table.name} --full`",
        )


def _known_anew(table: StreamTable, plans: Plans) -> StreamTable:
    """As if its query was written now."""
    return replace(table, known_columns=plans.relations.types(table.sources))


def _with_new_sources(table: StreamTable, plans: Plans) -> StreamTable:
    """A view with another text may read what the stream table did not know before."""
    there = plans.relations.types(table.sources)
    return replace(table, known_columns={name: table.known_columns.get(name, there[name]) for name in there})


def planned(
    table: StreamTable,
    choice: Choice | None,
    moves: Iterable[SourceMove],
    plans: Plans,
    events: EventBus,
    *,
    blocks: bool,
) -> tuple[StreamTable, MaintenancePlan, Choice | None]:
    """What the query means by now, and the choice that follows.

    Where it means something else by somebody's DDL it raises, if that `blocks`; or all is read anew, as things are.
    """
    plan = plans.plan_of(table)
    other = plan.fingerprint != table.fingerprint
    if not other and choice is None and not any(move.schema_changed for move in moves):
        return table, plan, None
    change = found(table, plan, plans, moves)
    if change is not None and blocks:
        raise change.refused(table)
    if change is None and not other:
        for kind, text in _told(table, plans, moves):
            events.publish(kind, table.name, text)
        return table, plan, choice
    renewed = _with_new_sources if change is None else _known_anew
    table = renewed(table, plans)
    plan = plans.plan_of(table)
    if choice is None and change is None:
        choice = meaning_changed(table, plan)
    if choice is None and change is not None:
        text = f"{change.source} has another schema by now: {change.text}"
        events.publish(EventKind.SOURCE_SCHEMA_CHANGED, table.name, text, Severity.WARN)
        choice = Choice(Outcome.REINITIALIZE, Reason(ReasonCode.SOURCE_SCHEMA_CHANGED, text))
    return table, plan, choice


def found(
    table: StreamTable, plan: MaintenancePlan, plans: Plans, moves: Iterable[SourceMove] = ()
) -> SchemaChange | None:
    """What became of a source by somebody else's hand so that the query does not mean any more what it meant.

    A column that nobody uses may come, change and go.
    """
    return (
        _joined_otherwise(table, plans)
        or _used_otherwise(table, plan, plans)
        or exchanged(
            {name: [column.name for column in used] for name, used in plan.used_columns.items()}, plans.relations, moves
        )
    )


def _joined_otherwise(table: StreamTable, plans: Plans) -> SchemaChange | None:
    now = {name: {column.name for column in plans.relations[name]} for name in table.sources}
    known = {name.casefold(): {each.casefold() for each in columns} for name, columns in table.known_columns.items()}
    added = {
        name: sorted(each for each in columns if each.casefold() not in known.get(name.casefold(), columns))
        for name, columns in now.items()
        if name.casefold() in known
    }
    if not any(added.values()):
        return None
    joined = joined_by_name(plans.parsed(table.query), added, now)
    if joined is None:
        return None
    source, name = joined
    return SchemaChange(source, f"it got the column {name}, by which a NATURAL JOIN would join from now on")


def _used_otherwise(table: StreamTable, plan: MaintenancePlan, plans: Plans) -> SchemaChange | None:
    if plan.fingerprint == table.fingerprint or replaced_views(table.fingerprint, plan.views):
        return None
    for name in _others(table.sources, plans.relations):
        types = {column.name.casefold(): column.type for column in plans.relations[name]}
        used = {column.name.casefold() for column in plan.used_columns.get(name, ())}
        said = []
        for column, type_ in table.known_columns.get(name, {}).items():
            there = types.get(column.casefold())
            if there is None:
                said.append(f"the column {column} is gone")
            elif there != type_ and column.casefold() in used:
                said.append(f"the column {column} is of type {there}, and was {type_}")
        if said:
            return SchemaChange(name, ", ".join(said))
    return None


def exchanged(
    used_columns: Mapping[str, Iterable[str]], relations: Relations, moves: Iterable[SourceMove]
) -> SchemaChange | None:
    """Same names and types, but other columns: with column mapping, that needs no change of rows."""
    by_name = {move.name: move for move in moves}
    for name in _others(by_name, relations):
        summary = by_name[name].summary
        other = summary.exchanged if summary is not None else frozenset()
        column = next((each for each in used_columns.get(name, ()) if each.lower() in other), None)
        if column is not None:
            return SchemaChange(name, f"the column {column} is another one by now, under the same name")
    return None


def refuse_replaced(table: StreamTable, relations: Relations, chosen: Frontier, frontier: Frontier) -> None:
    """Another table stands in the place of a source that others own."""
    others = [name for name, was in frontier.items() if name in chosen and was.table_id != chosen[name].table_id]
    for name in _others(others, relations):
        if relations.cdc_mode(name) is not CdcMode.POLL:
            raise SourceReplaced(
                f"the source {name} was replaced by another table",
                detail=f"its table id was {frontier[name].table_id} and is {chosen[name].table_id}",
                hint=f"bring it back and `trickle resume {table.name}`, or take it as it is now: "
                f"`trickle refresh {table.name} --full`",
            )


def _others(names: Iterable[str], relations: Relations) -> Iterable[str]:
    """Those that neither Trickle keeps nor makes."""
    for name in names:
        try:
            located = relations.located(name)
        except NotFound:
            continue
        if not located.is_stream_table:
            yield name


def _told(table: StreamTable, plans: Plans, moves: Iterable[SourceMove]) -> Iterator[tuple[EventKind, str]]:
    """What happened to sources that stops nobody, but that somebody may want to know."""
    for move in moves:
        if move.summary is None or not move.schema_changed:
            continue
        if move.summary.cdf_lost_at is not None and move.summary.by_files:
            text = f"the Change Data Feed of {move.name} was off at version {move.summary.cdf_lost_at}"
            yield EventKind.CDC_MODE_CHANGED, f"{text}: its changes are told by its files"
        before = {column.name for column in move.summary.columns_before or ()}
        added = sorted({column.name for column in move.summary.columns_after or ()} - before)
        if added and takes_all_columns(plans.parsed(table.query)):
            text = f"{move.name} got {', '.join(added)}, which `*` does not stand for: its columns are those of then"
            yield EventKind.SOURCE_SCHEMA_CHANGED, f"{text}; ALTER STREAM TABLE {table.name} AS … takes it in"
