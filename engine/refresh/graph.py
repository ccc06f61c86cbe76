"""Which stream tables stand on what, and in which order they follow: pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.records import StreamTable


def upstream_first(tables: Iterable[StreamTable]) -> tuple[StreamTable, ...]:
    """Each behind those that it reads."""
    known = {table.name.casefold(): table for table in tables}
    ordered: dict[str, StreamTable] = {}

    def visit(key: str) -> None:
        if key in known and key not in ordered:
            for source in known[key].sources:
                visit(source.casefold())
            ordered[key] = known[key]

    for key in known:
        visit(key)
    return tuple(ordered.values())


def standing_on(tables: Iterable[StreamTable], name: str) -> tuple[StreamTable, ...]:
    """Those that read a relation, also through others; upstream first."""
    reached = {name.casefold()}
    found = []
    for table in upstream_first(tables):
        if any(source.casefold() in reached for source in table.sources):
            reached.add(table.name.casefold())
            found.append(table)
    return tuple(found)


def below(tables: Iterable[StreamTable], table: StreamTable) -> frozenset[str]:
    """The names, folded, of all that a stream table reads, also through others."""
    known = {each.name.casefold(): each for each in tables}
    found: set[str] = set()
    waiting = [source.casefold() for source in table.sources]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [source.casefold() for source in known[name].sources] if name in known else []
    return frozenset(found)
