"""Lives of stream tables: created, refreshed with faults in the way, lost, found again, dropped."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import CommitConflict, SourceReplaced, TrickleError
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.records import Outcome
from tests.faults import writing
from tests.faults.simulation import FIRST, RENAMED, Broken, Remembered, Setup, World
from tests.faults.troubles import (
    AFTER_COMMIT,
    ALTER_POINTS,
    BEFORE_COMMIT,
    CREATE_POINTS,
    DROP_POINTS,
    MAINTAIN_POINTS,
    MORE_DATA,
    POLL_POINTS,
    RENAME_POINTS,
    Fault,
    Tally,
    Trouble,
    expected_error,
    in_common_first,
    leaves_change_pending,
    mended,
    suffer,
)
from tests.support.view_test import ViewTest


def of_test(
    test: ViewTest,
    *,
    by_spark: bool,
    chained: bool,
    recomputed: bool = False,
    by_files: bool = False,
    retries: int = 0,
    polled: bool = False,
) -> Setup:
    """A test that goes to the edge of a type would fall over it with more data."""
    at_the_edge = test.path.stem.startswith("overflow")
    rows = {table.name: table.rows for table in test.tables}
    steps = tuple(step.dml for step in test.steps)
    ways = {"by_spark": by_spark, "recomputed": recomputed, "chained": chained, "by_files": by_files, "polled": polled}
    return Setup(
        test.path.name, test.relations, rows, test.query, steps, at_the_edge=at_the_edge, retries=retries, **ways
    )


@contextmanager
def world_of(setup: Setup) -> Iterator[World]:
    """In memory where there is such a place."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="trickle-faults-", dir=memory if memory.is_dir() else None))
    world = World(folder, setup)
    try:
        yield world
    finally:
        world.close()
        shutil.rmtree(folder)


def live(setup: Setup, faults: tuple[Fault, ...], tally: Tally, seed: int = 0) -> None:
    """Every step of the setup, with as many faults as come in its way, and an end after each of which all is well."""
    chance = random.Random(seed)
    tally.worlds += 1
    with world_of(setup) as world:
        _born(world, tally, chance)
        waiting = list(faults)
        for number, dml in enumerate(setup.steps, start=1):
            where = f"{setup.about}, seed {seed}, step {number}"
            if chance.random() < 0.2:
                world.compact_sources()
            world.change_sources(dml)
            share = len(waiting) // (len(setup.steps) - number + 1)
            suffered, waiting = waiting[:share], waiting[share:]
            pending = True
            # those first that leave the change pending: they have it in common
            for fault in sorted(suffered, key=in_common_first):
                if fault.trouble in MORE_DATA and setup.at_the_edge:
                    continue
                if fault.point in POLL_POINTS and not setup.polled:
                    continue
                if not pending and not setup.at_the_edge:
                    world.nudge()
                _suffered(world, fault, f"{where}, {fault}", tally)
                pending = leaves_change_pending(fault)
            world.caught_up(where)
            _lost_and_found(world, where, chance)
        if not setup.at_the_edge:
            writing.live(world, tally, chance)
        _altered(world, tally, chance)
        _maintained(world, tally, chance)
        _renamed(world, tally, chance)
        _dead(world, tally, chance)


#: `ambiguous` is another thing than `raise` around the commit alone
ACTIONS = (Action.CRASH, Action.RAISE, Action.AMBIGUOUS)


def fails_at_any_moment(
    setup: Setup, tally: Tally, actions: Sequence[Action] = ACTIONS, steps: Collection[int] | None = None
) -> None:
    """In a refresh fails the 1st thing that is passed, the 2nd, … until none is left, each time in the same world.

    Every way to fail in every step, unless told which.
    """
    tally.worlds += 1
    with world_of(setup) as world:
        world.create()
        for number, dml in enumerate(setup.steps):
            world.change_sources(dml)
            if steps is not None and number not in steps:
                world.refresh()
                continue
            before = world.remembered()
            for action in actions:
                _fails_moment_by_moment(world, before, action, f"{setup.about}, step {number + 1}", tally)
        world.caught_up(f"{setup.about}, moment after moment", Outcome.NO_DATA)


