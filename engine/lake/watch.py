"""Wakes the scheduler when a table gets a commit: by the file system's own notice, by looking where it gives none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from engine.errors import TrickleError
from engine.lake import log as table_log
from engine.lake.heads import HeadReader

log = logging.getLogger(__name__)

DEBOUNCE_MS = 10
POLL_S = 1.0


class Watcher:
    """Calls back with a table's name, from a thread of its own, soon after each of its commits."""

    def __init__(self, on_commit: Callable[[str], None], poll_s: float = POLL_S) -> None:
        self._on_commit = on_commit
        self._poll_s = poll_s
        self._lock = threading.Lock()
        self._paths: dict[str, str] = {}
        #: the version last told or found, by name
        self._seen: dict[str, int] = {}
        self._closed = threading.Event()
        #: set to make the watching thread begin again with other folders
        self._changed = threading.Event()
        self._watching: threading.Thread | None = None
        self._polling: threading.Thread | None = None

    def add(self, name: str, path: str) -> None:
        """Watch a table. Its folder may appear, vanish and come back; a commit is seen in any case."""
        with self._lock:
            if self._paths.get(name) == path:
                return
            self._paths[name] = path
            self._begin()
        self._changed.set()

    def remove(self, name: str) -> None:
        with self._lock:
            if self._paths.pop(name, None) is None:
                return
        self._changed.set()

    def watch_only(self, paths: Collection[str]) -> None:
        """Tables that go by their places; what is watched besides no longer is."""
        with self._lock:
            gone = self._paths.keys() - set(paths)
        for path in gone:
            self.remove(path)
        for path in paths:
            self.add(path, path)

    def close(self) -> None:
        self._closed.set()
        self._changed.set()
        for thread in (self._watching, self._polling):
            if thread is not None and thread is not threading.current_thread():
                thread.join(timeout=1.0)

    def _begin(self) -> None:
        if self._watching is None:
            self._watching = threading.Thread(target=self._watch, name="watch-commits", daemon=True)
            self._watching.start()
            self._polling = threading.Thread(target=self._poll, name="poll-commits", daemon=True)
            self._polling.start()

    def _folders(self) -> dict[Path, set[str]]:
        """Watchable log folders, and the tables behind each."""
        with self._lock:
            paths = dict(self._paths)
        folders: dict[Path, set[str]] = {}
        for name, path in paths.items():
            if table_log.local_path(path) is not None:
                folder = table_log.log_folder(path)
                if folder.is_dir():
                    folders.setdefault(folder.resolve(), set()).add(name)
        return folders

    def _watch(self) -> None:
        from watchfiles import Change, watch

        def is_commit(change: Change, path: str) -> bool:
            return change is Change.added and path.endswith(".json") and Path(path).stem.isdigit()

        while not self._closed.is_set():
            self._changed.clear()
            folders = self._folders()
            if not folders:
                self._changed.wait(self._poll_s)
                continue
            try:
                for changes in watch(
                    *folders,
                    watch_filter=is_commit,
                    debounce=DEBOUNCE_MS,
                    step=DEBOUNCE_MS,
                    stop_event=self._changed,
                    rust_timeout=200,
                    recursive=False,
                ):
                    for path in sorted(Path(path) for _, path in changes):
                        for name in folders.get(path.parent, ()):
                            self._seen[name] = int(path.stem)
                    for name in sorted({name for _, path in changes for name in folders[Path(path).parent]}):
                        self._tell(name)
            except OSError:
                # a folder went away between listing and watching, or the system has no watches left
                log.warning("watching the tables' folders failed; looking at them instead", exc_info=True)
                self._closed.wait(self._poll_s)

    def _poll(self) -> None:
        """What cannot be watched is looked at; and what can be, seldom, in case a notice was lost."""
        heads = HeadReader()
        watched: frozenset[Path] = frozenset()
        while not self._closed.wait(self._poll_s):
            folders = frozenset(self._folders())
            if folders != watched:
                # a folder appeared or vanished: the watching thread has to know
                watched = folders
                self._changed.set()
            with self._lock:
                paths = dict(self._paths)
            for name in set(self._seen) - set(paths):
                del self._seen[name]
            for name, path in paths.items():
                try:
                    version = heads.head(path).version
                except (TrickleError, OSError):
                    continue  # not there at the moment: whoever reads it says so
                known = self._seen.get(name)
                self._seen[name] = version
                if known is not None and known != version:
                    self._tell(name)

    def _tell(self, name: str) -> None:
        if self._closed.is_set():
            return
        try:
            self._on_commit(name)
        except Exception:
            # a listener's bug must not blind the watcher
            log.exception("the listener for commits failed")
