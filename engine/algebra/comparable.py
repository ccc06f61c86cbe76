"""What stands for a value where values are compared: Spark compares no maps, but sorted lists of their entries.

It does group by maps, and forgets which of their values are NULL (seen in 4.2.0).
"""

from __future__ import annotations

from sqlglot import exp

from engine.algebra.dialect import Spark4
from engine.algebra.scalars import Scalar, case, col, data_type, field, is_null, null, struct
from engine.algebra.types import is_orderable


def comparable(value: Scalar, type_: str) -> tuple[Scalar, str] | None:
    """A value that is equal to another's if and only if the two are, and its type; None for what has none."""
    if is_orderable(type_):
        return value, type_
    if "variant" in type_:
        return None
    return _compared(value, data_type(type_), 0)


def restored(value: Scalar, type_: str) -> Scalar:
    """The way back from what `comparable` made of a value of this type; a map has its entries in order then."""
    return value if is_orderable(type_) else _restored(value, data_type(type_), 0)


def comparable_sql(name: str, type_: str) -> str:
    """The same of a column, as Spark's SQL; a column whose values cannot be compared stands for itself."""
    found = comparable(col(name), type_)
    return (col(name) if found is None else found[0]).tree.sql(dialect=Spark4)


def _compared(value: Scalar, type_: exp.DataType, depth: int) -> tuple[Scalar, str]:
    spelled = _spelled(type_)
    if is_orderable(spelled):
        return value, spelled
    parts = type_.expressions
    item = exp.to_identifier(f"x{depth}")
    itself = Scalar(item.copy())
    match type_.this:
        case exp.DType.MAP:
            entries: exp.Expr = exp.Anonymous(this="map_entries", expressions=[value.tree.copy()])
            key, inner = field(itself, "key"), _compared(field(itself, "value"), parts[1], depth + 1)
            if not is_orderable(_spelled(parts[1])):
                entries = _each(entries, item, struct({"key": key, "value": inner[0]}))
            sorted_ = exp.ArraySort(this=entries)
            return Scalar(sorted_), f"array<struct<key:{_spelled(parts[0])},value:{inner[1]}>>"
        case exp.DType.ARRAY:
            made, inner_type = _compared(itself, parts[0], depth + 1)
            return Scalar(_each(value.tree.copy(), item, made)), f"array<{inner_type}>"
        case _:
            fields = {each.name: _compared(field(value, each.name), each.kind, depth) for each in parts}
            made = struct({name: inner for name, (inner, _) in fields.items()})
            inside = ",".join(f"{name}:{inner_type}" for name, (_, inner_type) in fields.items())
            return case((is_null(value), null()), otherwise=made), f"struct<{inside}>"


def _restored(value: Scalar, type_: exp.DataType, depth: int) -> Scalar:
    if is_orderable(_spelled(type_)):
        return value
    parts = type_.expressions
    item = exp.to_identifier(f"x{depth}")
    itself = Scalar(item.copy())
    match type_.this:
        case exp.DType.MAP:
            entries = value.tree.copy()
            inner = _restored(field(itself, "value"), parts[1], depth + 1)
            if not is_orderable(_spelled(parts[1])):
                entries = _each(entries, item, struct({"key": field(itself, "key"), "value": inner}))
            return Scalar(exp.Anonymous(this="map_from_entries", expressions=[entries]))
        case exp.DType.ARRAY:
            return Scalar(_each(value.tree.copy(), item, _restored(itself, parts[0], depth + 1)))
        case _:
            fields = {each.name: _restored(field(value, each.name), each.kind, depth) for each in parts}
            return case((is_null(value), null()), otherwise=struct(fields))


def _spelled(type_: exp.DataType) -> str:
    return type_.sql("spark").lower().replace(", ", ",").replace(": ", ":")


def _each(array: exp.Expr, item: exp.Identifier, made: Scalar) -> exp.Expr:
    function = exp.Lambda(this=made.tree.copy(), expressions=[item.copy()])
    return exp.Transform(this=array, expression=function)
