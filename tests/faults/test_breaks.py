"""The simulation notices a broken protocol: each lock is taken out on purpose, and something must give way.

Where two locks guard one door, each alone holds, which is shown as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import CommitConflict, NegativeMultiplicity
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.lake import apply, data_files, log, quoting, stamp, tables
from engine.records import Column, Outcome
from engine.refresh import observe
from engine.refresh.strategies import append_from_driver, by_spark, from_driver, merge_from_driver
from tests.faults import simulated
from tests.faults.life import live, refreshed_anew, world_of
from tests.faults.simulation import FIRST, Broken, Setup
from tests.faults.troubles import Fault, Tally, Trouble, all_faults, in_turn, suffer
from tests.faults.witness import left_by_full_refreshes
from tests.support import duck_compute

ORDERS = (Column("id", "int"), Column("region", "string"), Column("amount", "bigint"))
ROWS = ((1, "north", 10), (2, "north", 20), (3, "south", 5), (4, None, 7))
TOTALS = "SELECT region, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY region"
LARGE = "SELECT region, amount FROM orders WHERE amount > 6"
STEPS = (
    "INSERT INTO orders VALUES (5, 'south', 70), (6, 'east', 1)",
    "UPDATE orders SET amount = amount + 1 WHERE region = 'north'",
    "DELETE FROM orders WHERE id = 3; INSERT INTO orders VALUES (7, 'west', 9)",
)


def setup(query: str = TOTALS, *, by_spark: bool = False, recomputed: bool = False, polled: bool = False) -> Setup:
    return Setup("shop", {"orders": ORDERS}, {"orders": ROWS}, query, STEPS, by_spark, recomputed, polled=polled)


def survives(case: Setup, *faults: Fault) -> Tally:
    tally = Tally()
    live(case, faults, tally)
    return tally


def every(trouble: Trouble) -> tuple[Fault, ...]:
    return tuple(fault for fault in all_faults() if fault.trouble is trouble)


@pytest.mark.parametrize(("query", "by_spark"), [(TOTALS, False), (LARGE, True)], ids=["from the driver", "by Spark"])
def test_every_fault_happens_and_every_failpoint_is_passed(query: str, by_spark: bool) -> None:
    tally = Tally()
    for seed in range(8):
        in_another_order = in_turn(all_faults(), 7 * seed, len(all_faults()))
        live(setup(query, by_spark=by_spark, polled=bool(seed % 2)), in_another_order, tally, seed)
        if set(tally.fired) == set(all_faults()) and set(tally.passed) == set(Failpoint):
            break
    assert set(tally.fired) == set(all_faults())
    assert set(tally.passed) == set(Failpoint)


def reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver commits through a handle of whatever is newest."""
    anew = SimpleNamespace(pin=lambda path, version: tables.pin(path))
    monkeypatch.setattr(merge_from_driver, "tables", anew)
    monkeypatch.setattr(append_from_driver, "tables", anew)
    # of a full refresh too
    monkeypatch.setattr(apply, "pin", anew.pin)


def without_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither writer looks whether its turn has passed."""
    monkeypatch.setattr(apply, "_refuse_used_sequence", lambda pinned, written: None)
    monkeypatch.setattr(duck_compute, "_has_seen", lambda newest, written: False)


def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the table is ours."""
    monkeypatch.setattr(stamp, "foreign_change", lambda *_, **__: None)


def looking_behind_the_stamp_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What slipped in before our commit is not looked for, only what came after it."""
    real = stamp.foreign_change
    monkeypatch.setattr(stamp, "foreign_change", lambda path, after, upto, ours=None: real(path, ours or after, upto))


def trusting_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a commit the newest version is taken for our own."""

    def committed(self: observe.Observer, table: object, version: int, refresh_id: str) -> None:
        head = self._heads.head(table.path)
        self._trusted[table.id] = observe._Trusted(
            head, refresh_id, head.at, None, table.fingerprint, table.partition_by
        )

    monkeypatch.setattr(observe.Observer, "committed", committed)


