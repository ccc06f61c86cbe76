"""The stamp survives the log, and the log tells who else wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from engine.errors import CommitConflict, InternalError, NegativeMultiplicity, StorageFull
from engine.lake import apply, log, tables
from engine.lake.apply import OPERATION, Counts
from engine.lake.stamp import Stamp, find_refresh, foreign_change, last_stamp
from engine.records import Outcome, SourceVersion

ROWS = pa.table({"k": pa.array([1, 2, None]), "v": pa.array(["a", "b", "c"])})
STAMP = Stamp(
    st_id="st-1",
    refresh_id="r-1",
    sequence=1,
    outcome=Outcome.FULL,
    frontier={"it's": SourceVersion(7, "17-ab", "id-1"), "o": SourceVersion(0, "", "id-2")},
    base_frontier={},
    fingerprint="f",
    lease_epoch=3,
    on_version=0,
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "st")
    write_deltalake(path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    return path


def test_a_stamp_comes_back_as_it_went() -> None:
    assert Stamp.from_json(STAMP.to_json()) == STAMP
    newer = json.loads(STAMP.to_json())
    newer["trickle"]["format"] = 2
    for text in (None, "", "nightly load", '{"trickle": 1}', '{"trickle": {}}', json.dumps(newer)):
        assert Stamp.from_json(text) is None


def test_the_last_stamp_is_found_under_other_commits(path: str) -> None:
    assert last_stamp(path, log.newest_version(path)) is None
    apply.append(tables.pin(path), ROWS, STAMP)
    tables.set_properties(path, {"owner": "me"})
    found = last_stamp(path, log.newest_version(path))
    assert found is not None
    assert (found.stamp, found.version) == (STAMP, 1)
    assert foreign_change(path, 1, 2) is None
    assert last_stamp(path, 0) is None
    write_deltalake(
        path, ROWS, mode="append", commit_properties=CommitProperties(custom_metadata={"userMetadata": "x"})
    )
    assert "version 3" in (foreign_change(path, 1, 3) or "")
    assert "delta-rs" in (foreign_change(path, 1, 3) or "")


def test_a_refresh_is_found_by_its_id(path: str) -> None:
    apply.append(tables.pin(path), ROWS, STAMP)
    apply.empty(tables.pin(path), replace(STAMP, refresh_id="r-2", sequence=2, outcome=Outcome.NO_DATA))
    assert find_refresh(path, "r-2", 0) == 2
    assert find_refresh(path, "r-1", 1) is None
    assert find_refresh(path, "r-3", 0) is None


def change(*rows: tuple[str, int | None, str | None]) -> pa.Table:
    return pa.table(
        {
            OPERATION: pa.array([row[0] for row in rows]),
            "k": pa.array([row[1] for row in rows], pa.int64()),
            "v": pa.array([row[2] for row in rows], pa.string()),
        }
    )


def stored(path: str) -> list[tuple[int | None, str]]:
    table = pa.table(DeltaTable(path).scan().read_all())
    return sorted(((row["k"], row["v"]) for row in table.to_pylist()), key=repr)


def test_only_one_of_two_that_hold_the_same_version_commits(path: str) -> None:
    one, other = tables.pin(path), tables.pin(path)
    changes = change(("U", None, "x"), ("I", 5, "y"), ("D", 1, None))
    commit = apply.merge(one, changes, ("k",), STAMP, Counts(1, 1, 1))
    assert (commit.version, commit.inserted, commit.updated, commit.deleted) == (1, 1, 1, 1)
    second = replace(STAMP, sequence=2)
    with pytest.raises(CommitConflict) as caught:
        apply.merge(other, changes, ("k",), second, Counts(1, 1, 1))
    assert caught.value.retryable
    with pytest.raises(CommitConflict):
        apply.append(other, ROWS, second)
    with pytest.raises(CommitConflict):
        apply.empty(other, second)
    assert stored(path) == [(2, "b"), (5, "y"), (None, "x")]


def test_a_sequence_is_used_once(path: str) -> None:
    apply.append(tables.pin(path), ROWS, STAMP)
    for again in (STAMP, replace(STAMP, refresh_id="r-9"), replace(STAMP, refresh_id="r-0", sequence=0)):
        with pytest.raises(CommitConflict):
            apply.append(tables.pin(path), ROWS, again)
    assert tables.pin(path).version == 1


def test_what_does_not_fit_is_refused_before_the_commit(path: str) -> None:
    for changes in (change(("U", 9, "x")), change(("D", 9, None)), change(("I", None, "x"))):
        with pytest.raises(NegativeMultiplicity):
            apply.merge(tables.pin(path), changes, ("k",), STAMP, Counts(deleted=1))
    with pytest.raises(NegativeMultiplicity, match="two rows have one identity"):
        apply.merge(tables.pin(path), change(("U", 1, "x"), ("U", 1, "y")), ("k",), STAMP, Counts(0, 2, 0))
    with pytest.raises(InternalError):
        apply.append(tables.pin(path), ROWS.select(["k"]), STAMP)
    assert tables.pin(path).version == 0


def test_a_full_disk_is_said_to_be_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deltalake.write_deltalake", full)
    with pytest.raises(StorageFull) as caught:
        apply.append(tables.pin(path), ROWS, STAMP)
    assert caught.value.retryable
