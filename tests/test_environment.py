"""The first minute on a machine: what is missing is said in one line, and nothing is made by halves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(venv: Path, env: dict[str, str], python: str = "") -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "scripts/environment.sh"), str(venv), python]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("hidden", ["venv", "ensurepip"])
def test_a_python_without_the_parts_that_make_environments(tmp_path, hidden):
    """Debian's python3 comes without them."""
    (tmp_path / f"{hidden}.py").write_text("raise ImportError('not installed')\n")
    done = run(tmp_path / "made", {**os.environ, "PYTHONPATH": str(tmp_path)}, sys.executable)
    assert done.returncode == 1
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    assert len(done.stderr.splitlines()) == 1
    assert package in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.fixture
def tools(tmp_path):
    """A PATH with nothing but what the script itself needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "dirname", "cat", "sed", "cksum", "rm", "tee", "tail"):
        (folder / tool).symlink_to(shutil.which(tool) or pytest.fail(f"no {tool}"))
    return folder


def test_a_machine_without_python(tmp_path, tools):
    done = run(tmp_path / "made", {"PATH": str(tools)})
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; this machine has no python3" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_machine_whose_python_is_too_old(tmp_path, tools):
    old = tools / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" || exit 1\n')
    old.chmod(0o755)
    done = run(tmp_path / "made", {"PATH": str(tools)})
    assert done.returncode == 1
    assert "this machine has Python 3.9.2" in done.stderr


def test_an_environment_that_is_right_costs_nothing(tmp_path):
    """A later start finds the stamp and neither installs nor says anything."""
    copy = tmp_path / "copy"
    (copy / "scripts").mkdir(parents=True)
    for file in ("pyproject.toml", "constraints.txt", "scripts/environment.sh"):
        shutil.copy(ROOT / file, copy / file)
    checksum = ["sh", "-c", "cat pyproject.toml constraints.txt scripts/environment.sh | cksum"]
    content = subprocess.run(checksum, cwd=copy, capture_output=True, text=True, check=True).stdout.strip()
    version = f"Python {sys.version.split()[0]}"
    (copy / "env/bin").mkdir(parents=True)
    (copy / "env/bin/trickle").write_text("#!/bin/sh\n")
    (copy / "env/bin/trickle").chmod(0o755)
    (copy / "env/.trickle-stamp").write_text(f"{copy} env {version}\n{content}\n")
    # with nothing to install from, doing anything at all would fail
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/ensurepip.py").write_text("raise ImportError('not installed')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "hidden")}

    def start() -> tuple[int, str]:
        command = ["sh", "scripts/environment.sh", "env", sys.executable]
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert start() == (0, "")
    with (copy / "constraints.txt").open("a") as constraints:
        constraints.write("one-more==1.0\n")
    code, said = start()
    assert code == 1
    assert "cannot make virtual environments" in said
