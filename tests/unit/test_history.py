"""The refresh history: nothing lost, nothing twice, whoever writes, compacts or dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.errors import NotFound, StorageFull
from engine.observe.history import MAX_TAIL_LINES, RECENT_IN_MEMORY, RECENT_ON_DISK, History
from engine.observe.history_files import MAX_FILES_A_DAY
from engine.records import (
    Initiator,
    OperatorStats,
    Outcome,
    Reason,
    ReasonCode,
    RefreshMode,
    RefreshRecord,
    SourceVersion,
)

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def record(number: int, st: str = "revenue", outcome: Outcome = Outcome.DIFFERENTIAL, **other: object) -> RefreshRecord:
    at = NOON + timedelta(seconds=number)
    made = RefreshRecord(
        refresh_id=f"id-{number}",
        number=number,
        st=st,
        started_at=at,
        finished_at=at + timedelta(milliseconds=212),
        outcome=outcome,
        requested_mode=RefreshMode.AUTO,
        reason=Reason(ReasonCode.DIFFERENTIAL, "every operator has a rule"),
        strategy="driver merge",
        initiated_by=Initiator.SCHEDULER,
        sequence=number,
        rows_in=1204,
        duration_ms=212.25,
        phases_ms={"read change": 10.5, "run": 180.0},
        frontier_from={"orders": SourceVersion(411, "a", "t")},
        frontier_to={"orders": SourceVersion(412, "b", "t")},
        operators=(OperatorStats("1", 0, "Aggregate", "region → sum", "algebraic", rows_out=15),),
        sql="SELECT 'Straße' -- 'quoted'\n FROM delta_orders",
    )
    return replace(made, **other)


def numbers(records: tuple[RefreshRecord, ...]) -> list[int]:
    return [each.number for each in records]


def test_a_record_comes_back_equal_from_the_tail_and_from_parquet(tmp_path: Path) -> None:
    whole = record(1)
    bare = record(2, outcome=Outcome.FAILED, sequence=None, frontier_from=None, frontier_to=None, error="no", sql="")
    history = History(tmp_path)
    history.append(whole)
    history.append(bare)
    assert History(tmp_path).query() == (bare, whole)
    assert history.compact(force=True) == 2
    assert History(tmp_path).query() == (bare, whole)
    assert History(tmp_path).find(1) == whole
    assert History(tmp_path).find("id-2") == bare


def test_last_gives_the_newest_at_the_end_and_needs_no_duckdb(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(1, 81):
        history.append(record(number, st="Even" if number % 2 == 0 else "odd"))
    history.compact(force=True)
    history.append(record(81, st="odd"))
    assert numbers(history.last("EVEN", 3)) == [76, 78, 80]
    assert numbers(history.last("odd", 2)) == [79, 81]
    assert history.last("nobody", 5) == ()
    code = f"""
        import sys
        from pathlib import Path
        from engine.observe.history import History
        print([each.number for each in History(Path({str(tmp_path)!r})).last("even", 3)])
        print(sorted({{"duckdb", "pyarrow"}} & set(sys.modules)))
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.splitlines() == ["[76, 78, 80]", "[]"]


