"""Faults on real Spark: processes that refresh a stream table are killed, stopped and raced, and another one mends it.

What dies is `real_child.py`. What looks at the table, before anybody mended it and after, is `witness.py`. What mends
it is an engine of this process, with a JVM of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.errors import TrickleError
from engine.failpoints import FAILPOINTS, Failpoint
from engine.records import Outcome, RefreshRecord
from tests.faults.children import Child, Nursery
from tests.faults.real_world import CASES, Case, World
from tests.faults.witness import Broken, Watched, strangers


class Way(StrEnum):
    KILL = "killed"
    GROUP = "killed with its JVM"
    LATE = "killed while Spark writes"
    STALL = "stopped, overtaken, woken"
    RACE = "two at once"
    CREATE = "killed while it creates"
    DROP = "killed while it drops"
    ALTER = "killed while it gets another query"
    WRITE = "killed while its DML is followed or undone"


#: those that are not about a refresh
OF_DEFINITIONS = (Way.CREATE, Way.DROP, Way.ALTER, Way.WRITE)


@dataclass(frozen=True)
class Combo:
    way: Way
    case: Case
    point: Failpoint
    #: from the point to the kill, or from the child's waking to the other's commit
    delay_s: float = 0.0
    #: a JVM that ends with its process; otherwise one that outlives it
    own_jvm: bool = False

    def __str__(self) -> str:
        after = f" + {self.delay_s:g} s" if self.delay_s else ""
        jvm = ", own JVM" if self.own_jvm else ""
        return f"{self.case.strategy}: {self.way} at {self.point.value}{after}{jvm}"


@dataclass(frozen=True)
class Result:
    combo: Combo
    #: how the process ended that met the fault
    ended: str
    #: when its change was in the log, as seen from outside
    landed: str
    recovery: str
    #: refreshes that recovery took; more than one when it met a commit
    tries: int
    seconds: float = 0.0
    broken: str | None = None


@dataclass(frozen=True)
class Met:
    """What a fault left behind, before anybody mended it."""

    ended: str
    #: version of the stream table's log
    version: int
    changes: int = 1


def run(world: World, nursery: Nursery, combo: Combo) -> Result:
    """One fault and its recovery; what did not hold stands in the result."""
    began = time.monotonic()
    try:
        happen = {Way.CREATE: _create, Way.DROP: _drop, Way.ALTER: _alter, Way.WRITE: _write}.get(combo.way, _refresh)
        found = happen(world, nursery, combo)
    except Exception as error:
        # the list goes on: it is long, and its end tells all that broke
        found = Result(combo, "", "", "", 0, broken=f"{type(error).__name__}: {error}")
    return replace(found, seconds=round(time.monotonic() - began, 2))


def _refresh(world: World, nursery: Nursery, combo: Combo) -> Result:
    case = combo.case
    before = world.look(case)
    world.change(case)
    child = nursery.alone() if combo.own_jvm else nursery.guest()
    try:
        met = _FAULTS[combo.way](world, child, combo)
        record, tries = world.recover(case)
        if combo.way is Way.LATE:
            _wait_quiet(nursery, child)
            world.idle(case)
        _refuse_wrong(case, world.commits(case, before), met.changes, record)
    finally:
        child.clean_up()
    child.wait_gone()
    return Result(combo, met.ended, _landed(combo, before, met, record), record.outcome.value, tries)


def _refuse_wrong(case: Case, commits: list[str], changes: int, record: RefreshRecord) -> None:
    """One change is one commit, whoever made it, and in the way that the case is about."""
    expected = [] if case.strategy == "no data" else [case.strategy] * changes
    if commits != expected:
        raise Broken(f"the commits were {commits}")
    if record.outcome is not Outcome.NO_DATA and record.strategy != case.strategy:
        raise Broken(f"recovery took {record.strategy}")


def _landed(combo: Combo, before: int, met: Met, record: RefreshRecord) -> str:
    if combo.case.strategy == "no data":
        return "nothing to commit"
    if combo.way is Way.RACE:
        return "by one of the two"
    if met.version > before:
        return "before the fault" if combo.way is Way.STALL else "before recovery"
    if combo.way is Way.STALL:
        return "by who overtook it"
    return "during recovery" if record.outcome is Outcome.NO_DATA else "by recovery"


def _kill(world: World, child: Child, combo: Combo) -> Met:
    child.order("refresh", combo.case.table, f"{combo.point}=kill")
    child.killed_at(combo.point)
    return Met("SIGKILL", world.look(combo.case))


def _kill_group(world: World, child: Child, combo: Combo) -> Met:
    """Both at the same moment: what a machine that loses power looks like to others."""
    if combo.delay_s:
        child.order("refresh", combo.case.table, f"{Failpoint.HISTORY_WRITTEN}=stall")
        child.hear_passing(combo.point)
        time.sleep(combo.delay_s)
    else:
        child.order("refresh", combo.case.table, f"{combo.point}=stall")
        child.stopped_at(combo.point)
    child.kill(with_jvm=True)
    return Met("SIGKILL with its JVM", world.look(combo.case))


def _kill_late(world: World, child: Child, combo: Combo) -> Met:
    child.order("refresh", combo.case.table, f"{Failpoint.HISTORY_WRITTEN}=stall")
    child.hear_passing(combo.point)
    time.sleep(combo.delay_s)
    child.kill()
    return Met("SIGKILL", world.look(combo.case))


def _stall(world: World, child: Child, combo: Combo) -> Met:
    """It wakes in a world where its work was done by another, and must notice."""
    case = combo.case
    child.order("refresh", case.table, f"{combo.point}=stall")
    child.stopped_at(combo.point)
    stopped = world.look(case)
    world.recover(case)
    # what it writes down when it wakes is now older than what others wrote down
    world.change(case)
    world.recover(case)
    child.wake()
    ended = _end(child)
    world.idle(case)
    child.order("refresh", case.table)
    again = child.hear("done", "failed")
    if again.get("outcome") != Outcome.NO_DATA.value:
        raise Broken(f"when the stopped one tried again: {again}")
    return Met(ended, stopped, changes=2)


def _race(world: World, child: Child, combo: Combo) -> Met:
    """Both have computed the same change and commit it now."""
    case, waking = combo.case, _Waking(child, combo)
    child.order("refresh", case.table, f"{combo.point}=stall")
    child.stopped_at(combo.point)
    with FAILPOINTS.armed() as here:
        here.on_pass = waking
        try:
            mine = world.engine.refresh_stream_table(case.table).outcome.value
        except TrickleError as error:
            mine = _lost(type(error).__name__, error.retryable, str(error))
    if not waking.done:
        raise Broken(f"the other one ended with {mine} and never passed {combo.point.value}")
    return Met(f"{_end(child)}; the other: {mine}", world.look(case))


class _Waking:
    """Wakes the child as soon as this process has come as far."""

    def __init__(self, child: Child, combo: Combo) -> None:
        self._child = child
        self._combo = combo
        self.done = False

    def __call__(self, point: Failpoint) -> None:
        if point is self._combo.point and not self.done:
            self.done = True
            self._child.wake()
            time.sleep(self._combo.delay_s)


def _end(child: Child) -> str:
    """Of one that lives: what it did, or why it was refused."""
    said = child.hear("done", "failed")
    return said["outcome"] if said["said"] == "done" else _lost(said["error"], said["retryable"], said["text"])


def _lost(error: str, retryable: bool, text: str) -> str:
    if not retryable:
        raise Broken(f"who came too late was not told so, but {error}: {text}")
    return error


_FAULTS: dict[Way, Callable[[World, Child, Combo], Met]] = {
    Way.KILL: _kill,
    Way.GROUP: _kill_group,
    Way.LATE: _kill_late,
    Way.STALL: _stall,
    Way.RACE: _race,
}


def _wait_quiet(nursery: Nursery, child: Child) -> None:
    """Until what a dead one left running in Spark has ended."""
    if child.owns_jvm:
        child.wait_gone()
        return
    quiet_since = time.monotonic()
    # a commit is several jobs, with something between them
    while time.monotonic() - quiet_since < 1.5:
        nursery.keeper.order("count jobs")
        if nursery.keeper.hear("done")["jobs"]:
            quiet_since = time.monotonic()
        time.sleep(0.05)


def _create(world: World, nursery: Nursery, combo: Combo) -> Result:
    """Who comes next makes it, and what was made halfway is not in the way."""
    name = f"killed_at_{combo.point.replace(' ', '_')}"
    child, table = nursery.guest(), world.watched(name, combo.case)
    child.order("create", name, f"{combo.point}=kill", query=combo.case.text)
    child.killed_at(combo.point)
    known = name in {each.name for each in world.engine.stream_tables()}
    version = world.witness.look(table)
    if not known:
        world.engine.create_stream_table(name, combo.case.text, refresh_mode=combo.case.mode)
    record, tries = world.refresh(name)
    world.witness.forget(table.path)
    world.witness.look_caught_up(table)
    _drop_and_look(world, name, table)
    landed = "in the catalog" if known else f"as a folder at version {version}"
    return Result(combo, "SIGKILL", landed, record.outcome.value, tries)


def _drop(world: World, nursery: Nursery, combo: Combo) -> Result:
    """Who drops it again leaves nothing, and the name is free."""
    name = f"killed_at_{combo.point.replace(' ', '_')}"
    child, table = nursery.guest(), world.watched(name, combo.case)
    world.engine.create_stream_table(name, combo.case.text, refresh_mode=combo.case.mode)
    world.witness.look_caught_up(table)
    child.order("drop", name, f"{combo.point}=kill")
    child.killed_at(combo.point)
    there = table.path.exists()
    world.engine.drop_stream_table(name, if_exists=True)
    world.witness.forget(table.path)
    world.engine.create_stream_table(name, combo.case.text, refresh_mode=combo.case.mode)
    if len(world.engine.history(name)) != 1:
        raise Broken("the new table has the history of the dropped one")
    world.witness.look_caught_up(table)
    _drop_and_look(world, name, table)
    return Result(combo, "SIGKILL", "folder there" if there else "folder gone", "made anew", 1)


def _alter(world: World, nursery: Nursery, combo: Combo) -> Result:
    """Whoever refreshes next fulfils the other query, and the table can get its own again."""
    name = f"killed_at_{combo.point.replace(' ', '_')}"
    child, table = nursery.guest(), world.watched(name, combo.case)
    world.engine.create_stream_table(name, combo.case.text, refresh_mode=combo.case.mode)
    world.witness.look_caught_up(table)
    other = f"SELECT *, 1 AS one_more FROM ({combo.case.text})"
    child.order("alter", name, f"{combo.point}=kill", query=other)
    child.killed_at(combo.point)
    record, tries = world.refresh(name)
    for query in (other, combo.case.text):
        world.engine.alter_stream_table(name, query=query)
        compared = world.engine.verify(name)
        if not compared.equal or world.engine.stream_table(name).query != query:
            raise Broken(f"after it was altered: {compared}")
    _drop_and_look(world, name, table)
    return Result(combo, "SIGKILL", "", record.outcome.value, tries)


def _write(world: World, nursery: Nursery, combo: Combo) -> Result:
    """Whoever refreshes next carries it forward, and the next DML is followed again."""
    name = f"killed_at_{combo.point.replace(' ', '_')}"
    child, table = nursery.guest(), world.watched(name, combo.case)
    world.engine.create_stream_table(name, combo.case.text, refresh_mode="IMMEDIATE")
    world.witness.look_caught_up(table)
    dml = f"UPDATE {combo.case.orders} SET amount = amount + 1 WHERE id = 3"
    undone = combo.point in (Failpoint.UNDO, Failpoint.UNDONE)
    fails = f"{Failpoint.SOURCE_CHANGED}=raise," if undone else ""
    child.order("write", failpoints=f"{fails}{combo.point}=kill", query=dml)
    child.killed_at(combo.point)
    record, tries = world.refresh(name)
    world.witness.look_caught_up(table)
    world.engine.change_source(dml)
    world.witness.look_caught_up(table)
    _drop_and_look(world, name, table)
    return Result(combo, "SIGKILL", "", record.outcome.value, tries)


def _drop_and_look(world: World, name: str, table: Watched) -> None:
    world.engine.drop_stream_table(name)
    world.witness.forget(table.path)
    strange = strangers(world.engine.workspace.warehouse, {each.name for each in world.engine.stream_tables()})
    if strange:
        raise Broken(f"left over: {strange}")


#: of what is created and dropped
MADE = next(case for case in CASES if case.strategy == "merge from driver")
CREATE_POINTS = (Failpoint.FOLDER_MADE, Failpoint.CATALOGUED)
DROP_POINTS = (Failpoint.SET_ASIDE, Failpoint.FORGOTTEN, Failpoint.REMOVED)
ALTER_POINTS = (Failpoint.ALTERED, Failpoint.COMMIT, Failpoint.COMMITTED)
WRITE_POINTS = (Failpoint.SOURCE_CHANGED, Failpoint.COMMIT, Failpoint.UNDO, Failpoint.UNDONE)

#: delays after Spark began, in a JVM that is warm and in one that commits for the first time
LATE_S = (0.0, 0.1, 0.3, 0.8)
COLD_S = (0.5, 1.5)


def all_combos() -> list[Combo]:
    """Every point of every strategy in the cheap ways; what needs a JVM of its own where it matters."""
    writing = [case for case in CASES if case.strategy != "no data"]
    by_spark = [case for case in CASES if case.by_spark]
    commit = Failpoint.COMMIT
    return [
        *(Combo(Way.KILL, case, point) for case in CASES for point in case.points),
        *(Combo(Way.STALL, case, point) for case in CASES for point in case.points),
        *(Combo(Way.RACE, case, commit, delay) for case in writing for delay in (0.0, 0.01, 0.1)),
        *(Combo(Way.RACE, case, Failpoint.SOURCES_CHOSEN) for case in CASES),
        *(Combo(Way.LATE, case, case.spark_writes_after, delay) for case in by_spark for delay in LATE_S),
        *(Combo(Way.CREATE, MADE, point) for point in CREATE_POINTS),
        *(Combo(Way.DROP, MADE, point) for point in DROP_POINTS),
        *(Combo(Way.ALTER, MADE, point) for point in ALTER_POINTS),
        *(Combo(Way.WRITE, MADE, point) for point in WRITE_POINTS),
        *(Combo(Way.KILL, case, commit, own_jvm=True) for case in writing),
        *(Combo(Way.GROUP, case, commit, own_jvm=True) for case in writing if case.mixed),
        *(Combo(Way.LATE, case, case.spark_writes_after, delay, own_jvm=True) for case in by_spark for delay in COLD_S),
        *(Combo(Way.GROUP, case, case.spark_writes_after, 0.6, own_jvm=True) for case in by_spark),
    ]


def combos_of(day: int) -> list[Combo]:
    """One of each way that is about refreshes, others every day. The child that keeps the JVM dies last, with it."""
    stalled, raced = CASES[day % len(CASES)], CASES[1 + day % (len(CASES) - 1)]
    late = [case for case in CASES if case.by_spark][day % 3]
    last = (Way.LATE, Way.GROUP, Way.KILL)[day // 3 % 3]
    return [
        Combo(Way.STALL, stalled, stalled.points[day % len(stalled.points)]),
        Combo(Way.KILL, raced, raced.points[day % len(raced.points)]),
        Combo(Way.RACE, raced, Failpoint.COMMIT, (0.0, 0.01, 0.05)[day % 3]),
        Combo(Way.LATE, late, late.spark_writes_after, LATE_S[day % len(LATE_S)]),
        Combo(last, late, late.spark_writes_after, 0.0 if last is Way.KILL else 0.2, own_jvm=True),
    ]
