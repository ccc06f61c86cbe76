"""Looks into values that are made of dataclasses and tuples, and makes others of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any


@cache
def _parts_of(kind: type) -> tuple[str, ...] | None:
    return tuple(each.name for each in fields(kind)) if hasattr(kind, "__dataclass_fields__") else None


def walk(value: object) -> Iterator[Any]:
    """A value and every dataclass in it, outer ones first."""
    if isinstance(value, tuple):
        for each in value:
            yield from walk(each)
        return
    names = _parts_of(type(value))
    if names is not None:
        yield value
        for name in names:
            yield from walk(getattr(value, name))


def features_of(value: object) -> frozenset[str]:
    """What a query makes use of, in the words of `features.py`."""
    found: set[str] = set()
    for node in walk(value):
        found.update(getattr(node, "features", ()))
        found.add(getattr(node, "feature", ""))
    return frozenset(found - {""})


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same with every part changed, inner ones first."""
    if isinstance(value, tuple):
        return tuple(rebuilt(each, change) for each in value)
    names = _parts_of(type(value))
    if names is None:
        return value
    made = {name: rebuilt(getattr(value, name), change) for name in names}
    if any(made[name] is not getattr(value, name) for name in names):
        value = replace(value, **made)
    return change(value)
