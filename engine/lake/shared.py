"""PySpark can hold one JVM per process: engines of one configuration share it, and all hear of its death."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import SparkUnavailable
from engine.lake.launch import Jvm

log = logging.getLogger(__name__)

_lock = threading.Lock()
#: at most one that lives
_all: list[SharedJvm] = []


@dataclass
class SharedJvm:
    jvm: Jvm
    wish: Mapping[str, str]
    #: its last words
    output: Path
    #: who is told when it ends by itself, which is who uses it
    users: set[Callable[[SharedJvm], None]] = field(default_factory=set)
    sessions: threading.local = field(default_factory=threading.local)


def acquire(
    wish: Mapping[str, str], output: Path, launch: Callable[[], Jvm], on_lost: Callable[[SharedJvm], None]
) -> SharedJvm:
    """The JVM of this process, launched if none lives; it is used until it is released."""
    with _lock:
        for dead in [each for each in _all if not each.jvm.alive()]:
            _bury(dead)
        if not _all:
            launched = SharedJvm(launch(), wish, output)
            _all.append(launched)
            threading.Thread(target=_watch, args=(launched,), name="spark-watch", daemon=True).start()
        shared = _all[0]
        if shared.wish != wish:
            raise SparkUnavailable(
                "This process already runs Spark with other settings.",
                hint="Close the other engine first, or give both the same [spark] settings.",
            )
        shared.users.add(on_lost)
        return shared


def release(shared: SharedJvm, on_lost: Callable[[SharedJvm], None]) -> None:
    """Its last user ends it."""
    with _lock:
        shared.users.discard(on_lost)
        if not shared.users:
            _bury(shared)


def _watch(shared: SharedJvm) -> None:
    shared.jvm.wait_for_death()
    with _lock:
        users = tuple(shared.users)
    # told before anything is cleared away, which takes a while
    for on_lost in users:
        on_lost(shared)
    code = shared.jvm.process.wait()
    if users:
        log.warning("Spark's JVM %d ended by itself with code %s", shared.jvm.pid, code)
    with _lock:
        _bury(shared)


def _bury(shared: SharedJvm) -> None:
    """Under the lock: PySpark must have forgotten this JVM before it hears of another."""
    if shared in _all:
        _all.remove(shared)
        shared.jvm.kill()
