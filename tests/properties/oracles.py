"""Other queries that must give the same rows as a query, so that it can be held against itself.

Partitions: of the rows for which a condition is true, false or NULL, each is in one part. Unoptimized: every condition
hides in a CASE, where no join finds its keys and no filter moves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.properties.case import Case
from tests.properties.features import Weights
from tests.properties.generator.queries import Generator
from tests.properties.scope import fields_of, known_tables
from tests.properties.tree import (
    Call,
    Derived,
    Item,
    Join,
    Query,
    Ref,
    Scalar,
    Select,
    Window,
    outputs,
)
from tests.properties.types import is_comparable
from tests.properties.walk import rebuilt, walk

#: cannot be hidden in a CASE: Spark looks for these comparisons to take a subquery apart
LEFT_OPEN = ("correlated", "correlated_inequality")


def partitions(case: Case, seed: int, chosen: Weights) -> tuple[Query, Query, Query] | None:
    """Three queries that add up to the case's; None where nothing can be asked of its rows."""
    generator = Generator(seed, chosen)
    query = case.query
    if _is_row_by_row(query) and generator.chance(0.5):
        assert isinstance(query, Select)
        assert query.source is not None
        fields = fields_of(query.source, known_tables(case))
        condition = generator.predicate(fields)
        return _three(lambda part: replace(query, where=(*query.where, part)), condition)
    columns = tuple(replace(each, table="q") for each in outputs(query))
    if not any(is_comparable(each.type) for each in columns):
        return None
    items = tuple(Item(column, column.name) for column in columns)
    source = Derived(query, "q")
    return _three(lambda part: Select(items, source, (part,)), generator.predicate(columns))


def _three(made: Any, condition: Scalar) -> tuple[Query, Query, Query]:
    return (
        made(condition),
        made(Call("(NOT {})", "boolean", (condition,))),
        made(Call("({} IS NULL)", "boolean", (condition,))),
    )


def _is_row_by_row(query: Query) -> bool:
    if not isinstance(query, Select) or query.source is None or query.grouping is not None:
        return False
    if query.distinct or query.limit is not None or query.qualify:
        return False
    return not any(isinstance(node, Window) for item in query.items for node in _without_queries(item.value))


def _without_queries(value: Scalar) -> list[Any]:
    return [node for node in walk(value) if not isinstance(node, Select)]


def unoptimized(query: Query) -> Query:
    """The same question, asked so that nothing can be made cheaper."""
    hidden: Query = rebuilt(query, _hidden)
    return _filtered_outside(hidden)


def _hidden(node: Any) -> Any:
    match node:
        case Select():
            return replace(
                node,
                where=tuple(map(_in_case, node.where)),
                having=tuple(map(_in_case, node.having)),
                qualify=tuple(map(_in_case, node.qualify)),
            )
        case Join():
            return replace(node, on=tuple(map(_in_case, node.on)))
        case _:
            return node


def _in_case(condition: Scalar) -> Scalar:
    if isinstance(condition, Call) and (condition.feature in LEFT_OPEN or not condition.parts):
        return condition
    return Call("(CASE WHEN {} THEN 1 ELSE 0 END = 1)", "boolean", (condition,))


def _filtered_outside(query: Query) -> Query:
    """A WHERE as one more column, by which the rows are chosen one level above."""
    if not _is_row_by_row(query):
        return query
    assert isinstance(query, Select)
    if not query.where:
        return query
    flags = tuple(
        Item(Call("CASE WHEN {} THEN 1 ELSE 0 END", "int", (each,)), f"f{number}")
        for number, each in enumerate(query.where)
    )
    inner = replace(query, items=(*query.items, *flags), where=())
    items = tuple(Item(Ref("q", item.name, item.value.type), item.name) for item in query.items)
    chosen = tuple(Call("({} = 1)", "boolean", (Ref("q", flag.name, "int"),)) for flag in flags)
    return Select(items, Derived(inner, "q"), chosen)
