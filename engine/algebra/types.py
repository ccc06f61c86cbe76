"""The few facts about Spark's types that exactness depends on."""

from __future__ import annotations

from dataclasses import dataclass

INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
FLOATS = frozenset(("float", "double"))


@dataclass(frozen=True)
class Decimal:
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


def parse_decimal(spelled: str) -> Decimal | None:
    """`decimal(12,2)` as numbers; None for any other type."""
    if not spelled.startswith("decimal("):
        return None
    precision, _, scale = spelled.removeprefix("decimal(").removesuffix(")").partition(",")
    return Decimal(int(precision), int(scale or 0))


def is_integer(spelled: str) -> bool:
    return spelled in INTEGERS


def is_float(spelled: str) -> bool:
    return spelled in FLOATS


def has_float(spelled: str) -> bool:
    """Is there a floating-point number anywhere in values of this type?"""
    return any(name in spelled for name in FLOATS)


def is_orderable(spelled: str) -> bool:
    return not any(name in spelled for name in ("map<", "variant"))
