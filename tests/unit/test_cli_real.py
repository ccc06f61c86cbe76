"""The command line on the real engine, as far as that goes without Spark: bad workspaces and bad requests."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.catalog import SCHEMA_VERSION, Catalog
from engine.cli.main import main
from engine.lake import apply, tables
from engine.lake.stamp import Stamp
from engine.records import Column, Outcome, RefreshMode, StreamTable
from engine.refresh import carried
from engine.workspace import Workspace
from tests.support import delta_files

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in [name for name in os.environ if name.startswith("TRICKLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert call("init", "shop", "--name", "My shop")[0] == 0
    monkeypatch.chdir(tmp_path / "shop")
    return call


@pytest.fixture
def catalog_file(run: Run) -> Path:
    return Workspace.find(Path.cwd()).catalog_file


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A Delta table with a Change Data Feed."""
    import pyarrow
    from deltalake import write_deltalake

    path = tmp_path / "orders"
    rows = pyarrow.table({"id": pyarrow.array([1, 2], pyarrow.int64())})
    write_deltalake(path, rows, configuration={"delta.enableChangeDataFeed": "true"})
    return path


def add_stream_table(catalog_file: Path, name: str, *sources: str) -> None:
    catalog = Catalog.open(catalog_file)
    columns = (Column("id", "bigint"),)
    now = datetime.now(UTC)
    catalog.add_stream_table(
        StreamTable(
            name, name, "SELECT 1", RefreshMode.AUTO, "30s", 30.0, f"/nowhere/{name}", "me", now, sources, columns, "f"
        )
    )
    catalog.close()


def test_a_new_workspace(run: Run) -> None:
    code, out, err = run("status")
    assert (code, err) == (0, "")
    assert out.startswith("My shop: 0 stream tables")
    assert json.loads(run("status", "--json")[1])["tables"] == []
    assert run("source", "list") == (0, "no sources yet: trickle source add NAME --path PATH\n", "")
    assert run("history") == (0, "no refreshes yet\n", "")
    assert json.loads(run("version", "--json")[1])["schema"] == SCHEMA_VERSION


def test_sources_come_and_go(run: Run, orders: Path) -> None:
    assert run("source", "add", "orders", "--path", str(orders))[0] == 0
    assert "orders" in run("source", "list")[1]
    code, _, err = run("source", "add", "ORDERS", "--path", str(orders))
    assert code == 3
    assert "exists already" in err
    assert "hint: choose another name" in err
    assert run("source", "drop", "Orders")[0] == 0
    code, _, err = run("source", "drop", "orders")
    assert code == 3
    assert "there is no source orders" in err


def test_a_path_without_a_delta_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for path in ("nowhere", "empty", "file"):
        code, out, err = run("source", "add", "x", "--path", str(tmp_path / path))
        assert (code, out) == (3, ""), path
        assert "hint: " in err
    assert "no sources yet" in run("source", "list")[1]


def test_dropping_what_others_read(run: Run, orders: Path, catalog_file: Path) -> None:
    run("source", "add", "orders", "--path", str(orders))
    add_stream_table(catalog_file, "revenue", "orders")
    add_stream_table(catalog_file, "top", "revenue")
    for words, reader in ((("source", "drop", "orders"), "revenue"), (("drop", "revenue"), "top")):
        code, _, err = run(*words)
        assert code == 3
        assert reader in err
        assert "hint: " in err
    assert "revenue" in run("status")[1]


def test_unknown_names(run: Run, catalog_file: Path) -> None:
    add_stream_table(catalog_file, "revenue")
    for words in (("status", "revenu"), ("show", "revenu"), ("history", "revenu"), ("pause", "revenu")):
        code, _, err = run(*words)
        assert code == 3
        assert "hint: did you mean revenue?" in err


def test_pausing_is_remembered(run: Run, catalog_file: Path) -> None:
    add_stream_table(catalog_file, "revenue")
    assert run("pause", "Revenue") == (0, "paused revenue\n", "")
    assert json.loads(run("status", "revenue", "--json")[1])["state"] == "paused"
    assert run("sql", "ALTER STREAM TABLE revenue RESUME")[0] == 0
    assert json.loads(run("status", "revenue", "--json")[1])["state"] != "paused"


def test_a_newer_workspace_is_shown_and_not_changed(run: Run, catalog_file: Path) -> None:
    add_stream_table(catalog_file, "revenue")
    with sqlite3.connect(catalog_file) as newer:
        newer.execute("PRAGMA user_version = 7")
    newer.close()
    before = catalog_file.read_bytes()
    assert "revenue" in run("status")[1]
    for words in (("pause", "revenue"), ("drop", "revenue"), ("source", "add", "x", "--path", "y")):
        code, out, err = run(*words)
        assert (code, out) == (3, "")
        assert "newer Trickle" in err
        assert "hint: upgrade" in err
    assert catalog_file.read_bytes() == before


@pytest.mark.parametrize("length", [0, 50, 5000])
def test_a_truncated_catalog(run: Run, catalog_file: Path, length: int) -> None:
    catalog_file.write_bytes(catalog_file.read_bytes()[:length])
    for words in (("status",), ("pause", "x"), ("source", "list")):
        code, out, err = run(*words)
        assert (code, out) == (3, "")
        assert "is damaged" in err
        assert "hint: move it away" in err
    assert catalog_file.stat().st_size == length


def test_a_bad_setting_stops_everything_and_is_named(run: Run) -> None:
    Path("trickle.toml").write_text("[refresh]\n\ndefault_schedul = '1s'\n")
    for words in (("status",), ("source", "list"), ("config", "list")):
        code, _, err = run(*words)
        assert code == 2
        assert "trickle.toml, line 3" in err
        assert "hint: did you mean refresh.default_schedule?" in err


def test_repair_finds_what_the_catalog_lost(run: Run, catalog_file: Path, orders: Path) -> None:
    assert run("repair") == (0, "nothing to repair\n", "")
    assert run("source", "add", "orders", "--path", str(orders))[0] == 0
    add_stream_table(catalog_file, "copy", "orders")
    catalog = Catalog.open(catalog_file)
    table = catalog.get_stream_table("copy")
    folder = catalog_file.parent / "warehouse" / "copy"
    delta_files.create_table(folder, table.columns, carried.properties(table, catalog.sources()))
    stamp = Stamp(table.id, "r", 1, Outcome.FULL, {}, {}, table.fingerprint, 1, on_version=0)
    apply.empty(tables.pin(str(folder)), stamp)
    catalog.close()
    for file in catalog_file.parent.glob("catalog.db*"):
        file.unlink()
    (catalog_file.parent / "warehouse" / "strange").mkdir()
    code, out, _ = run("repair")
    assert code == 1, "what lies in the folder is for a person to decide"
    assert "copy: the stream table is known again" in out
    assert "orders: the source is known again" in out
    assert "strange: its folder cannot be read" in out
    (catalog_file.parent / "warehouse" / "strange").rmdir()
    assert run("repair", "copy")[:2] == (0, "nothing to repair\n")
    assert "1 stream table" in run("status")[1]
