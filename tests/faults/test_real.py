"""A few faults on real Spark, others every day; `python -m tests.faults real` has all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from engine.lake.session import SparkHost
from tests.faults.children import Nursery
from tests.faults.real import Way, all_combos, combos_of, run
from tests.faults.real_world import CASES, World, make_workspace
from tests.faults.witness import Broken, Watched, Witness, left_by_full_refreshes, strangers


def test_the_promise_survives_what_happens_today(tmp_path: Path, spark_host: SparkHost) -> None:
    day = int(os.environ.get("TRICKLE_FAULTS_DAY") or datetime.now(UTC).toordinal())
    print(f"TRICKLE_FAULTS_DAY={day} has the same faults again")
    combos = combos_of(day)
    workspace = make_workspace(tmp_path / "workspace")
    nursery = Nursery(workspace, coming=sum(combo.own_jvm for combo in combos))
    world = World(workspace, dict.fromkeys(combo.case for combo in combos))
    try:
        results = [run(world, nursery, combo) for combo in combos]
    finally:
        nursery.close()
        world.close()
    assert [f"{result.combo}: {result.broken}" for result in results if result.broken] == []


def test_every_point_of_every_strategy_has_its_turn() -> None:
    combos = all_combos()
    for way in (Way.KILL, Way.STALL):
        assert {(each.case, each.point) for each in combos if each.way is way} == {
            (case, point) for case in CASES for point in case.points
        }
    # a JVM of its own comes last: the last of them is the one that others lived in
    assert sorted(combos, key=lambda each: each.own_jvm) == combos


class Forged:
    """A stream table that no engine made, so that it can be wrong."""

    def __init__(self, folder: Path) -> None:
        self.table = Watched(folder / "copy", "SELECT n FROM numbers", {"numbers": folder / "numbers"})
        self.witness = Witness()
        for number in (1, 2):
            self.insert(number)
            self.refresh(f"refresh {number}", number, {"numbers": number - 1}, number)

    def insert(self, number: int) -> None:
        write_deltalake(self.table.sources["numbers"], pa.table({"n": [number]}), mode="append")

    def refresh(self, refresh_id: str, sequence: int, frontier: dict[str, int], *numbers: int) -> None:
        said = {"st_id": "it", "refresh_id": refresh_id, "sequence": sequence}
        stamp = {"trickle": {**said, "frontier": {name: [at, "", ""] for name, at in frontier.items()}}}
        properties = CommitProperties(
            {"userMetadata": json.dumps(stamp)}, app_transactions=[Transaction("it", sequence)]
        )
        rows = pa.table({"n": pa.array(numbers, pa.int64())})
        write_deltalake(self.table.path, rows, mode="append", commit_properties=properties)

    def rewrite(self) -> None:
        file = self.table.path / "_delta_log" / f"{1:020d}.json"
        file.write_text(file.read_text().replace("refresh 2", "refresh b"))


WRONGS: dict[str, Callable[[Forged], None]] = {
    "differ": lambda forged: write_deltalake(forged.table.path, pa.table({"n": [2]}), mode="append"),
    "two stamps": lambda forged: forged.refresh("refresh 2", 3, {"numbers": 1}),
    "the sequences are": lambda forged: forged.refresh("refresh 3", 4, {"numbers": 1}),
    "went back": lambda forged: forged.refresh("refresh 3", 3, {"numbers": 0}),
    "was one commit and is another": Forged.rewrite,
}


@pytest.mark.parametrize("complaint", WRONGS)
def test_the_witness_sees_what_is_wrong(tmp_path: Path, complaint: str) -> None:
    forged = Forged(tmp_path)
    assert forged.witness.look_caught_up(forged.table) == 1
    WRONGS[complaint](forged)
    with pytest.raises(Broken, match=complaint):
        forged.witness.look(forged.table)


def test_the_witness_sees_what_is_late(tmp_path: Path) -> None:
    forged = Forged(tmp_path)
    forged.insert(3)
    assert forged.witness.look(forged.table) == 1
    with pytest.raises(Broken, match="the sources now"):
        forged.witness.look_caught_up(forged.table)


def test_strangers_are_told_from_what_is_deltas_own(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "there", pa.table({"n": [1]}))
    DeltaTable(tmp_path / "there").delete("n = 1")
    (tmp_path / "there" / "part-of-a-killed-writer.parquet").touch()
    assert strangers(tmp_path, {"there"}) == []
    (tmp_path / "there" / "notes.txt").touch()
    (tmp_path / ".dropped-folder").mkdir()
    assert strangers(tmp_path, {"there"}) == [".dropped-folder", "there/notes.txt"]


def test_what_a_killed_full_refresh_left_is_strange_after_the_next(tmp_path: Path) -> None:
    forged = Forged(tmp_path / "warehouse")
    there = forged.table.path
    files = {sequence: there / f"full-{sequence}-it" / "part-0.parquet" for sequence in (2, 3)}
    for file in files.values():
        file.parent.mkdir()
        file.touch()
    warehouse, tables = there.parent, {"copy", "numbers"}
    assert strangers(warehouse, tables) == []
    assert left_by_full_refreshes(there) == [f"full-{n}-it/part-0.parquet" for n in (2, 3)]
    commit = there / "_delta_log" / f"{2:020d}.json"
    said = {"userMetadata": json.dumps({"trickle": {"sequence": 3}}), "operationParameters": {"mode": "Overwrite"}}
    added = {"path": "full-3-it/part-0.parquet"}
    commit.write_text(json.dumps({"commitInfo": said}) + "\n" + json.dumps({"add": added}) + "\n")
    (files[3].parent / ".part-0.parquet.crc").touch()
    assert strangers(warehouse, tables) == ["copy/full-2-it/part-0.parquet"]
    assert left_by_full_refreshes(there) == ["full-2-it/part-0.parquet"]
