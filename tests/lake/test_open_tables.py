"""A table's files from one version to the next, and tables that stay open, held against opening them anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from engine.lake import files, opened

Commit = Callable[[str], object]


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


COMMITS: dict[str, Commit] = {
    "append": lambda path: write_deltalake(path, rows(7, 8), mode="append"),
    "append nothing": lambda path: write_deltalake(path, rows(), mode="append"),
    "overwrite": lambda path: write_deltalake(path, rows(9), mode="overwrite"),
    "delete": lambda path: DeltaTable(path).delete("k = 1"),
    "delete all": lambda path: DeltaTable(path).delete(),
    "update": lambda path: DeltaTable(path).update(updates={"k": "k + 1"}, predicate="k < 3"),
    "optimize": lambda path: DeltaTable(path).optimize.compact(),
    "restore": lambda path: DeltaTable(path).restore(1),
    "properties": lambda path: DeltaTable(path).alter.set_table_properties({"x": "y"}, raise_if_not_exists=False),
    "checkpoint": lambda path: (DeltaTable(path).create_checkpoint(), write_deltalake(path, rows(5), mode="append")),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    for keys in ((1, 2), (3,), (4, 5, 6)):
        write_deltalake(path, rows(*keys), mode="append", configuration={"delta.enableChangeDataFeed": "true"})
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions that delta-rs was asked for."""
    versions: list[int] = []
    ask = files._asked

    def noting(path: str, version: int) -> files.Files:
        versions.append(version)
        return ask(path, version)

    monkeypatch.setattr(files, "_asked", noting)
    return versions


@pytest.mark.parametrize("first", COMMITS)
@pytest.mark.parametrize("second", ["append", "delete", "overwrite"])
def test_files_follow_from_the_commits_between(table: str, first: str, second: str, asked: list[int]) -> None:
    before = files.of(table, DeltaTable(table).version())
    assert len(before.sizes) == 3
    COMMITS[first](table)
    COMMITS[second](table)
    version = DeltaTable(table).version()
    found = files.of(table, version)
    assert asked == [2]
    assert found == files._asked(table, version)
    assert found.size_bytes == sum((Path(table) / name).stat().st_size for name in found.sizes)


def test_each_version_is_looked_at_once(table: str, asked: list[int]) -> None:
    for version in (2, 2, 1, 0, 2):
        assert len(files.of(table, version).sizes) == version + 1
    assert asked == [2, 1, 0]  # never backwards


def test_another_table_at_the_same_place(table: str, asked: list[int]) -> None:
    files.of(table, 2)
    shutil.rmtree(table)
    for keys in ((1,), (2,), (3,), (4,)):
        write_deltalake(table, rows(*keys), mode="append")
    assert files.of(table, 3) == files._asked(table, 3)
    assert asked[:2] == [2, 3]


def test_commits_that_were_cleaned_away(table: str, asked: list[int]) -> None:
    files.of(table, 2)
    COMMITS["append"](table)
    COMMITS["append"](table)
    DeltaTable(table).create_checkpoint()
    (Path(table) / "_delta_log" / f"{3:020}.json").unlink()
    assert files.of(table, 4) == files._asked(table, 4)
    assert asked[:2] == [2, 4]


@pytest.mark.parametrize("commit", COMMITS)
def test_an_open_table_is_brought_up_to_date(table: str, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened.at(table, 2) as first:
        assert feed(first, 0, 2) == feed(DeltaTable(table), 0, 2)
    COMMITS[commit](table)
    version = DeltaTable(table).version()
    with opened.at(table, version) as handle:
        assert handle is first
        assert feed(handle, 3, version) == feed(DeltaTable(table), 3, version)
        assert pa.table(handle.get_add_actions()).equals(pa.table(DeltaTable(table).get_add_actions()))


def feed(handle: DeltaTable, first: int, last: int) -> list[dict[str, object]]:
    found = pa.table(handle.load_cdf(starting_version=first, ending_version=last).read_all()).to_pylist()
    return sorted(found, key=repr)


def test_an_open_table_is_nobody_elses(table: str) -> None:
    with opened.at(table, 2) as one, opened.at(table, 2) as other:
        assert one is not other


def test_an_older_version_is_opened(table: str) -> None:
    with opened.at(table, 2) as first:
        pass
    with opened.at(table, 1) as handle:
        assert handle.version() == 1
    with opened.at(table, 2) as handle:
        assert handle is first
    COMMITS["append"](table)
    COMMITS["append"](table)
    with opened.at(table, 3) as handle:
        assert handle.version() == 3  # although there is a fourth


def test_an_open_table_that_was_replaced(table: str) -> None:
    with opened.at(table, 2) as first:
        pass
    shutil.rmtree(table)
    for keys in ((1,), (2,), (30,)):
        write_deltalake(table, rows(*keys), mode="append", configuration={"delta.enableChangeDataFeed": "true"})
    with opened.at(table, 2) as handle:
        assert handle is not first
        assert {row["k"] for row in feed(handle, 0, 2)} == {1, 2, 30}
