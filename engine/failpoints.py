"""Places where a test lets a refresh fail, stall or die. In the product nothing is armed and each costs one look.

A failpoint stands between two steps whose order matters, or around the one step that cannot be taken back. What
recovers from a crash at each of them recovers from any crash: between two failpoints nothing lasting happens.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from engine.errors import CommitConflict, InvalidArgument


class Failpoint(StrEnum):
    """In the order in which they are passed."""

    # create
    FOLDER_MADE = "folder made"
    CATALOGUED = "catalogued"
    # alter: the definition is another one, the rows are not yet
    ALTERED = "altered"
    # looking at what is polled: it is known what differs; the copy has it, and nobody noted that
    LOOKED = "looked"
    POLLED = "polled"
    # rename: the catalog has the new name, history and definition not yet
    RENAMED = "renamed"
    HISTORY_RENAMED = "history renamed"
    # maintain
    COMPACTED = "compacted"
    CHECKPOINTED = "checkpointed"
    # refresh
    TARGET_READ = "target read"
    SOURCES_CHOSEN = "sources chosen"
    CHANGES_SUMMED_UP = "changes summed up"
    CHANGES_READ = "changes read"
    COMPUTED = "computed"
    #: around the commit
    COMMIT = "commit"
    COMMITTED = "committed"
    PROGRESS_SAVED = "progress saved"
    HISTORY_WRITTEN = "history written"
    # DML: the source is another one, what reads it is not yet
    SOURCE_CHANGED = "source changed"
    #: around the commit that takes it back
    UNDO = "undo"
    UNDONE = "undone"
    # drop
    SET_ASIDE = "set aside"
    FORGOTTEN = "forgotten"
    REMOVED = "removed"


class Action(StrEnum):
    #: an error of a kind that is tried again
    RAISE = "raise"
    #: it happened, and is reported as failed: what a lost answer of a store looks like
    AMBIGUOUS = "ambiguous"
    #: the process ends as it stands; in a simulation everything above unwinds without being able to object
    CRASH = "crash"
    #: SIGKILL to this process
    KILL = "kill"
    #: SIGSTOP to this process: it goes on when somebody sends SIGCONT
    STALL = "stall"
    SLEEP = "sleep"


#: what `SLEEP` takes
SLEEP_S = 0.2


class SimulatedCrash(BaseException):
    """Not an Exception: nothing may catch it and tidy up, as nothing may after a kill."""


@dataclass(frozen=True)
class Arming:
    #: None for whichever is passed
    point: Failpoint | None
    action: Action
    #: the first time that is 1
    at: int = 1


class Failpoints:
    """What is armed in this process, and how often each point was passed since."""

    def __init__(self) -> None:
        self._armed: tuple[Arming, ...] = ()
        self._watched = False
        self._lock = threading.Lock()
        self.passed: dict[Failpoint, int] = {}
        self.fired: list[Arming] = []
        #: called with each point that is passed while somebody watches
        self.on_pass: Callable[[Failpoint], None] = lambda point: None

    @contextmanager
    def armed(self, *armings: Arming) -> Iterator[Failpoints]:
        """For as long as the block runs; without arguments it only counts."""
        self._armed, self._watched, self.passed, self.fired = armings, True, {}, []
        try:
            yield self
        finally:
            self._armed, self._watched, self.on_pass = (), False, lambda point: None

    def arm_from(self, env: Mapping[str, str]) -> None:
        """`TRICKLE_FAILPOINTS="commit=kill, computed=sleep@2"`: for processes that a test starts."""
        text = env.get("TRICKLE_FAILPOINTS")
        if text:
            self._armed, self._watched = tuple(parse(item) for item in text.split(",")), True

    def reach(self, point: Failpoint) -> None:
        if self._watched:
            for arming in self._due(point):
                _act(arming.action, point)

    @contextmanager
    def around(self, point: Failpoint) -> Iterator[None]:
        """For the step that cannot be taken back: `ambiguous` lets it happen and says that it failed."""
        due = self._due(point) if self._watched else ()
        for arming in due:
            if arming.action is not Action.AMBIGUOUS:
                _act(arming.action, point)
        yield
        for arming in due:
            if arming.action is Action.AMBIGUOUS:
                raise injected(point)

    def _due(self, point: Failpoint) -> tuple[Arming, ...]:
        with self._lock:
            self.passed[point] = self.passed.get(point, 0) + 1
            counts = {point: self.passed[point], None: sum(self.passed.values())}
            due = tuple(each for each in self._armed if counts.get(each.point) == each.at)
            self.fired += due
        self.on_pass(point)
        return due


def parse(text: str) -> Arming:
    point, _, rest = text.partition("=")
    action, _, at = rest.partition("@")
    try:
        return Arming(Failpoint(point.strip()), Action(action.strip()), int(at or 1))
    except ValueError:
        raise InvalidArgument(
            f"{text.strip()!r} is no failpoint",
            detail=f"points: {', '.join(Failpoint)}; actions: {', '.join(Action)}",
            hint="write POINT=ACTION or POINT=ACTION@COUNT",
        ) from None


def injected(point: Failpoint) -> CommitConflict:
    return CommitConflict(f"a test lets it fail at {point.value!r}")


def _act(action: Action, point: Failpoint) -> None:
    match action:
        case Action.RAISE | Action.AMBIGUOUS:
            raise injected(point)
        case Action.CRASH:
            raise SimulatedCrash(point.value)
        case Action.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.STALL:
            os.kill(os.getpid(), signal.SIGSTOP)
        case Action.SLEEP:
            time.sleep(SLEEP_S)


FAILPOINTS = Failpoints()
