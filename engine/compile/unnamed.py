"""Which columns a query takes by their names, and which without naming them: by `*`, and by NATURAL joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from sqlglot import exp

from engine.compile.parse import ParsedQuery
from engine.records import Column


def takes_all_columns(parsed: ParsedQuery) -> bool:
    """Is there a `*` in it that stands for columns? That of `COUNT(*)` does not."""
    return any(
        not isinstance(star.parent, exp.AggFunc) for query in parsed.texts for star in query.tree.find_all(exp.Star)
    )


def columns_named(parsed: ParsedQuery, columns: Mapping[str, tuple[Column, ...]]) -> dict[str, tuple[Column, ...]]:
    """Those that it may use, for all that its text tells."""
    if any(query.unread for query in parsed.texts) or takes_all_columns(parsed) or _joins_by_name(parsed):
        return dict(columns)
    written = _identifiers(parsed)
    return {name: tuple(each for each in there if each.name.casefold() in written) for name, there in columns.items()}


def joined_by_name(
    parsed: ParsedQuery, added: Mapping[str, Collection[str]], columns: Mapping[str, Collection[str]]
) -> tuple[str, str] | None:
    """A source and a column that it got, by which a NATURAL join of the query may now join, too.

    `columns`: of all that it reads, as they are now. Other names of the text count as well: they may be columns of
    what stands in brackets.
    """
    if not _joins_by_name(parsed):
        return None
    written = _identifiers(parsed)
    read = Counter(table.name.casefold() for query in parsed.texts for table in query.tree.find_all(exp.Table))
    for source, names in added.items():
        elsewhere = {name.casefold() for other, there in columns.items() if other != source for name in there}
        for name in names:
            if name.casefold() in written | elsewhere or read[source.casefold()] > 1:
                return source, name
    return None


def _joins_by_name(parsed: ParsedQuery) -> bool:
    joins = (join for query in parsed.texts for join in query.tree.find_all(exp.Join))
    return any(join.method.upper() == "NATURAL" for join in joins)


def _identifiers(parsed: ParsedQuery) -> set[str]:
    return {each.name.casefold() for query in parsed.texts for each in query.tree.find_all(exp.Identifier)}
