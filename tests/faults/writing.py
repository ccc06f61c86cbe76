"""DML through Trickle with faults in its way: all follow it, or it has no net effect, or who cannot follow is late."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from engine.asked import Alteration
from engine.errors import ChangeKept, ChangeUndone, CommitConflict, TrickleError
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.records import Outcome, RefreshMode, State
from engine.refresh.status import status_of
from engine.results import WriteResult
from tests.faults.simulation import Broken, World
from tests.faults.troubles import BEFORE_COMMIT, REFRESH_POINTS, Tally
from tests.support.duck_compute import _cast, _files_of, _read


class Way(StrEnum):
    #: what becomes of the DML
    FOLLOWED = "followed"
    UNDONE = "undone"
    KEPT = "kept"
    #: nobody lives to see to it
    LEFT = "left"


@dataclass(frozen=True)
class Fault:
    way: Way
    armings: tuple[Arming, ...]
    #: does somebody else commit to the source as well?
    meanwhile: bool = False

    def __str__(self) -> str:
        said = ", ".join(f"{each.action} at {each.point}" for each in self.armings)
        return f"{said}{' and a foreign commit' if self.meanwhile else ''}: {self.way}"


def faults() -> tuple[Fault, ...]:
    failing = tuple(Arming(point, Action.RAISE) for point in (Failpoint.SOURCE_CHANGED, *REFRESH_POINTS))
    lost = Arming(Failpoint.COMMIT, Action.AMBIGUOUS)
    first = Arming(Failpoint.SOURCE_CHANGED, Action.RAISE)
    dying = (Failpoint.SOURCE_CHANGED, *REFRESH_POINTS)
    return (
        Fault(Way.FOLLOWED, ()),
        *(Fault(Way.UNDONE, (each,)) for each in (*failing, lost)),
        *(Fault(Way.KEPT, (each,), meanwhile=True) for each in failing if each.point in BEFORE_COMMIT),
        *(Fault(Way.LEFT, (Arming(point, Action.CRASH),)) for point in dying),
        Fault(Way.LEFT, (first, Arming(Failpoint.UNDO, Action.CRASH))),
        Fault(Way.LEFT, (first, Arming(Failpoint.UNDONE, Action.CRASH))),
        Fault(Way.UNDONE, (first, Arming(Failpoint.UNDO, Action.AMBIGUOUS))),
        Fault(Way.KEPT, (first, Arming(Failpoint.UNDO, Action.RAISE))),
    )


FAULTS = faults()
OF_UNDOING = tuple(fault for fault in FAULTS if len(fault.armings) > 1)


def live(world: World, tally: Tally, chance: random.Random) -> None:
    """All become IMMEDIATE, DML comes twice with a fault in its way, and all become again what they were."""
    if world.setup.polled:
        return  # of what is polled there is a copy, which nobody writes to
    modes = {name: world.table(name).refresh_mode for name in world.names}
    for name in world.names:
        alter(world, name, RefreshMode.IMMEDIATE)
    world.caught_up(f"{world.setup.about}, IMMEDIATE", Outcome.NO_DATA)
    # a refresh that begins anew by itself does not fail at what happens once
    likely = OF_UNDOING if world.setup.retries else FAULTS
    for fault in (chance.choice(likely), chance.choice(OF_UNDOING)):
        suffer(world, fault, tally)
    for name in reversed(world.names):
        alter(world, name, modes[name])


def alter(world: World, name: str, mode: RefreshMode) -> None:
    world.process.alterations.alter(name, Alteration(refresh_mode=mode))


def writable(world: World) -> str | None:
    """A source with a row to take out."""
    return next((name for name in world.table().sources if world.lake.count_of(name)), None)


def write(world: World, name: str, change: Callable[[], None] | None = None) -> WriteResult:
    """DML through Trickle: a row goes, unless told otherwise. The present is then what the source's files say."""

    def execute(said: str) -> None:
        world.sources[name].saying = said
        try:
            world.lake.take_out(name) if change is None else change()
            world._commit_changes()
        finally:
            world.sources[name].saying = None

    try:
        return world.process.writes.run(world.process.plans.relations.located(name), execute)
    finally:
        catch_up(world, name)


def catch_up(world: World, name: str) -> None:
    """Others wrote: the present is what the source's files say."""
    source = world.sources[name]
    source.catch_up()
    files = _files_of(str(source.path), source.version)
    columns = world.setup.relations[name]
    world.lake.replace(name, f"SELECT {_cast(columns)} FROM {_read(files)}" if files else "SELECT NULL WHERE false")


def suffer(world: World, fault: Fault, tally: Tally) -> None:
    name = writable(world)
    if name is None or (fault.meanwhile and world.lake.count_of(name) < 2):
        return
    where = f"{world.setup.about}, DML on {name}, {fault}"
    rows, version = rows_of(world, name), world.sources[name].version
    met: list[Failpoint] = []

    def meanwhile(point: Failpoint) -> None:
        if fault.meanwhile and not met and point is fault.armings[0].point:
            met.append(point)
            world.nudge_source(name)

    error: TrickleError | None = None
    died = False
    with FAILPOINTS.armed(*fault.armings) as points:
        points.on_pass = meanwhile
        try:
            write(world, name)
        except SimulatedCrash:
            died = True
            world.restart()
            catch_up(world, name)
        except TrickleError as raised:
            error = raised
        tally.passed.update(points.passed)
        tally.steps += len(points.fired)
        fired = len(points.fired) == len(fault.armings)
    way = fault.way if fired else Way.FOLLOWED
    _as_told(way, error, died, where)
    if way is Way.UNDONE and (rows != rows_of(world, name) or world.sources[name].version != version + 2):
        raise Broken(f"{where}: the source is not as it was")
    if way is Way.FOLLOWED:
        world.caught_up_already(where)
    if way is Way.KEPT and fault.armings[0].point is not Failpoint.SOURCE_CHANGED:
        late(world, where)
    world.check(where)
    world.caught_up(where, Outcome.DIFFERENTIAL, Outcome.NO_DATA)
    for each in world.names:
        if state_of(world, each) is not State.FRESH:
            raise Broken(f"{where}: in the end {each} is {state_of(world, each)}")


def _as_told(way: Way, error: TrickleError | None, died: bool, where: str) -> None:
    allowed: dict[Way, tuple[type[TrickleError], ...]] = {
        Way.UNDONE: (ChangeUndone, CommitConflict),
        Way.KEPT: (ChangeKept,),
    }
    fits = isinstance(error, allowed[way]) if way in allowed else error is None
    if not fits or died != (way is Way.LEFT):
        raise Broken(f"{where}: it came to {error!r}, died: {died}") from error


def late(world: World, where: str) -> None:
    """The first is, as it was in its refresh that the change could not be followed."""
    states = [state_of(world, name) for name in world.names]
    if State.LATE not in states:
        raise Broken(f"{where}: nobody is late, but {states}")


def state_of(world: World, name: str) -> State:
    table = world.table(name)
    progress = world.process.catalog.get_progress(table.id)
    return status_of(table, progress, (), None, (), world.clock.now()).state


def rows_of(world: World, name: str) -> list[tuple[object, ...]]:
    return sorted(world.lake.rows(f'SELECT * FROM "{name}"'), key=repr)
