"""Files between Spark and the commit: what killed and failed full refreshes leave, and who removes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from engine.errors import CommitConflict, RefreshFailed
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.lake import apply, data_files, tables
from engine.lake.stamp import Stamp
from engine.records import Outcome

ROWS = pa.table({"k": [1, 2]})


@pytest.fixture
def st(tmp_path: Path) -> str:
    write_deltalake(tmp_path / "st", ROWS)
    return str(tmp_path / "st")


def stamp(sequence: int, refresh_id: str = "a") -> Stamp:
    return Stamp("st", f"{refresh_id}-{sequence}", sequence, Outcome.FULL, {}, {}, "fp", 1, 0)


def save(folder: str) -> None:
    pq.write_table(ROWS, f"{folder}/part-{len(list(Path(folder).iterdir()))}.parquet")


def overwrite(st: str, written: Stamp) -> None:
    """As `overwrite_frame` does it, without Spark."""
    apply.overwrite(tables.pin(st), save, written)
    data_files.settle_all(st, written)


def dies(st: str, written: Stamp) -> None:
    with FAILPOINTS.armed(Arming(Failpoint.COMMIT, Action.CRASH)), pytest.raises(SimulatedCrash):
        apply.overwrite(tables.pin(st), save, written)


def folders(st: str) -> list[str]:
    return sorted(path.name for path in Path(st).glob("full-*"))


def uncommitted(st: str) -> list[str]:
    return sorted(path.parent.name for path in Path(st).glob("full-*/_uncommitted"))


def test_the_folder_is_named_by_sequence_and_refresh(st: str) -> None:
    overwrite(st, stamp(1))
    assert folders(st) == ["full-1-a-1"]
    assert uncommitted(st) == []
    assert len(DeltaTable(st).file_uris()) == 1


def test_the_next_one_removes_what_the_killed_left(st: str) -> None:
    """Of the same sequence, because a refresh that never committed has used none."""
    overwrite(st, stamp(1))
    dies(st, stamp(2, "killed"))
    assert folders(st) == ["full-1-a-1", "full-2-killed-2"]
    overwrite(st, stamp(2))
    # the one before is history, which may be read
    assert folders(st) == ["full-1-a-1", "full-2-a-2"]
    assert DeltaTable(st, version=1).to_pyarrow_table().num_rows == 2


def test_who_died_before_its_files_were_all_there_left_their_mark(st: str) -> None:
    def killed(folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "part-0.parquet").touch()
        raise SimulatedCrash("writing")

    with pytest.raises(SimulatedCrash):
        apply.overwrite(tables.pin(st), killed, stamp(1, "killed"))
    assert folders(st) == ["full-1-killed-1"]
    overwrite(st, stamp(1))
    assert folders(st) == ["full-1-a-1"]


def test_who_died_after_its_commit_keeps_its_files(st: str) -> None:
    apply.overwrite(tables.pin(st), save, stamp(1))
    assert uncommitted(st) == ["full-1-a-1"]
    overwrite(st, stamp(2))
    assert (folders(st), uncommitted(st)) == (["full-1-a-1", "full-2-a-2"], [])
    assert DeltaTable(st, version=1).to_pyarrow_table().num_rows == 2


def test_files_of_a_commit_whose_answer_was_lost_stay(st: str) -> None:
    with FAILPOINTS.armed(Arming(Failpoint.COMMIT, Action.AMBIGUOUS)), pytest.raises(CommitConflict):
        apply.overwrite(tables.pin(st), save, stamp(1))
    assert (folders(st), uncommitted(st)) == (["full-1-a-1"], [])
    assert DeltaTable(st).to_pyarrow_table().num_rows == 2


def test_who_is_refused_takes_its_files_back(st: str) -> None:
    def overtaken(folder: str) -> None:
        save(folder)
        overwrite(st, stamp(1, "faster"))
        save(folder)

    with pytest.raises(CommitConflict):
        apply.overwrite(tables.pin(st), overtaken, stamp(1))
    assert folders(st) == ["full-1-faster-1"]


def test_who_loses_its_files_while_it_writes_is_told_that_it_was_overtaken(st: str) -> None:
    def overtaken(folder: str) -> None:
        save(folder)
        overwrite(st, stamp(1, "faster"))
        raise FileNotFoundError(folder)

    with pytest.raises(CommitConflict):
        apply.overwrite(tables.pin(st), overtaken, stamp(1))


def test_a_failure_leaves_nothing(st: str) -> None:
    def fails(folder: str) -> None:
        save(folder)
        raise RuntimeError("no")

    with pytest.raises(RefreshFailed):
        apply.overwrite(tables.pin(st), fails, stamp(1))
    assert folders(st) == []


def test_files_of_who_goes_on_from_here_are_left_alone(st: str) -> None:
    dies(st, stamp(3, "later"))
    overwrite(st, stamp(2))
    assert folders(st) == ["full-2-a-2", "full-3-later-3"]


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_a_log_no_longer_tells_of_is_left_alone(st: str, forgotten: bool) -> None:
    dies(st, stamp(2, "killed"))
    apply.empty(tables.pin(st), replace(stamp(3), outcome=Outcome.NO_DATA))
    if forgotten:
        DeltaTable(st).create_checkpoint()
        (Path(st) / "_delta_log" / f"{0:020d}.json").unlink()
    overwrite(st, stamp(4))
    assert folders(st) == [*(["full-2-killed-2"] if forgotten else []), "full-4-a-4"]
