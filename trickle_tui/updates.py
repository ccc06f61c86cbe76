"""The threads behind the screen: one that keeps the picture fresh, one for each request.

All are daemons, so that quitting never waits for a refresh, a query or Spark. Requests for a new picture
are coalesced: however many events arrive, at most `_BUSIEST_HZ` pictures a second are built.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from textual.message import Message

from engine.errors import InternalError, TrickleError
from trickle_tui import themes
from trickle_tui.bridge import Bridge
from trickle_tui.messages import RequestFinished, SnapshotFailed, SnapshotReady, ThemesChanged
from trickle_tui.snapshot import Answer, Request, Sample, Snapshot

_PERIOD_S = 1.0
_BUSIEST_HZ = 10
#: ten minutes of staleness, one sample a second
_SAMPLES = 600


class Updates:
    """Posts a snapshot each second, and soon after anything happened."""

    def __init__(self, bridge: Bridge, post: Callable[[Message], object], theme_folders: Sequence[Path] = ()) -> None:
        self._bridge = bridge
        self._post = post
        self._theme_folders = tuple(theme_folders)
        self._theme_stamp = themes.stamp(self._theme_folders)
        self._samples: dict[str, deque[Sample]] = {}
        self._focus: str | None = None
        self._due = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        self._bridge.subscribe(self.wake)
        threading.Thread(target=self._run, name="dashboard updates", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._due.set()

    def wake(self) -> None:
        """Something changed: build a picture soon. Any thread may call it, any number of times."""
        self._due.set()

    def watch(self, name: str | None) -> None:
        """The history of this stream table travels with the next pictures."""
        if name != self._focus:
            self._focus = name
            self.wake()

    def submit(self, request: Request) -> None:
        """Have a request done in a thread of its own; its result comes back as `RequestFinished`."""
        threading.Thread(target=self.perform, args=(request,), name=f"dashboard {request}", daemon=True).start()

    def snapshot(self) -> Snapshot:
        """Build a picture now, in the caller's thread."""
        snapshot = self._bridge.snapshot(self._focus)
        self._remember(snapshot)
        focus = snapshot.focus
        if focus is None:
            return snapshot
        seen = tuple(self._samples.get(focus.name, ()))
        return replace(snapshot, focus=replace(focus, staleness=focus.staleness or seen))

    def _remember(self, snapshot: Snapshot) -> None:
        names = {table.name for table in snapshot.overview.tables}
        for gone in self._samples.keys() - names:
            del self._samples[gone]
        for table in snapshot.overview.tables:
            if table.staleness_s is not None:
                samples = self._samples.setdefault(table.name, deque(maxlen=_SAMPLES))
                samples.append(Sample(snapshot.overview.at, table.staleness_s))

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._due.wait(_PERIOD_S)
            self._due.clear()
            if self._stopped.is_set():
                return
            try:
                self._post(SnapshotReady(self.snapshot()))
            except TrickleError as error:
                self._post(SnapshotFailed(error))
            except Exception as error:  # the screen must outlive any fault of a reader
                self._post(SnapshotFailed(_unexpected(error)))
            self._reload_themes()
            self._stopped.wait(1 / _BUSIEST_HZ)

    def _reload_themes(self) -> None:
        try:
            stamp = themes.stamp(self._theme_folders)
        except OSError:
            # a file vanished between listing and looking; the next round sees the rest
            return
        if stamp != self._theme_stamp:
            self._theme_stamp = stamp
            self._post(ThemesChanged(themes.load(self._theme_folders)))

    def perform(self, request: Request, only_errors: bool = False) -> None:
        """Do a request in the caller's thread."""
        if self._stopped.is_set():
            return
        answer: Answer | None = None
        error: TrickleError | None = None
        try:
            answer = self._bridge.perform(request)
        except TrickleError as known:
            error = known
        except Exception as unknown:  # becomes a line on the screen, never a traceback over it
            error = _unexpected(unknown)
        if error is not None or not only_errors:
            self._post(RequestFinished(request, answer, error))
        self.wake()


def _unexpected(error: Exception) -> TrickleError:
    return InternalError(
        f"{type(error).__name__}: {error}",
        hint="this is a bug of Trickle; its log in .trickle/logs says more",
    )
