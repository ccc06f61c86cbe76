"""What goes wrong, and where: one trouble at one point of a refresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import CommitConflict, NegativeMultiplicity, RefreshOvertaken, Tampered, TrickleError
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.records import Outcome
from tests.faults.simulation import FIRST, Broken, World


class Trouble(StrEnum):
    #: an error of a kind that is tried again
    FAILS = "fails"
    #: the process is gone, and another one comes
    DIES = "dies"
    #: it happened, and is reported as failed
    LOST_ANSWER = "lost answer"
    #: a stalled process is overtaken by another one, and goes on
    OVERTAKEN = "overtaken"
    #: the same, and then it dies
    OVERTAKEN_AND_DIES = "overtaken and dies"
    #: it is overtaken by a process that has more to do, and goes on working when this one is done
    LEFT_BEHIND = "left behind"
    #: another process recomputes the stream table meanwhile
    RECOMPUTED = "recomputed meanwhile"
    #: somebody maintains the stream table without changing a row
    TOUCHED = "touched"
    #: another process puts its files in order
    MAINTAINED = "maintained meanwhile"
    #: somebody else writes into the stream table
    MEDDLED = "meddled"
    #: the sources move on
    MORE_DATA = "more data"


#: those with which the sources move on
MORE_DATA = (Trouble.MORE_DATA, Trouble.LEFT_BEHIND)


@dataclass(frozen=True)
class Fault:
    trouble: Trouble
    point: Failpoint

    def __str__(self) -> str:
        return f"{self.trouble.value} at {self.point.value}"


CREATE_POINTS = (Failpoint.FOLDER_MADE, Failpoint.CATALOGUED)
DROP_POINTS = (Failpoint.SET_ASIDE, Failpoint.FORGOTTEN, Failpoint.REMOVED)
ALTER_POINTS = (Failpoint.ALTERED,)
#: DML through Trickle, and its undoing
WRITE_POINTS = (Failpoint.SOURCE_CHANGED, Failpoint.UNDO, Failpoint.UNDONE)
#: passed where a source is polled, before the others
POLL_POINTS = (Failpoint.LOOKED, Failpoint.POLLED)
RENAME_POINTS = (Failpoint.RENAMED, Failpoint.HISTORY_RENAMED)
MAINTAIN_POINTS = (Failpoint.COMPACTED, Failpoint.CHECKPOINTED)
_OTHERS = (
    *CREATE_POINTS, *DROP_POINTS, *ALTER_POINTS, *WRITE_POINTS, *RENAME_POINTS, *MAINTAIN_POINTS, *POLL_POINTS
)  # fmt: skip
REFRESH_POINTS = tuple(point for point in Failpoint if point not in _OTHERS)
#: those after which the refresh has happened, whatever becomes of it
AFTER_COMMIT = (Failpoint.COMMITTED, Failpoint.PROGRESS_SAVED, Failpoint.HISTORY_WRITTEN)
BEFORE_COMMIT = tuple(point for point in REFRESH_POINTS if point not in AFTER_COMMIT)

_ACTIONS = {
    Trouble.FAILS: Action.RAISE,
    Trouble.DIES: Action.CRASH,
    Trouble.LOST_ANSWER: Action.AMBIGUOUS,
}


def all_faults(*, polled: bool = True) -> tuple[Fault, ...]:
    points = (*POLL_POINTS, *REFRESH_POINTS) if polled else REFRESH_POINTS
    found = [Fault(trouble, point) for trouble in Trouble for point in points]
    return tuple(each for each in found if each.trouble is not Trouble.LOST_ANSWER or each.point is Failpoint.COMMIT)


def leaves_change_pending(fault: Fault) -> bool:
    return fault.trouble in (Trouble.FAILS, Trouble.DIES) and fault.point in (*POLL_POINTS, *BEFORE_COMMIT)


def in_common_first(fault: Fault) -> tuple[bool, int]:
    """Those that leave a change pending; of these those first after which it has yet to be looked at."""
    looks = POLL_POINTS.index(fault.point) if fault.point in POLL_POINTS else len(POLL_POINTS)
    return not leaves_change_pending(fault), looks


@dataclass
class Tally:
    """What was lived through."""

    worlds: int = 0
    steps: int = 0
    fired: Counter[Fault] = field(default_factory=Counter)
    passed: Counter[Failpoint] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.worlds += other.worlds
        self.steps += other.steps
        self.fired += other.fired
        self.passed += other.passed


@dataclass(frozen=True)
class Suffered:
    """How a refresh with a fault in its way ended."""

    happened: bool
    error: TrickleError | None = None
    died: bool = False


def suffer(world: World, fault: Fault, tally: Tally) -> Suffered:
    """One refresh of everything with a fault in its way; who died is started again."""
    action = _ACTIONS.get(fault.trouble)
    happened: list[bool] = []

    def interfere(point: Failpoint) -> None:
        if point is fault.point and not happened:
            happened.append(True)
            happened[0] = _interfere(world, fault.trouble)
            if fault.trouble is Trouble.OVERTAKEN_AND_DIES:
                raise SimulatedCrash(point.value)

    error, died = None, False
    with FAILPOINTS.armed(*([Arming(fault.point, action)] if action else ())) as points:
        if action is None:
            points.on_pass = interfere
        try:
            world.refresh()
        except SimulatedCrash:
            died = True
            world.restart()
        except TrickleError as raised:
            error = raised
        if fault.trouble is Trouble.LEFT_BEHIND and happened:
            world.change_roles()
        if points.fired or any(happened):
            tally.steps += 1
            tally.fired[fault] += 1
        tally.passed += Counter(points.passed)
        return Suffered(bool(points.fired) or any(happened), error, died)


def _interfere(world: World, trouble: Trouble) -> bool:
    match trouble:
        case Trouble.OVERTAKEN | Trouble.OVERTAKEN_AND_DIES:
            for name in world.names:
                world.rival.refresh(name)
        case Trouble.LEFT_BEHIND:
            world.nudge()
            for name in world.names:
                world.rival.refresh(name)
        case Trouble.RECOMPUTED:
            world.rival.refresh(FIRST, full=True)
        case Trouble.TOUCHED:
            world.touch_target()
        case Trouble.MAINTAINED:
            for name in world.names:
                world.rival.maintain(name)
        case Trouble.MORE_DATA:
            world.nudge()
        case Trouble.MEDDLED:
            return world.meddle()
    return True


def mended(world: World, where: str) -> None:
    """After somebody meddled: no refresh trusts the table, and recomputing it makes it right."""
    for _ in range(2):
        try:
            world.process.refresh(FIRST)
        except Tampered:
            continue
        raise Broken(f"{where}: a stream table with foreign rows was refreshed as if nothing was")
    done = world.process.refresh(FIRST, full=True)
    if done.outcome is not Outcome.REINITIALIZE:
        raise Broken(f"{where}: mending was {done.outcome}")


def expected_error(fault: Fault, error: TrickleError | None) -> bool:
    """A refresh may fail, but only by what was done to it."""
    if fault.trouble is Trouble.MEDDLED and isinstance(error, Tampered | NegativeMultiplicity):
        return True
    return error is None or isinstance(error, CommitConflict | RefreshOvertaken)


def in_turn(faults: Iterable[Fault], start: int, count: int) -> tuple[Fault, ...]:
    every = tuple(faults)
    return tuple(every[(start + number) % len(every)] for number in range(count))
