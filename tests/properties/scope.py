"""Which columns can be named where: in a query, of a relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.properties.case import Case
from tests.properties.tree import (
    Cte,
    Derived,
    Exploded,
    Join,
    Named,
    Pivoted,
    Recursion,
    Ref,
    Relation,
    Values,
    outputs,
)

Fields = tuple[Ref, ...]
#: the columns of each relation that can be named
Known = Mapping[str, Fields]


def known_tables(case: Case) -> dict[str, Fields]:
    return {table.name: tuple(Ref("", c.name, c.type) for c in table.columns) for table in case.tables}


def with_cte(known: Known, cte: Cte | Recursion) -> dict[str, Fields]:
    columns = cte.columns if isinstance(cte, Recursion) else outputs(cte.query)
    return {**known, cte.name: columns}


def fields_of(relation: Relation, known: Known) -> Fields:
    """What a SELECT can name of its FROM."""
    match relation:
        case Named():
            return _under(relation.alias, known.get(relation.name, ()))
        case Derived():
            return _under(relation.alias, outputs(relation.query))
        case Values() | Pivoted():
            return relation.columns
        case Exploded():
            return (*fields_of(relation.input, known), relation.column)
        case Join():
            left, right = fields_of(relation.left, known), fields_of(relation.right, known)
            if relation.how in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
                return left
            mine = {field.name for field in left}
            shared = relation.using if not relation.natural else tuple(f.name for f in right if f.name in mine)
            common = tuple(replace(field, table="") for field in left if field.name in shared)
            return common + tuple(field for field in (*left, *right) if field.name not in shared)


def _under(alias: str, columns: Fields) -> Fields:
    return tuple(replace(column, table=alias) for column in columns)