def test_memory_and_disk_keep_only_the_recent(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(1, 101):
        history.append(record(number))
    assert numbers(history.last("revenue", 1000)) == list(range(101 - RECENT_IN_MEMORY, 101))
    history.compact(force=True)
    again = History(tmp_path).last("revenue", 1000)
    assert numbers(again) == list(range(101 - RECENT_ON_DISK, 101))
    assert again[-1] == record(100)
    assert again[-2] == replace(record(99), operators=(), sql="")
    assert History(tmp_path).last_of_all(1) == {"revenue": (record(100),)}
    history.append(record(101, st="Revenue"))
    assert list(History(tmp_path).last_of_all(2)) == ["Revenue"]


def test_filters(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(1, 41):
        history.append(
            record(number, st=f"st{number % 4}", outcome=Outcome.FULL if number % 3 == 0 else Outcome.NO_DATA)
        )
        if number in (10, 25):
            history.compact(force=True)
    fitting = [number for number in range(40, 0, -1) if number % 4 == 1 and number % 3 == 0]
    assert numbers(history.query(st="ST1", outcome=Outcome.FULL)) == fitting
    assert numbers(history.query(limit=20)) == list(range(40, 20, -1))
    assert numbers(history.query(since=record(38).finished_at)) == [40, 39, 38]
    assert history.query(limit=0) == ()
    assert history.query(st="x' OR '1'='1") == ()
    with pytest.raises(NotFound):
        history.find(41)


def test_a_slow_refresh_that_ends_late_is_sorted_by_its_number(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.append(record(300))
    history.compact(force=True)
    history.append(record(10))
    assert numbers(history.query(limit=1)) == [300]


def test_compaction_waits_until_it_is_worth_it(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(1, MAX_TAIL_LINES + 1):
        history.append(record(number))
    assert history.compact() == 0
    history.append(record(MAX_TAIL_LINES + 1))
    assert history.compact() == MAX_TAIL_LINES + 1
    assert history.compact(force=True) == 0
    assert len(history.query(limit=1000)) == MAX_TAIL_LINES + 1


def test_many_small_files_of_a_day_become_one(tmp_path: Path) -> None:
    history = History(tmp_path)
    count = MAX_FILES_A_DAY + 2
    for number in range(1, count + 1):
        history.append(record(number))
        history.compact(force=True)
    assert len(list(tmp_path.rglob("*.parquet"))) <= 3
    assert numbers(history.query(limit=1000)) == list(range(count, 0, -1))


@pytest.mark.parametrize("point", ["_write_recent", "replace"])
def test_a_crash_in_the_middle_of_compaction_neither_loses_nor_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    history = History(tmp_path)
    for number in range(1, 6):
        history.append(record(number))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(history if point == "_write_recent" else history._tail, point, crash)
        with pytest.raises(KeyboardInterrupt):
            history.compact(force=True)
    assert list(tmp_path.rglob("*.parquet"))
    again = History(tmp_path)
    assert numbers(again.query()) == [5, 4, 3, 2, 1]
    assert numbers(again.last("revenue", 10)) == [1, 2, 3, 4, 5]
    again.append(record(6))
    again.compact(force=True)
    assert numbers(History(tmp_path).query()) == [6, 5, 4, 3, 2, 1]
    assert numbers(History(tmp_path).query(limit=2)) == [6, 5]


def test_copies_of_one_refresh_in_two_files_count_once(tmp_path: Path) -> None:
    history = History(tmp_path)
    for _ in range(3):
        history._files.write([record(number) for number in range(1, 31)])
    assert numbers(history.query(limit=10)) == list(range(30, 20, -1))
    assert numbers(history.query(limit=100)) == list(range(30, 0, -1))


def test_a_line_cut_off_by_a_kill_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.append(record(1))
    history.append(record(2))
    tail = tmp_path / "tail.jsonl"
    whole = tail.read_bytes()
    second = whole.index(b'"id-2"')
    for length in (second, second + 40, len(whole) - 2):
        tail.write_bytes(whole[:length])
        again = History(tmp_path)
        assert numbers(again.query()) == [1]
        again.append(record(3))
        assert numbers(History(tmp_path).query()) == [3, 1]
        assert numbers(again.query()) == [3, 1]


@pytest.mark.parametrize("junk", [b"", b"\x00" * 50, b"not json\n", b"[]\n{}\n", b"\xff\xfe\n"])
def test_a_foreign_tail_is_survived(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "tail.jsonl").write_bytes(junk)
    (tmp_path / "recent.jsonl").write_bytes(junk)
    (tmp_path / "forgotten.json").write_bytes(junk)
    history = History(tmp_path)
    assert history.query() == ()
    history.append(record(1))
    assert numbers(history.query()) == [1]
    history.compact(force=True)
    assert numbers(History(tmp_path).query()) == [1]


def test_a_damaged_parquet_file_does_not_hide_the_others(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.append(record(1))
    history.compact(force=True)
    day = next(tmp_path.rglob("*.parquet")).parent
    (day / "000000000002-000000000009-abc.parquet").write_bytes(b"PAR1 junk")
    (day / "foreign.parquet").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("mine")
    assert numbers(History(tmp_path).query()) == [1]
    history.append(record(3))
    history.compact(force=True)
    assert numbers(History(tmp_path).query()) == [3, 1]


def test_a_folder_with_pattern_characters_in_its_name(tmp_path: Path) -> None:
    history = History(tmp_path / "sho[p] *what? 'x' é")
    history.append(record(1))
    history.compact(force=True)
    assert numbers(history.query()) == [1]


def test_forgetting_a_stream_table_leaves_the_others_and_lets_the_name_begin_again(tmp_path: Path) -> None:
    history = History(tmp_path)
    other_reader = History(tmp_path)
    for number in range(1, 11):
        history.append(record(number, st="Gone" if number % 2 else "kept"))
        if number == 6:
            history.compact(force=True)
    assert numbers(other_reader.last("gone", 9)) == [1, 3, 5, 7, 9]
    history.forget("gone")
    for reader in (history, other_reader, History(tmp_path)):
        assert reader.last("gone", 9) == ()
        assert numbers(reader.query()) == [10, 8, 6, 4, 2]
        with pytest.raises(NotFound):
            reader.find(3)
    history.append(record(11, st="gone"))
    assert numbers(other_reader.query(st="gone")) == [11]
    history.clean(retention_days=30, now=NOON)
    assert json.loads((tmp_path / "forgotten.json").read_bytes()) == {}
    assert numbers(History(tmp_path).query()) == [11, 10, 8, 6, 4, 2]


def test_a_history_follows_its_stream_table_to_another_name(tmp_path: Path) -> None:
    history = History(tmp_path)
    other_reader = History(tmp_path)
    for number in range(1, 13):
        history.append(record(number, st=("was_dropped", "Old", "kept")[number % 3]))
        if number == 6:
            history.compact(force=True)
    # one that had the new name once is forgotten, and not cleaned away yet
    history.forget("was_dropped")
    assert numbers(other_reader.query(st="old")) == [10, 7, 4, 1]
    for _ in range(2):  # who died in between does it again
        history.rename("old", "was_dropped")
        for reader in (history, other_reader, History(tmp_path)):
            assert numbers(reader.query(st="was_dropped")) == [10, 7, 4, 1]
            assert numbers(reader.last("was_dropped", 9)) == [1, 4, 7, 10]
            assert {each.st for each in reader.query(st="was_dropped")} == {"was_dropped"}
            assert reader.query(st="old") == ()
            assert numbers(reader.query()) == [11, 10, 8, 7, 5, 4, 2, 1]
            assert reader.find(4).st == "was_dropped"
    History(tmp_path / "none").rename("a", "b")
    assert not (tmp_path / "none").exists()


def test_cleaning_removes_whole_days_that_are_too_old(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number, days_ago in ((1, 40), (2, 31), (3, 30), (4, 0)):
        at = NOON - timedelta(days=days_ago)
        history.append(record(number, started_at=at, finished_at=at))
    assert history.clean(retention_days=30, now=NOON) == 2
    assert numbers(history.query()) == [4, 3]
    assert numbers(History(tmp_path).last("revenue", 9)) == [3, 4]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"20260130", "20260301"}


def test_maintenance_compacts_when_worth_it_and_cleans_once_a_day(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.maintain(30, NOON)
    assert not (tmp_path / "history").exists()
    old = NOON - timedelta(days=40)
    history.append(record(1, started_at=old, finished_at=old))
    history.append(record(2))
    history.maintain(30, NOON)
    assert numbers(history.query()) == [2]
    history.append(record(3, started_at=old, finished_at=old))
    history.maintain(30, NOON + timedelta(hours=11))
    assert numbers(history.query()) == [3, 2]
    for number in range(4, MAX_TAIL_LINES + 5):
        history.append(record(number))
    history.maintain(30, NOON + timedelta(hours=11))
    assert len((tmp_path / "history" / "tail.jsonl").read_bytes().splitlines()) == 1
    history.maintain(30, NOON + timedelta(days=1))
    assert 3 not in numbers(history.query(limit=1000))


def test_appending_is_cheap(tmp_path: Path) -> None:
    history = History(tmp_path)
    durations = []
    for number in range(100):
        made = record(number)
        start = time.perf_counter()
        history.append(made)
        history.last("revenue", 20)
        durations.append(time.perf_counter() - start)
    assert sorted(durations)[50] < 0.003


def test_threads_that_append_read_and_compact_at_once(tmp_path: Path) -> None:
    history = History(tmp_path)
    per_thread, wrong = 60, []

    def append(offset: int) -> None:
        for number in range(offset, offset + per_thread):
            history.append(record(number, st=f"st{offset}"))

    def read(stop: threading.Event) -> None:
        reader, seen = History(tmp_path), 0
        while not stop.is_set():
            found = numbers(reader.query(limit=10_000))
            if len(found) != len(set(found)) or len(found) < seen:
                wrong.append((seen, len(found)))
            seen = len(found)

    def compact(stop: threading.Event) -> None:
        while not stop.is_set():
            history.compact(force=True)

    stop = threading.Event()
    others = [threading.Thread(target=read, args=(stop,)), threading.Thread(target=compact, args=(stop,))]
    writers = [threading.Thread(target=append, args=(offset,)) for offset in (1000, 2000, 3000)]
    for thread in (*others, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    assert not wrong
    assert len(History(tmp_path).query(limit=10_000)) == 3 * per_thread


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_history import History, record
history = History(Path({folder!r}))
offset = int(sys.argv[1])
for number in range(offset, offset + int(sys.argv[2])):
    history.append(record(number, st=f"st{{offset}}"))
    sys.stdout.write(f"{{number}}\\n")
    sys.stdout.flush()
    if number % 7 == 0:
        history.compact(force=True)
"""


def start_writer(folder: Path, offset: int, count: int) -> subprocess.Popen[str]:
    code = WRITER.format(tests=str(Path(__file__).parent), folder=str(folder))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(offset), str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_two_processes_at_once(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, offset, 40) for offset in (1000, 2000)]
    observer = History(tmp_path)
    while any(writer.poll() is None for writer in writers):
        found = numbers(observer.query(limit=1000))
        assert len(found) == len(set(found))
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    expected = [*range(2039, 1999, -1), *range(1039, 999, -1)]
    assert numbers(observer.query(limit=1000)) == expected
    assert numbers(observer.last("st1000", 3)) == [1037, 1038, 1039]


@pytest.mark.parametrize("delay_ms", [0, 15, 40, 110])
def test_kill_9_in_the_middle_keeps_all_that_was_acknowledged(tmp_path: Path, delay_ms: int) -> None:
    writer = start_writer(tmp_path, 1, 10_000)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(10)]
    time.sleep(delay_ms / 1000)
    writer.send_signal(signal.SIGKILL)
    # Not communicate(): it would pass over what readline has already buffered.
    acknowledged += [int(line) for line in writer.stdout.read().splitlines()]
    writer.wait()
    history = History(tmp_path)
    found = numbers(history.query(limit=100_000))
    assert len(found) == len(set(found))
    assert found[::-1] == list(range(1, len(found) + 1))
    assert len(acknowledged) <= len(found) <= len(acknowledged) + 1
    history.append(record(100_000))
    history.compact(force=True)
    assert len(History(tmp_path).query(limit=100_000)) == len(found) + 1


def test_a_full_disk_is_said_so_and_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path)
    history.append(record(1))
    before = (tmp_path / "tail.jsonl").read_bytes()

    class HalfFull:
        def __init__(self, stream: object) -> None:
            self.stream = stream
            self.room = 100

        def __enter__(self) -> HalfFull:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()

        def tell(self) -> int:
            return self.stream.tell()

        def write(self, data: bytes) -> int:
            if self.room == 0:
                raise OSError(28, "No space left on device")
            taken, self.room = self.room, 0
            return self.stream.write(data[:taken])

    real_open = Path.open
    monkeypatch.setattr(
        Path,
        "open",
        lambda path, mode="r", *rest, **more: (
            HalfFull(real_open(path, mode, *rest, **more)) if mode == "ab" else real_open(path, mode, *rest, **more)
        ),
    )
    with pytest.raises(StorageFull) as caught:
        history.append(record(2))
    assert caught.value.hint
    monkeypatch.undo()
    assert (tmp_path / "tail.jsonl").read_bytes() == before
    history.append(record(3))
    assert numbers(history.query()) == [3, 1]
