"""Commits are noticed at once, also those of tables that come later."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from engine.lake.watch import Watcher

ROWS = pa.table({"k": [1]})


@pytest.fixture
def told() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def watcher(told: queue.Queue[str]) -> Iterator[Watcher]:
    watcher = Watcher(told.put, poll_s=0.2)
    yield watcher
    watcher.close()


def quiet(told: queue.Queue[str], wait_s: float = 0.6) -> bool:
    try:
        told.get(timeout=wait_s)
    except queue.Empty:
        return True
    return False


def test_each_commit_is_told_once_and_soon(tmp_path: Path, watcher: Watcher, told: queue.Queue[str]) -> None:
    for name in ("orders", "customers"):
        write_deltalake(tmp_path / name, ROWS)
        watcher.add(name, str(tmp_path / name))
    assert quiet(told), "what was there before is not news"
    took: list[float] = []
    for name in ("orders", "customers", "orders"):
        started = time.perf_counter()
        write_deltalake(tmp_path / name, ROWS, mode="append")
        assert told.get(timeout=5) == name
        took.append(time.perf_counter() - started)
    assert quiet(told), "a commit is told once"
    assert min(took) < 0.15, "by notice, not by looking"


def test_a_table_that_appears_later(tmp_path: Path, watcher: Watcher, told: queue.Queue[str]) -> None:
    path = tmp_path / "later"
    watcher.add("later", str(path))
    assert quiet(told)
    write_deltalake(path, ROWS)
    time.sleep(0.6)
    write_deltalake(path, ROWS, mode="append")
    assert told.get(timeout=5) == "later"


def test_a_removed_table_is_no_longer_told(tmp_path: Path, watcher: Watcher, told: queue.Queue[str]) -> None:
    path = tmp_path / "orders"
    write_deltalake(path, ROWS)
    watcher.add("orders", str(path))
    assert quiet(told)
    watcher.remove("orders")
    assert quiet(told, 0.4)
    write_deltalake(path, ROWS, mode="append")
    assert quiet(told)


def test_a_listener_that_fails_does_not_blind_it(tmp_path: Path) -> None:
    calls: queue.Queue[str] = queue.Queue()

    def failing(name: str) -> None:
        calls.put(name)
        raise ValueError("a bug")

    watcher = Watcher(failing, poll_s=0.2)
    write_deltalake(tmp_path / "t", ROWS)
    watcher.add("t", str(tmp_path / "t"))
    time.sleep(0.6)
    for _ in range(2):
        write_deltalake(tmp_path / "t", ROWS, mode="append")
        assert calls.get(timeout=5) == "t"
    started = time.perf_counter()
    watcher.close()
    assert time.perf_counter() - started < 1.5
