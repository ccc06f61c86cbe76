"""What people get from `pip install`: built here, unpacked elsewhere, and looked at without the repository."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The unpacked wheel, as pip lays it out."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(folder / built.stdout.split()[-1]) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, code: str, cwd: Path) -> str:
    """Runs Python code where `engine` and `trickle_tui` can only come from the wheel."""
    probe = f"import sys; sys.path.insert(0, {str(installed)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", probe], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_has_the_program_and_nothing_else(installed):
    tops = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"engine", "trickle_tui"}
    entry_points = next(installed.glob("*.dist-info/entry_points.txt")).read_text(encoding="utf-8")
    assert "trickle = engine.cli.main:main" in entry_points


def test_every_file_that_the_program_reads_is_in_the_wheel(installed):
    kept = {".py", ".sql", ".tcss", ".toml", ".typed"}
    for top in ("engine", "trickle_tui"):
        here = {path.relative_to(ROOT) for path in (ROOT / top).rglob("*") if path.suffix in kept}
        there = {path.relative_to(installed) for path in (installed / top).rglob("*")}
        assert here <= there


def test_themes_are_found_where_the_package_is(installed, tmp_path):
    code = "from trickle_tui import locations, themes; f = locations.shipped_themes(); print(f)\n"
    code += "print(*sorted(t.name for t in themes.load((f,)).themes))"
    folder, names = run(installed, code, tmp_path).splitlines()
    assert folder.startswith(str(installed))
    assert names.split() == sorted(path.stem for path in (ROOT / "themes").glob("*.toml"))


def test_the_command_line_answers(installed, tmp_path):
    code = "from engine.cli.main import main; sys.argv[:] = ['trickle', '--help']; main()"
    assert "usage: trickle" in run(installed, code, tmp_path)
