"""The demo's workspace: made once, continued ever after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.demo.process import writer_process
from engine.demo.rows import TABLES
from engine.demo.stream_tables import DEFINITIONS, Definition
from engine.engine import Engine
from engine.errors import AlreadyExists
from engine.event_records import EventKind
from engine.results import CreateResult
from engine.workspace import Workspace


@contextmanager
def open_demo(folder: Path, pause_s: float = 1.0) -> Iterator[tuple[Workspace, list[Definition]]]:
    """The workspace with its sources known to it and what it should have; the writer works as long as this lasts."""
    with suppress(AlreadyExists):
        Engine.init(folder, name="shop")
    workspace = Workspace.find(folder)
    with writer_process(lake_of(workspace), workspace.logs / "writer.log", pause_s):
        with Engine.open(workspace.root) as engine:
            for shape in TABLES:
                with suppress(AlreadyExists):
                    engine.add_source(shape.name, str(lake_of(workspace) / shape.name), key=shape.key)
            definitions = _wanted(engine)
        yield workspace, definitions


def lake_of(workspace: Workspace) -> Path:
    """The sources lie beside Trickle's own folder: they belong to the shop."""
    return workspace.root / "lake"


def _wanted(engine: Engine) -> list[Definition]:
    """The demo's stream tables, but for those that somebody dropped: they were meant to go."""
    dropped = {event.subject for event in engine.events(limit=100_000) if event.kind is EventKind.STREAM_TABLE_DROPPED}
    return [definition for definition in DEFINITIONS if definition.name not in dropped]


def create_stream_tables(engine: Engine, definitions: list[Definition]) -> Iterator[tuple[Definition, CreateResult]]:
    """Those that do not exist yet, one after the other; Spark must be ready or on its way."""
    engine.wait_for_spark()
    for definition in definitions:
        yield (
            definition,
            engine.create_stream_table_if_not_exists(
                definition.name, definition.query.strip(), schedule=definition.schedule
            ),
        )
