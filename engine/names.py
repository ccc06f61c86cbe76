"""What a source or a stream table may be called."""

from __future__ import annotations

from engine.errors import InvalidArgument

MAX_LENGTH = 128
RESERVED_PREFIX = "__trickle"

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_LETTERS_AND_DIGITS = _LETTERS | frozenset("0123456789")


def check_name(name: str) -> str:
    """`name` itself when it may be used; names become folder names, so nothing exotic is allowed."""
    if not name:
        raise InvalidArgument("a name is needed", hint="use letters, digits and _, starting with a letter or _")
    if "." in name and all(is_name(part) for part in name.split(".")):
        raise InvalidArgument(
            f"the name {name} has a schema in front",
            hint=f"stream tables and sources live in one namespace: use {name.split('.')[-1]}",
        )
    if not is_name(name):
        raise InvalidArgument(
            f"{name!r} is not a valid name",
            detail=f"at most {MAX_LENGTH} of the characters A-Z a-z 0-9 _, not starting with a digit",
            hint="choose another name",
        )
    if name.lower().startswith(RESERVED_PREFIX):
        raise InvalidArgument(
            f"names that start with {RESERVED_PREFIX} belong to Trickle",
            detail=f"the name was {name}",
            hint="choose another name",
        )
    return name


def is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_LENGTH and name[0] in _LETTERS and all(each in _LETTERS_AND_DIGITS for each in name)


def same_name(one: str, other: str) -> bool:
    """Names are compared without regard to case."""
    return one.lower() == other.lower()
