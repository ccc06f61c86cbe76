"""The newest version and which commit it is, without Spark and almost for nothing."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from engine.errors import NotFound, SourceDropped
from engine.lake import log, tables
from engine.lake.heads import HeadReader, identity_of
from engine.records import Column

ROWS = pa.table({"k": [1]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "it's a table")
    for _ in range(3):
        write_deltalake(path, ROWS, mode="append")
    return path


def test_a_head_is_version_commit_and_table(path: str) -> None:
    heads = HeadReader()
    first = heads.head(path)
    assert first.version == 2
    assert first.identity == identity_of(path, 2)
    assert first.identity != identity_of(path, 1)
    assert first.table_id == str(DeltaTable(path).metadata().id)
    assert first.at is not None
    write_deltalake(path, ROWS, mode="append")
    write_deltalake(path, ROWS, mode="append")
    second = heads.head(path)
    assert (second.version, second.table_id) == (4, first.table_id)
    assert second == HeadReader().head(path) == heads.head(Path(path).as_uri())


def test_a_writer_may_space_its_lines_as_it_likes(path: str) -> None:
    head = HeadReader().head(path)
    for version in range(3):
        file = log.commit_file(path, version)
        spaced = [
            json.dumps(json.loads(line), indent=None, separators=(", ", " : "))
            for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join("{ " + line[1:] for line in spaced))
    again = HeadReader().head(path)
    assert (again.version, again.table_id, again.witness, again.at) == (2, head.table_id, head.witness, head.at)
    assert log.definition(path).schema


def test_an_unchanged_head_costs_two_looks(path: str) -> None:
    heads = HeadReader()
    heads.head(path)
    times = []
    for _ in range(200):
        started = time.perf_counter()
        heads.head(path)
        times.append(time.perf_counter() - started)
    assert sorted(times)[100] < 0.0005


def test_another_table_behind_the_same_versions_is_seen(path: str, tmp_path: Path) -> None:
    heads = HeadReader()
    before = heads.head(path)
    shutil.rmtree(path)
    for _ in range(3):
        write_deltalake(path, ROWS, mode="append")
    after = heads.head(path)
    assert after.version == before.version
    assert after.table_id != before.table_id
    assert after.identity != before.identity


def test_a_table_that_went_back_is_seen(path: str, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(path, backup)
    heads = HeadReader()
    write_deltalake(path, ROWS, mode="append")
    assert heads.head(path).version == 3
    shutil.rmtree(path)
    shutil.copytree(backup, path)
    assert heads.head(path).version == 2
    write_deltalake(path, pa.table({"k": [2]}), mode="append")
    assert heads.head(path).version == 3


def test_a_table_that_goes_and_one_that_never_was(path: str, tmp_path: Path) -> None:
    heads = HeadReader()
    heads.head(path)
    shutil.rmtree(path)
    with pytest.raises(SourceDropped):
        heads.head(path)
    with pytest.raises(NotFound):
        heads.head(path)
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("")
    for missing in ("nowhere", "plain", "file"):
        with pytest.raises(NotFound) as caught:
            HeadReader().head(str(tmp_path / missing))
        assert caught.value.hint


def test_a_log_that_was_cleaned_behind_a_checkpoint(path: str) -> None:
    table_id = HeadReader().head(path).table_id
    DeltaTable(path).create_checkpoint()
    for version in range(2):
        log.commit_file(path, version).unlink()
    assert identity_of(path, 1) is None
    head = HeadReader().head(path)
    assert (head.version, head.table_id) == (2, table_id)
    assert tables.columns(path) == (Column("k", "bigint"),)
    write_deltalake(path, ROWS, mode="append")
    assert HeadReader().head(path).version == 3
    # nobody can tell any more which commit the checkpoint stands for
    DeltaTable(path).create_checkpoint()
    log.commit_file(path, 3).unlink()
    cleaned = HeadReader().head(path)
    assert (cleaned.version, cleaned.identity, cleaned.table_id) == (3, "", table_id)
