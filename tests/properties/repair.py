"""Makes a query of one from which something was taken: what names a column that is gone names another one.

Where a column of the same type is in scope it takes the place, or else a NULL of that type; both are tried, because
beside GROUP BY not every column will do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.properties.scope import Fields, Known, fields_of, with_cte
from tests.properties.tree import (
    Call,
    Derived,
    Exploded,
    Item,
    Join,
    Named,
    Order,
    Pivoted,
    Query,
    Recursion,
    Ref,
    Relation,
    Scalar,
    Select,
    SetOperation,
    Values,
    Window,
    With,
    outputs,
)
from tests.properties.types import spark_type


def repaired(query: Query, known: Known, outer: Fields = (), *, by_columns: bool = True) -> Query:
    """The query with nothing in it that names what is not there."""
    match query:
        case With():
            ctes = []
            for cte in query.ctes:
                if isinstance(cte, Recursion):
                    inside = with_cte(known, cte)
                    anchor = repaired(cte.anchor, known, by_columns=by_columns)
                    step = repaired(cte.step, inside, by_columns=by_columns)
                    cte = replace(cte, anchor=anchor, step=step)
                else:
                    cte = replace(cte, query=repaired(cte.query, known, by_columns=by_columns))
                known = with_cte(known, cte)
                ctes.append(cte)
            return replace(query, ctes=tuple(ctes), body=repaired(query.body, known, outer, by_columns=by_columns))
        case SetOperation():
            left = repaired(query.left, known, outer, by_columns=by_columns)
            right = repaired(query.right, known, outer, by_columns=by_columns)
            return replace(query, left=left, right=right)
        case Select():
            return _Repair(known, outer, by_columns).select(query)


class _Repair:
    def __init__(self, known: Known, outer: Fields, by_columns: bool) -> None:
        self.known, self.outer, self.by_columns = known, outer, by_columns

    def select(self, query: Select) -> Select:
        source = self.relation(query.source, self.outer) if query.source is not None else None
        fields = fields_of(source, self.known) if source is not None else ()
        items = tuple(Item(self.scalar(item.value, fields), item.name) for item in query.items)
        named = (*fields, *outputs(replace(query, items=items)))
        order = tuple(each for each in query.order if not isinstance(each.by, Ref) or _find(each.by, named) is not None)
        return replace(
            query,
            source=source,
            items=items,
            where=self.each(query.where, fields),
            having=self.each(query.having, named),
            qualify=self.each(query.qualify, named),
            grouping=query.grouping and replace(query.grouping, keys=self.each(query.grouping.keys, fields)),
            order=order,
            limit=query.limit if order else None,
            offset=query.offset if order else 0,
        )

    def relation(self, relation: Relation, beside: Fields) -> Relation:
        match relation:
            case Named():
                if relation.name in self.known:
                    return relation
                return replace(relation, name=next(iter(self.known)))
            case Derived():
                outer = beside if relation.lateral else ()
                query = repaired(relation.query, self.known, outer, by_columns=self.by_columns)
                return replace(relation, query=query)
            case Values():
                return relation
            case Pivoted():
                query = repaired(relation.query, self.known, (), by_columns=self.by_columns)
                names = {each.name for each in outputs(query)}
                is_whole = {relation.of.name, relation.by.name} <= names
                return replace(relation, query=query) if is_whole else Derived(query, relation.alias)
            case Exploded():
                inside = self.relation(relation.input, beside)
                return replace(relation, input=inside, array=self.scalar(relation.array, fields_of(inside, self.known)))
            case Join():
                left = self.relation(relation.left, beside)
                right = self.relation(relation.right, (*beside, *fields_of(left, self.known)))
                both = (*fields_of(left, self.known), *fields_of(right, self.known))
                return replace(relation, left=left, right=right, on=self.each(relation.on, both))

    def each(self, scalars: tuple[Scalar, ...], fields: Fields) -> tuple[Scalar, ...]:
        return tuple(self.scalar(each, fields) for each in scalars)

    def scalar(self, value: Any, fields: Fields) -> Any:
        match value:
            case Ref():
                return self.column(value, fields)
            case Call():
                return replace(value, parts=tuple(self.scalar(part, fields) for part in value.parts))
            case Window():
                return Window(
                    self.scalar(value.function, fields),
                    self.each(value.partition, fields),
                    tuple(Order(self.scalar(each.by, fields), each.how) for each in value.order),
                    value.frame,
                )
            case _:
                return repaired(value, self.known, fields, by_columns=self.by_columns)

    def column(self, ref: Ref, fields: Fields) -> Scalar:
        found = _find(ref, (*fields, *self.outer))
        if found is not None:
            return ref
        if self.by_columns:
            # Of a type as it was, but for what an expression made of it.
            same = next((field for field in fields if spark_type(field.type) == spark_type(ref.type)), None)
            if same is not None:
                return same
        return Call(f"CAST(NULL AS {spark_type(ref.type).upper()})", ref.type)


def _find(ref: Ref, fields: Fields) -> Ref | None:
    return next((field for field in fields if (field.table, field.name) == (ref.table, ref.name)), None)
