"""The few facts about Spark's types that exactness depends on."""

from __future__ import annotations

import re
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


def is_equal_the_same(spelled: str) -> bool:
    """Is a value of that type that equals another that very value? 0.0 equals -0.0, and `a` may equal `A`."""
    return not has_float(spelled) and "collate" not in spelled


def is_orderable(spelled: str) -> bool:
    return not any(name in spelled for name in ("map<", "variant"))


#: types that Delta does not store, where they stand in a spelling: field names come before a colon
_UNSTORABLE = re.compile(r"(?:^|[<,:])\s*(interval|time|geometry|geography|void)\b(?!:)|\bstring (collate) \w+")
#: Arrow has these, so that they can be read where somebody made Delta store them
_SPANS = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
#: delta-rs opens no table that has a column of these
_UNKNOWN_TO_DELTA_RS = ("time", "geometry", "geography")

#: what to write instead, by what `unstorable` gives
INSTEAD = {
    "interval": "make a number of it, such as timestampdiff(SECOND, a, b), or a text: CAST(… AS STRING)",
    "time": "make a text of it: CAST(… AS STRING)",
    "geometry": "store its bytes: st_asbinary(…)",
    "geography": "store its bytes: st_asbinary(…)",
    "void": "cast it to the type that it shall have",
    "collate": "take the collation off again: CAST(… AS STRING)",
}


def unstorable(spelled: str) -> str | None:
    """What of a type Delta does not store: 'interval', 'time', 'collate' …"""
    found = _UNSTORABLE.search(spelled)
    return None if found is None else found[1] or found[2]


def has_unreadable_changes(spelled: str) -> bool:
    """Of a source's column: can its values not be taken from a change as they are?"""
    return unstorable(spelled) is not None and not _SPANS.fullmatch(spelled)


def is_unknown_to_delta_rs(spelled: str) -> bool:
    return unstorable(spelled) in _UNKNOWN_TO_DELTA_RS
