"""Delta's jars: fetched once, whole or not at all. Ivy is played by a script here; the run's own start uses it."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

import pytest

from engine.errors import SparkUnavailable
from engine.lake import jars
from engine.lake.java import JavaHome

FETCHES = """#!/bin/sh
echo x >> "{calls}"
sleep 0.2
mkdir -p jars
{what}
"""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def fake_java(tmp_path: Path, calls: Path, what: str) -> JavaHome:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    program = home / "bin" / "java"
    program.write_text(FETCHES.format(calls=calls, what=what))
    program.chmod(0o755)
    return JavaHome(home, 17, False)


def delivering(tmp_path: Path, calls: Path) -> JavaHome:
    stock = tmp_path / "stock"
    stock.mkdir(exist_ok=True)
    for artifact in jars.artifacts():
        with zipfile.ZipFile(stock / (artifact.replace(":", "-") + ".jar"), "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "x" * 5000)
    return fake_java(tmp_path, calls, f'cp "{stock}"/*.jar jars/')


def quiet(text: str) -> None:
    assert text


def test_they_are_fetched_once(tmp_path: Path, calls: Path, capfd: pytest.CaptureFixture[str]) -> None:
    java = delivering(tmp_path, calls)
    cache = tmp_path / "it's a [cache]"
    said: list[str] = []
    first = jars.ensure_jars(cache, said.append, java)
    assert len(first) == len(jars.artifacts()) == 5
    assert all(jar.is_file() for jar in first)
    assert said
    said.clear()
    assert jars.ensure_jars(cache, said.append, java) == first
    assert not said
    assert calls.read_text().count("x") == 1
    assert [entry.name for entry in (cache / "jars").iterdir() if entry.name.startswith(".fetch")] == []
    assert capfd.readouterr() == ("", "")


def test_a_truncated_jar_is_fetched_again(tmp_path: Path, calls: Path) -> None:
    java = delivering(tmp_path, calls)
    found = jars.ensure_jars(tmp_path / "cache", quiet, java)
    whole = found[0].read_bytes()
    for damage in (whole[:100], whole[:-10] + b"0123456789", b""):
        found[0].write_bytes(damage)
        assert jars.ensure_jars(tmp_path / "cache", quiet, java)[0].read_bytes() == whole
    (found[0].parent / jars.COMPLETE).unlink()
    jars.ensure_jars(tmp_path / "cache", quiet, java)
    assert calls.read_text().count("x") == 5


def test_starters_beside_each_other_fetch_once(tmp_path: Path, calls: Path) -> None:
    java = delivering(tmp_path, calls)
    results: list[tuple[Path, ...]] = []
    threads = [
        threading.Thread(target=lambda: results.append(jars.ensure_jars(tmp_path / "cache", quiet, java)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 4
    assert calls.read_text().count("x") == 1


@pytest.mark.parametrize("what", ["echo no route to host; exit 1", "echo hello > jars/a.jar", "true"])
def test_a_failed_fetch_leaves_nothing(tmp_path: Path, calls: Path, what: str) -> None:
    with pytest.raises(SparkUnavailable) as caught:
        jars.ensure_jars(tmp_path / "cache", quiet, fake_java(tmp_path, calls, what))
    assert jars.IVY_SETTINGS_VARIABLE in (caught.value.hint or "")
    if "route" in what:
        assert "no route to host" in (caught.value.detail or "")
    assert [entry.name for entry in (tmp_path / "cache" / "jars").iterdir()] == [".lock"]


def test_stopping_ends_the_fetch(tmp_path: Path, calls: Path) -> None:
    java = fake_java(tmp_path, calls, "sleep 60")
    stopping = threading.Event()
    threading.Timer(0.5, stopping.set).start()
    with pytest.raises(SparkUnavailable):
        jars.ensure_jars(tmp_path / "cache", quiet, java, stopping.is_set)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, calls: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SparkUnavailable) as caught:
        jars.ensure_jars(tmp_path / "file" / "cache", quiet, delivering(tmp_path, calls))
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.default_cache() == tmp_path / "trickle"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.default_cache() == tmp_path / ".cache" / "trickle"
    assert os.path.isabs(jars.default_cache())
