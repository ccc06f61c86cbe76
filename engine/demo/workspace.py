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
from engine.results import CreateResult
from engine.workspace import Workspace


@contextmanager
def open_demo(folder: Path, pause_s: float = 1.0) -> Iterator[Workspace]:
    """The workspace with its sources known to it, and the writer at work for as long as the context lasts."""
    with suppress(AlreadyExists):
        Engine.init(folder, name="shop")
    workspace = Workspace.find(folder)
    with writer_process(lake_of(workspace), workspace.logs / "writer.log", pause_s):
        with Engine.open(workspace.root) as engine:
            for shape in TABLES:
                with suppress(AlreadyExists):
                    engine.add_source(shape.name, str(lake_of(workspace) / shape.name), key=shape.key)
        yield workspace


def lake_of(workspace: Workspace) -> Path:
    """The sources lie beside Trickle's own folder: they belong to the shop."""
    return workspace.root / "lake"


def create_stream_tables(engine: Engine) -> Iterator[tuple[Definition, CreateResult]]:
    """Those that do not exist yet, one after the other; Spark must be ready or on its way."""
    engine.wait_for_spark()
    for definition in DEFINITIONS:
        yield (
            definition,
            engine.create_stream_table_if_not_exists(
                definition.name, definition.query.strip(), schedule=definition.schedule
            ),
        )
