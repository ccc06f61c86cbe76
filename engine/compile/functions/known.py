"""All of Spark's own functions in one table, made from those of their families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.compile.functions import changing, rows, scalars
from engine.compile.functions.aggregates import AGGREGATES
from engine.compile.functions.model import Function, Kind, Volatility


def _all() -> Iterator[Function]:
    for family in scalars.FAMILIES.values():
        yield from (Function(name, Kind.SCALAR) for name in family)
    for reasons, kind, volatility in (
        (changing.STABLE, Kind.SCALAR, Volatility.STABLE),
        (changing.VOLATILE, Kind.SCALAR, Volatility.VOLATILE),
        (changing.VOLATILE_AGGREGATES, Kind.AGGREGATE, Volatility.VOLATILE),
        (changing.FORBIDDEN, Kind.SCALAR, Volatility.FORBIDDEN),
        (changing.STABLE_TABLES, Kind.TABLE, Volatility.STABLE),
        (changing.VOLATILE_TABLES, Kind.TABLE, Volatility.VOLATILE),
    ):
        yield from (Function(name, kind, volatility, why) for name, why in reasons.items())
    for names, kind in (
        ([name for name in AGGREGATES if name not in changing.VOLATILE_AGGREGATES], Kind.AGGREGATE),
        (rows.WINDOW, Kind.WINDOW),
        (rows.GENERATORS, Kind.GENERATOR),
        (rows.TABLES, Kind.TABLE),
        (rows.GROUPING, Kind.GROUPING),
    ):
        yield from (Function(name, kind) for name in names)


FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _all()}


def known(name: str) -> Function:
    """What is known of a function by its name, in lower case and without the qualifier of Spark's own."""
    return FUNCTIONS.get(name) or Function(
        name, Kind.UNKNOWN, Volatility.UNKNOWN, "is none of Spark's own, and nobody has declared it immutable"
    )


def kind(name: str) -> Kind:
    return known(name).kind


def volatility(name: str) -> Volatility:
    """By the name alone; `classify` looks at the arguments too."""
    return known(name).volatility


def is_forbidden(name: str) -> bool:
    return volatility(name) is Volatility.FORBIDDEN
