"""DML through Trickle: followed, or undone, or kept and told; one after the other; and what guards that is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from engine.asked import Alteration
from engine.compile.source_ddl import AlterSource
from engine.compile.statements import parse_statement
from engine.errors import ChangeUndone, CommitConflict, DependentsExist, RefreshFailed, SourceSchemaChanged, Tampered
from engine.event_records import EventKind
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint
from engine.lake import log, tables, undo
from engine.lake.turns import Turns
from engine.records import Initiator, Outcome, RefreshMode
from engine.refresh import writes
from engine.refresh.source_ddl import SourceDdl
from engine.refresh.sources import Sources
from tests.faults import writing
from tests.faults.life import world_of
from tests.faults.simulation import FIRST, SECOND, Broken, Setup, World
from tests.faults.troubles import Tally
from tests.faults.writer_child import ORDERS, write_at_once
from tests.faults.writing import Fault, Way
from tests.support.delta_files import SourceTable

ROOT = Path(__file__).parents[2]
ROWS = ((1, "north", 10), (2, "north", 20), (3, "south", 5), (4, None, 7))
TOTALS = "SELECT region, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY region"


@contextmanager
def immediate(*, chained: bool = True, by_spark: bool = False) -> Iterator[World]:
    setup = Setup("shop", {"orders": ORDERS}, {"orders": ROWS}, TOTALS, (), by_spark, chained=chained)
    with world_of(setup) as world:
        world.create()
        for name in world.names:
            writing.alter(world, name, RefreshMode.IMMEDIATE)
        yield world


@pytest.mark.parametrize("chained", [False, True], ids=["one", "one on another"])
def test_every_fault_on_the_way_of_dml(chained: bool) -> None:
    tally = Tally()
    for fault in writing.FAULTS:
        with immediate(chained=chained) as world:
            writing.suffer(world, fault, tally)
    # every one of them happened
    assert tally.steps == sum(len(fault.armings) for fault in writing.FAULTS)


def test_all_follow_before_it_returns() -> None:
    with immediate() as world:
        done = writing.write(world, "orders")
        assert [(each.st, each.outcome) for each in done.refreshes] == [
            (FIRST, Outcome.DIFFERENTIAL),
            (SECOND, Outcome.DIFFERENTIAL),
        ]
        assert {each.initiated_by for each in done.refreshes} == {Initiator.IMMEDIATE}
        assert done.version == world.sources["orders"].version
        world.caught_up_already("followed")


def test_dml_that_changes_nothing_makes_nobody_do_anything() -> None:
    with immediate() as world:
        done = writing.write(world, "orders", lambda: None)
        assert {each.outcome for each in done.refreshes} == {Outcome.NO_DATA}


def changes_of_promise(world: World) -> list[str]:
    return [each.text for each in world.process.catalog.events() if each.kind is EventKind.APPEND_ONLY_REVERTED]


@pytest.mark.parametrize("followed", [False, True], ids=["nobody followed", "one had followed"])
def test_undoing_breaks_no_promise_to_grow_only(followed: bool) -> None:
    """DML that was taken back, and taking it back, are what nobody meant to do."""
    grows = "SELECT id, region, amount FROM orders WHERE amount > 1"
    setup = Setup("growing", {"orders": ORDERS}, {"orders": ROWS}, grows, (), chained=True)
    with world_of(setup) as world:
        world.create()
        for name in world.names:
            writing.alter(world, name, RefreshMode.IMMEDIATE)
        world.process.alterations.alter(FIRST, Alteration(append_only=True))
        fault = Arming(Failpoint.COMMIT, Action.RAISE, at=2 if followed else 1)
        with FAILPOINTS.armed(fault), pytest.raises(ChangeUndone):
            writing.write(world, "orders", lambda: world.lake.put_back("orders", (9, "west", 9)))
        assert changes_of_promise(world) == []
        assert world.table().append_only
        world.caught_up("undone", Outcome.DIFFERENTIAL, Outcome.NO_DATA)
        # what was meant still breaks it
        writing.write(world, "orders")
        assert len(changes_of_promise(world)) == 1


def undone(world: World) -> int:
    """How many versions of the stream table it took."""
    before = log.newest_version(world.path())
    fault = Fault(Way.UNDONE, (Arming(Failpoint.COMMIT, Action.RAISE, at=2),))
    writing.suffer(world, fault, Tally())
    return log.newest_version(world.path()) - before


def test_who_had_followed_follows_the_undoing_by_changes() -> None:
    """The first commits, the second cannot: the first takes it back."""
    with immediate() as world:
        assert undone(world) == 2
        records = [each for each in world.process.refresher._ledger._history.query(st=FIRST, limit=2)]
        assert {each.outcome for each in records} <= {Outcome.DIFFERENTIAL, Outcome.NO_DATA}
        told = [event.text for event in world.process.catalog.events() if event.kind is EventKind.CHANGE_UNDONE]
        assert len(told) == 1
        assert SECOND in told[0]


def test_a_commit_of_ours_is_undone_and_nobody_elses() -> None:
    """What others wrote meanwhile stays, and so does the DML."""
    with immediate() as world:
        fault = Fault(Way.KEPT, (Arming(Failpoint.COMPUTED, Action.RAISE),), meanwhile=True)
        writing.suffer(world, fault, Tally())
        assert len(writing.rows_of(world, "orders")) == len(ROWS) - 2
        late = [event for event in world.process.catalog.events() if event.kind is EventKind.LATE]
        assert {event.subject for event in late} == {FIRST}


def taking_back_whatever_is_newest(path: str, version: int, mark: str) -> int:
    tables.pin(path).handle.restore(version - 1)
    return version + 1


def test_undoing_what_others_wrote_too_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "take_back", taking_back_whatever_is_newest)
    fault = Fault(Way.KEPT, (Arming(Failpoint.COMPUTED, Action.RAISE),), meanwhile=True)
    with immediate() as world, pytest.raises(Broken):
        writing.suffer(world, fault, Tally())


def test_undoing_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "take_back", lambda path, version, mark: version)
    with immediate() as world, pytest.raises(Broken, match="not as it was"):
        writing.suffer(world, Fault(Way.UNDONE, (Arming(Failpoint.COMPUTED, Action.RAISE),)), Tally())


def test_leaving_behind_who_had_followed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes.Writes, "_follows", lambda self, table: True)
    with immediate() as world:
        fault = Fault(Way.UNDONE, (Arming(Failpoint.COMMIT, Action.RAISE, at=2),))
        before = log.newest_version(world.path())
        with FAILPOINTS.armed(*fault.armings), pytest.raises(writes.ChangeUndone):
            writing.write(world, "orders")
        assert log.newest_version(world.path()) == before + 1
        with pytest.raises(Broken, match="other rows"):
            world.caught_up_already("left behind")


def test_what_is_known_to_fail_fails_before_the_dml() -> None:
    with immediate(chained=False) as world:
        version = world.sources["orders"].version
        world.meddle()
        with pytest.raises(Tampered):
            writing.write(world, "orders")
        assert world.sources["orders"].version == version


def retyped(world: World, column: str, type_: str) -> None:
    """A column of the source has another type from its next commit on, as after a rewrite by its owner."""
    source = world.sources["orders"]
    assert isinstance(source, SourceTable)
    path = source.path
    folder = path / "_delta_log"
    lines = (json.loads(line) for line in (folder / f"{0:020d}.json").read_text().splitlines())
    definition = next(each["metaData"] for each in lines if "metaData" in each)
    schema = json.loads(definition["schemaString"])
    next(field for field in schema["fields"] if field["name"] == column)["type"] = type_
    source._commit("CHANGE COLUMN", [{"metaData": {**definition, "schemaString": json.dumps(schema)}}])


def test_a_column_of_another_type_is_told_before_the_dml() -> None:
    with immediate(chained=False, by_spark=True) as world:
        assert world.settings.sources.block_source_ddl
        retyped(world, "amount", "integer")
        version = log.newest_version(str(world.sources["orders"].path))
        with pytest.raises(SourceSchemaChanged, match="not what the query of result was written for"):
            writing.write(world, "orders")
        assert log.newest_version(str(world.sources["orders"].path)) == version


class OfNobody:
    """Spark is not asked for what is refused."""

    def session(self) -> NoReturn:
        raise AssertionError("Spark was asked")


def altered(world: World, what: str) -> int:
    statement = parse_statement(f"ALTER TABLE orders {what}")
    assert isinstance(statement, AlterSource)
    process = world.process
    turns = Turns(world.folder / "turns", wait_s=0.05)
    return SourceDdl(process.catalog, cast(Any, OfNobody()), process.plans, world.settings, turns).alter(statement)


def test_ddl_waits_for_its_turn() -> None:
    """In between DML and its undoing it would be a commit of somebody else, after which nothing is undone."""
    with immediate(chained=False) as world:
        path = str(world.sources["orders"].path)
        turns = Turns(world.folder / "turns", wait_s=0.05)
        process = world.process
        sources = Sources(
            process.catalog,
            process.compute,
            EventBus(process.catalog.append_event, world.clock),
            world.settings,
            world.clock,
            turns,
        )
        with turns.taken((path,)):
            with pytest.raises(CommitConflict, match="being changed by others"):
                altered(world, "ADD COLUMN more STRING")
            with pytest.raises(CommitConflict, match="being changed by others"):
                sources.enable("orders", path)
        with pytest.raises(AssertionError, match="Spark was asked"):
            altered(world, "ADD COLUMN more STRING")


@pytest.mark.parametrize(
    "what",
    [
        "SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "SET TBLPROPERTIES ('mine' = 'yes', delta.enableRowTracking = true)",
        "SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')",
        "CLUSTER BY (region)",
    ],
)
def test_ddl_after_which_no_dml_could_be_undone_is_refused(what: str) -> None:
    with immediate(chained=False) as world, pytest.raises(DependentsExist, match=f"{FIRST} is IMMEDIATE"):
        altered(world, what)


@pytest.mark.parametrize(
    "what",
    [
        "SET TBLPROPERTIES ('delta.appendOnly' = 'false', 'mine' = 'yes')",
        "SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 7 days')",
        "SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')",
        "UNSET TBLPROPERTIES ('delta.appendOnly')",
    ],
)
def test_other_properties_harm_nobody(what: str) -> None:
    with immediate(chained=False) as world, pytest.raises(AssertionError, match="Spark was asked"):
        altered(world, what)


def test_an_answer_of_the_dml_that_is_lost_is_no_change() -> None:
    """It happened, and is reported as failed: it must not be there when it is sent again."""
    with immediate() as world:
        rows = writing.rows_of(world, "orders")

        def fails() -> None:
            world.lake.take_out("orders")
            world._commit_changes()
            raise RefreshFailed("the connection is gone")

        with pytest.raises(RefreshFailed, match="the connection is gone"):
            writing.write(world, "orders", fails)
        assert writing.rows_of(world, "orders") == rows
        world.caught_up("undone")


def numbers(world: World) -> list[int]:
    writing.catch_up(world, "orders")
    return sorted(number for number, _, _ in writing.rows_of(world, "orders"))


def test_a_hundred_writers_at_once_lose_nothing() -> None:
    with immediate(chained=False) as world:
        assert write_at_once(world.process, 100) == []
        assert numbers(world) == list(range(1, 105))
        world.caught_up_already("written by a hundred")


def test_writers_of_two_processes_lose_nothing() -> None:
    with immediate() as world:
        command = [sys.executable, "-m", "tests.faults.writer_child", str(world.folder), "25"]
        children = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        told = [child.communicate(timeout=120)[0].strip() for child in children]
        assert told == ["", ""]
        assert numbers(world) == list(range(1, 55))
        world.caught_up_already("written by two processes")


def test_a_conflict_of_the_dml_itself_leaves_nothing() -> None:
    with immediate() as world:
        version = world.sources["orders"].version

        def meets() -> None:
            raise CommitConflict("somebody else was faster")

        with pytest.raises(CommitConflict):
            writing.write(world, "orders", meets)
        assert world.sources["orders"].version == version
        world.caught_up_already("nothing happened")