def believing_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the head is known, what the catalog remembers is taken for the truth about it."""
    real = observe.Observer.target

    def target(self: observe.Observer, table: object, progress: object) -> observe.Target:
        trusted = self._trusted.get(table.id)
        if trusted is not None:
            self._trusted[table.id] = replace(trusted, refresh_id=progress.refresh_id)
        return real(self, table, progress)

    monkeypatch.setattr(observe.Observer, "target", target)


def believing_version_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version number is taken for the commit that was read."""
    monkeypatch.setattr(observe, "_same_history", lambda *_: None)


WAYS = pytest.mark.parametrize("recomputed", [False, True], ids=["merge", "overwrite"])


@WAYS
def test_the_sequence_holds_where_the_handle_does_not(monkeypatch: pytest.MonkeyPatch, recomputed: bool) -> None:
    reopened(monkeypatch)
    assert survives(setup(recomputed=recomputed), *every(Trouble.OVERTAKEN)).fired


@WAYS
def test_the_handle_holds_where_the_sequence_does_not(monkeypatch: pytest.MonkeyPatch, recomputed: bool) -> None:
    without_sequence(monkeypatch)
    assert survives(setup(recomputed=recomputed), *every(Trouble.OVERTAKEN)).fired


@WAYS
def test_without_both_a_refresh_happens_twice(monkeypatch: pytest.MonkeyPatch, recomputed: bool) -> None:
    reopened(monkeypatch)
    without_sequence(monkeypatch)
    with pytest.raises(Broken):
        survives(setup(recomputed=recomputed), *every(Trouble.OVERTAKEN))


def test_spark_has_the_sequence_only(monkeypatch: pytest.MonkeyPatch) -> None:
    without_sequence(monkeypatch)
    with pytest.raises(Broken):
        survives(setup(by_spark=True), *every(Trouble.OVERTAKEN))


@pytest.mark.parametrize("by_spark", [False, True])
def test_trusting_a_foreign_commit_is_noticed(monkeypatch: pytest.MonkeyPatch, by_spark: bool) -> None:
    trusting(monkeypatch)
    with pytest.raises(Broken):
        survives(setup(by_spark=by_spark), *every(Trouble.MEDDLED))


def test_rows_that_slip_in_under_sparks_commit_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    looking_behind_the_stamp_only(monkeypatch)
    with pytest.raises(Broken, match="meddled at commit"):
        survives(setup(LARGE, by_spark=True), Fault(Trouble.MEDDLED, Failpoint.COMMIT))


def test_rows_that_slip_in_right_behind_a_commit_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting_the_newest(monkeypatch)
    with pytest.raises(Broken, match="meddled at committed"):
        survives(setup(), Fault(Trouble.MEDDLED, Failpoint.COMMITTED))


def test_who_writes_down_an_older_refresh_late_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    believing_the_catalog(monkeypatch)
    with pytest.raises(Broken):
        survives(setup(), *every(Trouble.LEFT_BEHIND))


def test_a_commit_that_was_written_over_is_nobodys_truth() -> None:
    """Two commits of one version, the later file over the earlier: both were told that they succeeded."""
    with world_of(setup(LARGE, by_spark=True)) as world:
        world.create()
        world.nudge()

        def meanwhile(point: Failpoint) -> None:
            if point is Failpoint.COMMIT and not overtaken:
                overtaken.append(point)
                world.nudge()
                world.rival.refresh(FIRST)
                log.commit_file(world.path(), log.newest_version(world.path())).unlink()

        overtaken: list[Failpoint] = []
        with FAILPOINTS.armed(Arming(Failpoint.COMMITTED, Action.CRASH, at=2)) as points:
            points.on_pass = meanwhile
            with pytest.raises(SimulatedCrash):
                world.process.refresh(FIRST)
        assert overtaken
        world.restart()
        world.caught_up("written over")


