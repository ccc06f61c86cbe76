"""Frontiers of what is read through other stream tables."""

from __future__ import annotations

from engine.lake import stamp
from engine.records import Frontier
from engine.refresh.plans import Relations


def base_of(chosen: Frontier, relations: Relations) -> Frontier:
    """The versions of the sources at the bottom, seen through the stream tables between."""
    base: Frontier = {}
    for name, version in chosen.items():
        located = relations.located(name)
        last = None
        if located.is_stream_table:
            last = stamp.last_stamp(located.path, version.version)
        base.update(last.stamp.base_frontier if last is not None else {name: version})
    return base
