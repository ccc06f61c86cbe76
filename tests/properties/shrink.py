"""Smaller cases out of a case, as long as they still fail: large cuts first, then one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.properties.case import Case
from tests.properties.repair import repaired
from tests.properties.scope import known_tables
from tests.properties.shrink_data import fewer, fewer_steps, less_data, without_unused_tables
from tests.properties.tree import (
    Call,
    Cte,
    Derived,
    Exploded,
    Grouping,
    Item,
    Join,
    Named,
    Pivoted,
    Query,
    Recursion,
    Ref,
    Relation,
    Select,
    SetOperation,
    Values,
    Window,
    With,
    outputs,
    with_names,
)
from tests.properties.types import spark_type
from tests.properties.walk import rebuilt, walk

#: how often a case is cut, at most
TRIES_MAX = 2_500

LITERALS = {
    "int": "1", "bigint": "CAST(1 AS BIGINT)", "string": "'a'", "boolean": "TRUE", "double": "CAST(0.5 AS DOUBLE)",
    "decimal(8,2)": "CAST(1.25 AS DECIMAL(8,2))", "date": "DATE '2024-01-31'",
}  # fmt: skip


def shrink(case: Case, fails: Callable[[Case], bool], tries_max: int = TRIES_MAX) -> Case:
    """The smallest case found for which `fails` still says yes."""
    tries, start = 0, 0
    been = {case}
    while True:
        # What did not help before a cut seldom helps after it, so each round goes on where the last one ended.
        cuts = list(smaller(case))
        order = [*range(start, len(cuts)), *range(min(start, len(cuts)))]
        for place in order:
            if cuts[place] in been:
                continue
            tries += 1
            if tries > tries_max:
                return case
            if fails(cuts[place]):
                case, start = cuts[place], place
                been.add(case)
                break
        else:
            return case


def smaller(case: Case) -> Iterator[Case]:
    """Every case with one thing less."""
    yield from fewer_steps(case)
    known = known_tables(case)
    seen = {case.query.sql()}
    for cut in _simpler(case.query):
        for by_columns in (True, False):
            query = repaired(cut, known, by_columns=by_columns)
            text = query.sql()
            if text not in seen:
                seen.add(text)
                yield without_unused_tables(replace(case, query=query))
    yield from less_data(case)


# ---------------------------------------------------------------- queries


def _simpler(query: Query) -> Iterator[Query]:
    """The query with one thing less, somewhere in it. What named the thing may be left hanging."""
    yield from _queries_inside(query)
    yield from _fewer_outputs(query)
    yield from _cuts(query)


def _queries_inside(query: Query) -> Iterator[Query]:
    """Each query that is somewhere in it, alone; what was named before it comes along."""
    ctes = tuple(node for node in walk(query) if isinstance(node, Cte | Recursion))
    length = len(query.sql())
    for node in walk(query):
        if node is not query and isinstance(node, Select | SetOperation | With):
            used = {inner.name for inner in walk(node) if isinstance(inner, Named)}
            needed = tuple(cte for cte in ctes if cte.name in used)
            alone = With(needed, node) if needed else node
            if len(alone.sql()) < length:
                yield alone


def _cuts(value: Any) -> Iterator[Any]:
    if isinstance(value, Recursion):
        # Without its counter it might never end.
        for anchor in _cuts(value.anchor):
            yield replace(value, anchor=anchor)
        return
    yield from _own_cuts(value)
    for each in fields(value):
        part = getattr(value, each.name)
        if isinstance(part, tuple):
            for number, element in enumerate(part):
                if is_dataclass(element):
                    for cut in _cuts(element):
                        yield replace(value, **{each.name: (*part[:number], cut, *part[number + 1 :])})
        elif is_dataclass(part):
            for cut in _cuts(part):
                yield replace(value, **{each.name: cut})


def _own_cuts(value: Any) -> Iterator[Any]:
    match value:
        case Select():
            yield from _of_select(value)
        case SetOperation():
            yield value.left
            yield _named_as(value.right, value.left)
            if value.how != "UNION ALL":
                yield replace(value, how="UNION ALL")
        case With():
            yield from _of_with(value)
        case Cte():
            for query in _fewer_outputs(value.query):
                yield replace(value, query=query)
        case Join() | Derived() | Exploded() | Pivoted() | Values():
            yield from _of_relation(value)
        case Grouping():
            yield from _of_grouping(value)
        case Call() | Window():
            yield from _of_scalar(value)


def _of_select(query: Select) -> Iterator[Query]:
    plain = replace(query, distinct=False, order=(), limit=None, offset=0, named_window=False)
    if plain != query:
        yield plain
        yield replace(query, distinct=False)
        yield replace(query, offset=0)
        yield replace(query, named_window=False)
    if (
        isinstance(query.source, Derived)
        and not query.source.lateral
        and len(query.items) == len(outputs(query.source.query))
    ):
        yield _named_as(query.source.query, query)
    for name in ("where", "having", "qualify"):
        conditions = getattr(query, name)
        for number in range(len(conditions)):
            yield replace(query, **{name: conditions[:number] + conditions[number + 1 :]})
    if query.grouping is not None:
        for key in query.grouping.keys:
            yield _without_key(query, key)
        if not query.having and not query.qualify:
            # Without groups, each aggregate gives way to what it is computed from.
            items = tuple(Item(_inside(item.value), item.name) for item in query.items)
            yield replace(query, grouping=None, items=items)


def _inside(value: Any) -> Any:
    inner = next((node for node in walk(value) if isinstance(node, Ref)), None)
    return inner if inner is not None and inner.type == value.type else _literal(value.type)


def _without_key(query: Select, key: Any) -> Select:
    """One key less; where it was shown there is a constant now."""
    assert query.grouping is not None
    constant = _literal(key.type)

    def change(node: Any) -> Any:
        return constant if node == key else node

    keys = tuple(each for each in query.grouping.keys if each != key)
    grouping = Grouping(keys) if query.grouping.sets else replace(query.grouping, keys=keys, before=0)
    if not keys:
        grouping = Grouping(())
    return replace(query, items=rebuilt(query.items, change), having=rebuilt(query.having, change), grouping=grouping)


def _of_grouping(grouping: Grouping) -> Iterator[Grouping]:
    if grouping.how:
        yield Grouping(grouping.keys)
    if grouping.spelled:
        yield replace(grouping, spelled="")
    for number in range(len(grouping.sets)):
        if len(grouping.sets) > 1:
            yield replace(grouping, sets=grouping.sets[:number] + grouping.sets[number + 1 :])


def _of_with(query: With) -> Iterator[Query]:
    yield query.body
    if not query.ctes:
        return
    for number, cte in enumerate(query.ctes):
        rest = query.ctes[:number] + query.ctes[number + 1 :]
        yield replace(query, ctes=rest)
        match cte:
            case Recursion():
                anchor = Cte(cte.name, with_names(cte.anchor, tuple(column.name for column in cte.columns)))
                yield replace(query, ctes=(*query.ctes[:number], anchor, *query.ctes[number + 1 :]))
            case Cte():

                def inlined(node: Any, cte: Cte = cte) -> Any:
                    named = isinstance(node, Named) and node.name == cte.name
                    return Derived(cte.query, node.alias) if named else node

                yield rebuilt(replace(query, ctes=rest), inlined)


def _of_relation(relation: Relation) -> Iterator[Relation]:
    match relation:
        case Join():
            yield relation.left
            yield relation.right
            if relation.how not in ("JOIN", "CROSS JOIN", ","):
                yield replace(relation, how="JOIN")
            for number in range(len(relation.on)):
                if len(relation.on) > 1:
                    yield replace(relation, on=relation.on[:number] + relation.on[number + 1 :])
        case Derived():
            match relation.query:
                case Select(source=Named() | Values() | Derived() as inner) if not relation.lateral:
                    yield inner
            if relation.lateral:
                yield replace(relation, lateral=False)
            for query in _fewer_outputs(relation.query):
                yield replace(relation, query=query)
        case Exploded():
            yield relation.input
        case Pivoted():
            yield Derived(relation.query, relation.alias)
            for choices in fewer(relation.choices):
                if choices:
                    yield replace(relation, choices=choices)
            for query in _fewer_outputs(relation.query):
                yield replace(relation, query=query)
        case Values():
            for rows in fewer(relation.rows):
                if rows:
                    yield replace(relation, rows=rows)


def _of_scalar(value: Call | Window) -> Iterator[Any]:
    constant = _literal(value.type)
    if value != constant and (isinstance(value, Window) or value.parts):
        yield constant
    if isinstance(value, Window):
        for name in ("partition", "order"):
            part = getattr(value, name)
            for number in range(len(part)):
                yield replace(value, **{name: part[:number] + part[number + 1 :]})
        if value.frame:
            yield replace(value, frame="")
        return
    for part in value.parts:
        if isinstance(part, Ref | Call | Window) and spark_type(part.type) == spark_type(value.type):
            yield part


def _literal(type_: str) -> Call:
    word = spark_type(type_)
    return Call(LITERALS.get(word, f"CAST(NULL AS {word.upper()})"), type_)


# ---------------------------------------------------------------- outputs


def _fewer_outputs(query: Query) -> Iterator[Query]:
    count = len(outputs(query))
    if count > 1:
        for number in range(count):
            yield _without_output(query, number)


def _without_output(query: Query, number: int) -> Query:
    match query:
        case Select():
            gone = query.items[number].name
            order = tuple(each for each in query.order if not isinstance(each.by, Ref) or each.by.name != gone)
            return replace(query, items=query.items[:number] + query.items[number + 1 :], order=order)
        case SetOperation():
            left, right = _without_output(query.left, number), _without_output(query.right, number)
            return replace(query, left=left, right=right)
        case With():
            return replace(query, body=_without_output(query.body, number))


def _named_as(query: Query, other: Query) -> Query:
    return with_names(query, tuple(column.name for column in outputs(other)))
