"""What the verbs of an engine work with: one open workspace, and the parts that are built when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import config
from engine.catalog.lease import Lease
from engine.catalog.store import Catalog
from engine.clock import Clock
from engine.errors import ReadOnly
from engine.events import EventBus
from engine.lake.session import SparkHost
from engine.observe.history import History
from engine.records import StreamTable
from engine.workspace import Workspace

if TYPE_CHECKING:
    from engine.core import Core


class Opened:
    def __init__(self, workspace: Workspace, settings: config.Settings, catalog: Catalog, clock: Clock) -> None:
        self.workspace = workspace
        self.settings = settings
        self._catalog = catalog
        self._clock = clock
        self._history = History(workspace.history)
        self._events = EventBus(catalog.append_event, clock)
        self._lease = Lease(catalog, clock, settings.scheduler.lease_timeout_s)
        self._host = SparkHost(settings, workspace.logs)
        self._built: Core | None = None

    @property
    def read_only(self) -> bool:
        return self._catalog.read_only

    @property
    def _core(self) -> Core:
        """The compiler and what runs refreshes: not needed for a first look at a workspace, so built when used."""
        if self._built is None:
            from engine.core import Core
            from engine.refresh.ledger import Ledger

            ledger = Ledger(
                self._catalog,
                self._history,
                self._events,
                self._clock,
                self.settings.refresh.max_consecutive_errors,
            )
            self._built = Core.build(
                self._catalog,
                self._host,
                self._history,
                self._events,
                ledger,
                self.settings,
                self._clock,
                self._lease,
                self.workspace,
            )
        return self._built

    @property
    def _writing(self) -> Core:
        if self.read_only:
            raise ReadOnly("this engine was opened read-only", hint="open it without --read-only")
        return self._core

    def stream_table(self, name: str) -> StreamTable:
        return self._catalog.get_stream_table(name)

    def _ready(self) -> Core:
        """The same as `_core`, once Spark can compute."""
        self._host.start()
        self._host.wait_ready()
        return self._core
