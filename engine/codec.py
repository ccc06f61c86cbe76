"""Frozen dataclasses to plain JSON values and back, driven by their type hints.

The catalog, the refresh history and `--json` all write records this way, so a record looks the same
wherever it is met: field names as in engine/records.py, times as ISO 8601 in UTC, enums as their text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Decoder = Callable[[Any], Any]


class MalformedRecord(ValueError):
    """Text that is not the record it should be; whoever reads it knows which file that concerns."""


def to_plain(value: Any) -> Any:
    """`value` built of dicts, lists, strings, numbers, booleans and None only."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_plain(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def dumps(value: Any) -> str:
    """`value` as one line of compact JSON."""
    return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def from_plain(kind: type[T], plain: Any) -> T:
    """The record of type `kind` that `to_plain` turned into `plain`."""
    try:
        return cast(T, _decoder(cast(Hashable, kind))(plain))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedRecord(f"not a {kind.__name__}: {error}") from error


def loads(kind: type[T], text: str) -> T:
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise MalformedRecord(f"not JSON: {error}") from error
    return from_plain(kind, plain)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


@cache
def _decoder(hint: Any) -> Decoder:
    """The function that reads a value of type `hint`; made once per type."""
    if hint is Any:
        return _as_is
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _optional(arguments)
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda plain: tuple(item(each) for each in plain)
    if origin is dict:
        item = _decoder(arguments[1])
        return lambda plain: {key: item(each) for key, each in plain.items()}
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    if hint is float:
        return _number
    if hint in (str, int, bool):
        return _exactly(hint)
    raise TypeError(f"no decoder for {hint!r}")


def _as_is(plain: Any) -> Any:
    return plain


def _number(plain: Any) -> float:
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"{plain!r} is no number")
    return float(plain)


def _exactly(kind: type) -> Decoder:
    def decode(plain: Any) -> Any:
        if type(plain) is not kind:
            raise TypeError(f"{plain!r} is no {kind.__name__}")
        return plain

    return decode


def _optional(arguments: tuple[Any, ...]) -> Decoder:
    kinds = [each for each in arguments if each is not NoneType]
    if len(kinds) != 1 or len(arguments) != 2:
        raise TypeError(f"no decoder for a union of {arguments!r}")
    item = _decoder(kinds[0])
    return lambda plain: None if plain is None else item(plain)


def _record(kind: type) -> Decoder:
    hints = get_type_hints(kind)
    decoders = [(each.name, _decoder(hints[each.name])) for each in fields(kind)]
    required = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}

    def decode(plain: Any) -> Any:
        # A field that an older program did not know takes its default; one of a newer program is left out.
        missing = required - plain.keys()
        if missing:
            raise KeyError(f"{min(missing)} is missing")
        return kind(**{name: item(plain[name]) for name, item in decoders if name in plain})

    return decode
