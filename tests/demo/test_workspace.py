"""The demo goes on with what is there, and with what somebody took away."""

from __future__ import annotations

from pathlib import Path

from engine.demo.stream_tables import DEFINITIONS
from engine.demo.workspace import _wanted
from engine.engine import Engine
from engine.event_records import EventKind


def test_what_was_dropped_stays_away(tmp_path: Path) -> None:
    Engine.init(tmp_path / "shop")
    with Engine.open(tmp_path / "shop") as engine:
        assert _wanted(engine) == list(DEFINITIONS)
        engine._events.publish(EventKind.STREAM_TABLE_DROPPED, DEFINITIONS[0].name, "dropped")
        assert _wanted(engine) == list(DEFINITIONS[1:])