def _fails_moment_by_moment(world: World, before: Remembered, action: Action, where: str, tally: Tally) -> None:
    point = Failpoint.COMMIT if action is Action.AMBIGUOUS else None
    for moment in itertools.count(1):
        world.go_back(before)
        if not _fails(world, Arming(point, action, moment), tally):
            # that was the refresh as it is without a fault, and the world goes on from it
            return
        world.check(f"{where}, {action} at moment {moment}")
        world.caught_up(f"{where}, {action} at moment {moment}")


def _fails(world: World, arming: Arming, tally: Tally) -> bool:
    """A refresh of everything; did anything happen to it?"""
    if arming.action is Action.CRASH:
        return _dies(world, arming, world.refresh, tally)
    error: TrickleError | None = None
    with FAILPOINTS.armed(arming) as points:
        try:
            world.refresh()
        except TrickleError as raised:
            error = raised
        tally.passed.update(points.passed)
        tally.steps += len(points.fired)
        if bool(points.fired) != isinstance(error, CommitConflict):
            raise Broken(f"{world.setup.about}: {arming} came to {error!r}") from error
        return bool(points.fired)


def _suffered(world: World, fault: Fault, where: str, tally: Tally) -> None:
    result = suffer(world, fault, tally)
    if not expected_error(fault, result.error):
        raise Broken(f"{where}: {result.error!r}") from result.error
    if fault.trouble is Trouble.MEDDLED and result.happened:
        mended(world, where)
    world.check(where)


def _lost_and_found(world: World, where: str, chance: random.Random) -> None:
    """Now and then something larger happens between two refreshes."""
    event = chance.randrange(8)
    if event in (3, 4, 5) and not world.table().sources:
        return
    if event in (4, 5) and world.setup.polled:
        return  # that is done to tables that somebody else writes
    match event:
        case 0:
            world.lose_catalog()
            world.process.repairs.all()
            world.caught_up(f"{where}, catalog lost")
        case 1:
            with world.later(days=20):
                done = world.refresh()
            if {each.strategy for each in done} != {"stamp"}:
                raise Broken(f"{where}: after 20 days the stamps were not renewed, but {done}")
            world.check(f"{where}, 20 days later")
        case 2:
            world.restart()
            world.caught_up(f"{where}, restarted")
        case 3:
            name = chance.choice(world.table().sources)
            world.replace_source(name)
            if world.settings.sources.block_source_ddl:
                _stopped(world, f"{where}, {name} replaced")
            else:
                refreshed_anew(world, f"{where}, {name} replaced")
        case 4:
            name = chance.choice(world.table().sources)
            world.sources[name].rewrite_newest()
            refreshed_anew(world, f"{where}, {name} rewritten")
        case 5:
            world.compact_sources()
            world.compact_sources()
            for source in world.sources.values():
                source.forget_history()
            refreshed_anew(world, f"{where}, history lost")


def refreshed_anew(world: World, where: str) -> None:
    """What was read can no longer be trusted, or not be followed: all is read anew, and says so."""
    world.forget_frontiers()
    done = world.process.refresh(FIRST)
    if done.outcome is not Outcome.REINITIALIZE:
        raise Broken(f"{where}: the outcome was {done.outcome}, {done.reason.text}")
    world.caught_up(where)


def _stopped(world: World, where: str) -> None:
    """Nothing is done about another table before somebody says so."""
    world.forget_frontiers()
    try:
        done = world.process.refresh(FIRST)
    except SourceReplaced:
        done = world.process.refresh(FIRST, full=True)
        if done.outcome is Outcome.FULL:
            world.caught_up(where)
            return
    raise Broken(f"{where}: the outcome was {done.outcome}, {done.reason.text}")


def _born(world: World, tally: Tally, chance: random.Random) -> None:
    """Dies while it is created, at each point in turn, until it is there."""
    points = [*CREATE_POINTS, *chance.sample((*BEFORE_COMMIT, *AFTER_COMMIT), 2), None]
    for point in points:
        where = f"{world.setup.about}, creation dies at {point}"
        died = _dies(world, Arming(point, Action.CRASH), world.create, tally) if point else _lives(world.create)
        world.process.repairs.all()
        if not died and point is not None and point in CREATE_POINTS:
            raise Broken(f"{where}: the point was not reached")
        if len(world.process.catalog.stream_tables()) == len(world.names):
            break
    world.caught_up("created", Outcome.FULL, Outcome.NO_DATA, Outcome.DIFFERENTIAL)


