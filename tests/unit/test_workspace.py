"""Making and finding workspaces: private, whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine import workspace as workspace_module
from engine.errors import AlreadyExists, ReadOnly, StorageFull, WorkspaceMissing
from engine.names import check_name, same_name
from engine.workspace import Workspace
from tests.support.permissions import open_the_way_to

ROOT = Path(__file__).resolve().parents[2]


def test_a_new_workspace_is_private_and_complete(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "deep" / "shop")
    for folder in (made.root, made.state, made.warehouse, made.history, made.logs, made.snapshots):
        assert folder.is_dir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert made.config_file.read_text().startswith("# The settings")
    assert sorted(each.name for each in made.root.iterdir()) == [".trickle", "trickle.toml"]
    assert made.catalog_file == made.root / ".trickle" / "catalog.db"


def test_an_existing_folder_keeps_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text("SELECT 1")
    (tmp_path / "trickle.toml").write_text("[ui]\ntheme = 'day'\n")
    Workspace.create(tmp_path)
    assert (tmp_path / "queries.sql").read_text() == "SELECT 1"
    assert (tmp_path / "trickle.toml").read_text() == "[ui]\ntheme = 'day'\n"


def test_an_existing_workspace_is_refused_and_untouched(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path)
    made.config_file.write_text("# mine\n")
    with pytest.raises(AlreadyExists) as caught:
        Workspace.create(tmp_path)
    assert caught.value.hint
    assert made.config_file.read_text() == "# mine\n"


def test_it_is_found_from_below(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "shop")
    below = made.root / "a" / "b"
    below.mkdir(parents=True)
    assert Workspace.find(below) == made
    assert Workspace.find(made.root) == made
    assert Workspace.find(made.state) == made


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing) as caught:
        Workspace.find(tmp_path / "nowhere")
    assert "trickle init" in (caught.value.hint or "")
    (tmp_path / "trickle.toml").write_text("")
    with pytest.raises(WorkspaceMissing) as caught:
        Workspace.find(tmp_path)
    assert "trickle.toml" in (caught.value.detail or "")


@pytest.mark.parametrize("broken", ["fill", "write_atomically", "_rename_new"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, fresh: bool) -> None:
    root = tmp_path / "shop"
    if not fresh:
        root.mkdir()
        (root / "mine.txt").write_text("x")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if broken != "fill":
        monkeypatch.setattr(workspace_module, broken, full)
    with pytest.raises(StorageFull) as caught:
        Workspace.create(root, fill=full if broken == "fill" else None)
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == ([] if fresh else [root, root / "mine.txt"])


def test_what_fills_it_sees_its_places(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "shop", fill=lambda scaffold: scaffold.catalog_file.write_text("x"))
    assert made.catalog_file.read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    root = tmp_path / "theirs"
    root.mkdir(mode=0o755)
    open_the_way_to(tmp_path)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from engine.workspace import Workspace\n"
        "import engine.config\n"
        "os.setuid(65534)\n"
        "from engine.errors import TrickleError\n"
        "try:\n    Workspace.create(Path(sys.argv[2]))\n"
        "except TrickleError as error:\n    print(error.code, '|', error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(root)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(ReadOnly.__name__ + " | ")
    assert list(root.iterdir()) == []


def test_two_at_once_make_one(tmp_path: Path) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(4)

    def make(at: int) -> None:
        barrier.wait()
        try:
            Workspace.create(tmp_path / "shop")
            outcomes.append("made")
        except (AlreadyExists, OSError, StorageFull) as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=make, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("made") == 1
    assert outcomes.count("AlreadyExists") == 3
    Workspace.find(tmp_path / "shop")
    assert sorted(each.name for each in (tmp_path / "shop").iterdir()) == [".trickle", "trickle.toml"]


def test_names() -> None:
    for good in ("a", "_a", "A1_b", "x" * 128):
        assert check_name(good) == good
    assert same_name("Orders", "oRDERS")
    assert not same_name("orders", "order")
