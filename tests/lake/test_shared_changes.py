"""What was read once of a source, for others: found by what it is a change of, and never by version numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from engine.algebra.nodes import WEIGHT
from engine.lake.commits import ChangeKind, ChangeSummary, CommitChange
from engine.lake.shared_changes import SharedChanges
from engine.records import SourceVersion
from tests.faults.life import world_of
from tests.faults.simulation import FIRST, Setup, World
from tests.faults.test_breaks import ORDERS, ROWS, TOTALS

PATH = "/lake/orders"


def version(number: int, identity: str = "") -> SourceVersion:
    return SourceVersion(number, identity or f"commit {number}", "table")


def summary(after: int, upto: int, *files: str) -> ChangeSummary:
    commit = CommitChange(upto, ChangeKind.CHANGE, "MERGE", 3, None, 10, True, False, files or ("a",))
    return ChangeSummary(after, upto, (commit,), ends=(version(after), version(upto)))


def rows(count: int = 3, **columns: object) -> pa.Table:
    made = {name: pa.array([value] * count) for name, value in (columns or {"id": 1, "name": "x"}).items()}
    return pa.table({**made, WEIGHT: pa.array([1] * count, pa.int32())})


def test_who_wants_the_same_or_less_finds_it() -> None:
    shared = SharedChanges(10_000)
    shared.keep(PATH, summary(1, 2), rows())
    for columns in (["id", "name"], ["name"], []):
        assert shared.find(PATH, summary(1, 2), columns) is not None
    assert shared.find(PATH, summary(1, 2), ["id", "more"]) is None
    assert shared.find("/lake/other", summary(1, 2), ["id"]) is None
    assert shared.find(PATH, summary(0, 2), ["id"]) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(summary(1, 2), ends=(version(1, "restored"), version(2))),
        replace(summary(1, 2), ends=(version(1), version(2, "restored"))),
        replace(summary(1, 2), ends=(version(1), replace(version(2), table_id="another"))),
        replace(summary(1, 2), by_files=True),
        summary(1, 2, "another file"),
    ],
)
def test_another_history_behind_the_same_numbers_is_another_change(other: ChangeSummary) -> None:
    shared = SharedChanges(10_000)
    shared.keep(PATH, summary(1, 2), rows())
    assert shared.find(PATH, other, ["id"]) is None


def test_what_nobody_can_tell_apart_is_not_kept() -> None:
    shared = SharedChanges(10_000)
    for ends in (None, (version(1), SourceVersion(2, "", "table"))):
        unknown = replace(summary(1, 2), ends=ends)
        shared.keep(PATH, unknown, rows())
        assert shared.find(PATH, unknown, ["id"]) is None


def test_it_holds_no_more_than_it_may_and_nothing_older() -> None:
    size = rows().nbytes
    shared = SharedChanges(2 * size)
    shared.keep(PATH, summary(1, 2), rows(100))
    assert shared.held_bytes == 0
    shared.keep(PATH, summary(1, 2), rows())
    shared.keep(PATH, summary(0, 2), rows())  # one that lags behind
    assert shared.held_bytes == 2 * size
    shared.keep("/lake/other", summary(1, 2), rows())
    assert shared.held_bytes == 2 * size
    assert shared.find(PATH, summary(1, 2), ["id"]) is None
    shared.keep(PATH, summary(2, 3), rows())
    assert shared.find(PATH, summary(0, 2), ["id"]) is None
    assert shared.find(PATH, summary(2, 3), ["id"]) is not None


def sibling(world: World, name: str, query: str) -> None:
    world.process.definitions.create(
        name,
        query,
        schedule="10s",
        refresh_mode="DIFFERENTIAL",
        initialize=True,
        append_only=False,
        comment="",
        enable_cdf=None,
    )


SETUP = Setup("siblings", {"orders": ORDERS}, {"orders": ROWS}, TOTALS, ())


def test_siblings_read_a_change_once() -> None:
    with world_of(SETUP) as world:
        world.create()
        sibling(world, "second", "SELECT id, region FROM orders WHERE amount > 5")
        sibling(world, "third", "SELECT COUNT(*) AS orders FROM orders")
        compute = world.process.compute
        for dml in ("INSERT INTO orders VALUES (9, 'south', 8)", "UPDATE orders SET region = 'east' WHERE id < 3"):
            world.change_sources(dml)
            before = compute.changes_read
            done = [world.process.refresh(name) for name in (FIRST, "second", "third")]
            assert [each.outcome.value for each in done] == ["DIFFERENTIAL"] * 3
            assert compute.changes_read == before + 1
            assert done[2].rows_inserted + done[2].rows_updated == (1 if "INSERT" in dml else 0)
        world._check(FIRST, "siblings")
        expected = world.lake.recompute("SELECT id, region FROM orders WHERE amount > 5", world.table("second").columns)
        second = world.table("second")
        held = world.process.compute.rows_of(second.path, _newest(second.path), second.columns)
        assert sorted(map(repr, held)) == sorted(map(repr, expected))


def _newest(path: str) -> int:
    from engine.lake import log

    return log.newest_version(path)


def test_a_restored_source_is_read_anew() -> None:
    with world_of(SETUP) as world:
        world.create()
        sibling(world, "second", "SELECT id, region FROM orders")
        world.change_sources("INSERT INTO orders VALUES (9, 'south', 8)")
        world.process.refresh(FIRST)
        before = world.process.compute.changes_read
        world.sources["orders"].rewrite_newest()
        assert world.process.refresh("second").outcome.value == "DIFFERENTIAL"
        assert world.process.compute.changes_read == before + 1