def _altered(world: World, tally: Tally, chance: random.Random) -> None:
    """Dies while it gets another query, which the next one fulfils or gives it again; then it gets its own back."""
    own = world.table().query
    wider = f"SELECT q.*, 1 AS one_more FROM ({own}) AS q"
    point = chance.choice((*ALTER_POINTS, *ALTER_POINTS, Failpoint.COMMIT, *AFTER_COMMIT))
    where = f"{world.setup.about}, altering dies at {point}"
    if not _dies(world, Arming(point, Action.CRASH), lambda: world.alter(wider), tally):
        raise Broken(f"{where}: the point was not reached")
    world.process.repairs.all()
    done = world.process.refresh(FIRST)
    if world.table().query != wider or done.outcome not in (Outcome.REINITIALIZE, Outcome.NO_DATA):
        raise Broken(f"{where}: the next refresh was {done.outcome}, {done.reason.text}")
    world.same_as_now(wider, where)
    world.alter(own)
    world.caught_up(where)


def _maintained(world: World, tally: Tally, chance: random.Random) -> None:
    """Dies while its files are put in order, of which no row and no refresh knows anything."""
    point = chance.choice(MAINTAIN_POINTS)
    where = f"{world.setup.about}, maintaining dies at {point}"
    world.nudge()
    world.refresh()
    if not _dies(world, Arming(point, Action.CRASH), lambda: world.process.maintain(FIRST), tally):
        raise Broken(f"{where}: the point was not reached")
    world.check(where)
    world.process.maintain(FIRST)
    if world.process.refresh(FIRST).outcome not in (Outcome.NO_DATA, world.ordinary(FIRST)):
        raise Broken(f"{where}: what changed no row was refreshed otherwise")
    world.caught_up(where)


def _renamed(world: World, tally: Tally, chance: random.Random) -> None:
    """Dies while it gets another name, which is then its name everywhere; and gets its own back."""
    if world.setup.chained:
        return
    point = chance.choice(RENAME_POINTS)
    where = f"{world.setup.about}, renaming dies at {point}"
    known = {record.refresh_id for record in world.process.history.query(FIRST)}
    if not _dies(world, Arming(point, Action.CRASH), lambda: world.process.renames.rename(FIRST, RENAMED), tally):
        raise Broken(f"{where}: the point was not reached")
    if chance.random() < 0.5:
        world.process.repairs.all()
    world.process.refresh(RENAMED)
    if chance.random() < 0.5:
        world.lose_catalog()
        world.process.repairs.all()
    found = {record.refresh_id for record in world.process.history.query(RENAMED, limit=10_000)}
    if not known <= found or world.process.history.query(FIRST):
        raise Broken(f"{where}: its history did not follow")
    world.process.renames.rename(RENAMED, FIRST)
    world.caught_up(where)


def _dead(world: World, tally: Tally, chance: random.Random) -> None:
    point = chance.choice(DROP_POINTS)
    where = f"{world.setup.about}, drop dies at {point}"
    if not _dies(world, Arming(point, Action.CRASH), world.drop, tally):
        raise Broken(f"{where}: the point was not reached")
    world.process.repairs.all()
    left = {table.name for table in world.process.catalog.stream_tables()}
    if left == set(world.names):
        world.caught_up(where)
    world.drop()
    world.gone(where)


def _lives(act: Callable[[], object]) -> bool:
    act()
    return False


def _dies(world: World, arming: Arming, act: Callable[[], object], tally: Tally) -> bool:
    with FAILPOINTS.armed(arming) as points:
        try:
            act()
            return False
        except SimulatedCrash:
            world.restart()
            tally.steps += 1
            return True
        except TrickleError as error:
            raise Broken(f"{world.setup.about}: {error!r}") from error
        finally:
            tally.passed.update(points.passed)