def test_a_source_with_another_past_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    believing_version_numbers(monkeypatch)
    with world_of(setup()) as world:
        world.create()
        world.sources["orders"].rewrite_newest()
        with pytest.raises(Broken, match="rewritten: the outcome was"):
            refreshed_anew(world, "rewritten")


def lose_a_group(world, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored row of a group is gone, and nobody saw how."""
    trusting(monkeypatch)
    tables.pin(world.path()).handle.delete("region = 'north'")
    world.change_sources("DELETE FROM orders WHERE id = 1")


def test_a_contradiction_commits_nothing_and_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    with world_of(setup()) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        version = tables.pin(world.path()).version
        with pytest.raises(NegativeMultiplicity, match="rows that are not there") as caught:
            world.process.refresh(FIRST)
        assert "region='north'" in (caught.value.detail or "")
        assert tables.pin(world.path()).version == version
        world.caught_up("mended", Outcome.REINITIALIZE, Outcome.NO_DATA)


def test_without_the_assertion_it_stays_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.compute as pc

    real = from_driver._complete
    monkeypatch.setattr(
        from_driver, "_complete", lambda job, rows: real(job, rows.filter(pc.not_equal(rows[from_driver.OP], "X")))
    )
    with world_of(setup()) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        with pytest.raises(Broken, match="other rows"):
            world.caught_up("swallowed")


def without_naming_contradictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the change set itself says of rows that are not there is not heard."""
    monkeypatch.setattr(by_spark, "refuse_contradictions", lambda *_: None)
    monkeypatch.setattr(from_driver, "refuse_contradictions", lambda *_: None)


def without_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both writers take a row for what it turns out to be, not for what it says."""

    def assignments(names, operation: str) -> dict[str, str]:
        return {quoting.name(name): f"s.{quoting.name(name)}" for name in names}

    monkeypatch.setattr(apply, "_assignments", assignments)


def without_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a commit reports to have done is not compared with what it was to do."""
    monkeypatch.setattr(apply, "_compare", lambda *_: None)


def stale(world, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored rows are read as they were before the last refresh: 'east' is taken for new, and is there."""
    world.change_sources("INSERT INTO orders VALUES (8, 'east', 100)")
    world.refresh()
    world.check("before")
    real = duck_compute.DuckCompute.show_version

    def show_version(self, view: str, path: str, version: int, columns) -> None:
        real(self, view, path, version - (path == world.path()), columns)

    monkeypatch.setattr(duck_compute.DuckCompute, "show_version", show_version)
    world.change_sources("INSERT INTO orders VALUES (9, 'east', 11)")


def contradicted(world) -> int:
    """A refresh that must fail; how many versions it leaves behind."""
    version = log.newest_version(world.path())
    with pytest.raises(NegativeMultiplicity):
        world.process.refresh(FIRST)
    return log.newest_version(world.path()) - version


BOTH_WRITERS = pytest.mark.parametrize("spark", [False, True], ids=["from the driver", "by Spark"])


@BOTH_WRITERS
@pytest.mark.parametrize("out", [(), (without_counting,)], ids=["all locks", "without counting"])
def test_a_row_that_is_there_is_not_inserted(monkeypatch: pytest.MonkeyPatch, spark: bool, out: tuple) -> None:
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        stale(world, monkeypatch)
        for lock in out:
            lock(monkeypatch)
        assert contradicted(world) == 0
        world.check("refused")
        world.caught_up("mended", Outcome.REINITIALIZE, Outcome.NO_DATA)


@BOTH_WRITERS
def test_without_refusals_wrong_rows_are_told_and_mended_but_were_seen(
    monkeypatch: pytest.MonkeyPatch, spark: bool
) -> None:
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        stale(world, monkeypatch)
        without_refusals(monkeypatch)
        assert contradicted(world) == 1
        with pytest.raises(Broken, match="other rows"):
            world.check("seen")
        done = world.process.refresh(FIRST)
        assert done.outcome is Outcome.REINITIALIZE
        world.caught_up("mended", Outcome.NO_DATA)


@BOTH_WRITERS
def test_without_refusals_and_counting_it_stays_wrong(monkeypatch: pytest.MonkeyPatch, spark: bool) -> None:
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        stale(world, monkeypatch)
        without_refusals(monkeypatch)
        without_counting(monkeypatch)
        with pytest.raises(Broken, match="other rows"):
            world.caught_up("swallowed")


@BOTH_WRITERS
def test_a_contradiction_is_refused_without_refusals_of_the_writer(
    monkeypatch: pytest.MonkeyPatch, spark: bool
) -> None:
    """The change set says so itself, before anything is committed."""
    without_refusals(monkeypatch)
    without_counting(monkeypatch)
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        assert contradicted(world) == 0
        world.caught_up("mended", Outcome.REINITIALIZE, Outcome.NO_DATA)


def test_by_spark_an_unheard_contradiction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is left of the change, which looks like none."""
    without_naming_contradictions(monkeypatch)
    with world_of(setup(by_spark=True)) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        with pytest.raises(Broken, match="other rows"):
            world.caught_up("swallowed")


@BOTH_WRITERS
def test_an_unheard_contradiction_beside_a_change_is_refused_by_the_writer(
    monkeypatch: pytest.MonkeyPatch, spark: bool
) -> None:
    without_naming_contradictions(monkeypatch)
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        world.change_sources("INSERT INTO orders VALUES (9, 'west', 11)")
        assert contradicted(world) == 0
        world.caught_up("mended", Outcome.REINITIALIZE, Outcome.NO_DATA)


@BOTH_WRITERS
def test_without_any_of_the_three_a_contradiction_stays(monkeypatch: pytest.MonkeyPatch, spark: bool) -> None:
    for lock in (without_naming_contradictions, without_refusals, without_counting):
        lock(monkeypatch)
    with world_of(setup(by_spark=spark)) as world:
        world.create()
        lose_a_group(world, monkeypatch)
        world.change_sources("INSERT INTO orders VALUES (9, 'west', 11)")
        with pytest.raises(Broken, match="other rows"):
            world.caught_up("swallowed")


def without_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What killed full refreshes left is left."""
    monkeypatch.setattr(data_files, "settle_all", lambda *_: None)


@pytest.mark.parametrize("broken", [False, True])
def test_what_killed_full_refreshes_leave_is_noticed(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    with world_of(setup(recomputed=True)) as world:
        world.create()
        world.nudge()
        suffer(world, Fault(Trouble.DIES, Failpoint.COMMIT), Tally())
        assert left_by_full_refreshes(Path(world.path()))
        if broken:
            without_settling(monkeypatch)
            with pytest.raises(Broken, match="left files that no version names"):
                world.caught_up("killed")
        else:
            world.caught_up("killed")


def test_a_run_that_missed_something_says_so() -> None:
    tally = Tally()
    tally.passed.update(point for point in Failpoint if point is not Failpoint.REMOVED)
    tally.fired.update(fault for fault in all_faults() if fault != Fault(Trouble.DIES, Failpoint.COMMIT))
    assert simulated.never(tally) == ["removed was never passed", "dies at commit never happened"]


def test_a_lost_answer_is_no_second_commit() -> None:
    with world_of(setup()) as world:
        world.create()
        world.nudge()
        result = suffer(world, Fault(Trouble.LOST_ANSWER, Failpoint.COMMIT), Tally())
        assert isinstance(result.error, CommitConflict)
        version = tables.pin(world.path()).version
        world.caught_up("after a lost answer", Outcome.NO_DATA)
        assert tables.pin(world.path()).version == version
