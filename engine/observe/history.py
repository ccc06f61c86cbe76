"""The refresh history: what each refresh did, why, and what it cost.

New records are lines of a small file (history_tail.py), older ones Parquet (history_files.py). Between the
two stands `recent.jsonl`, the last refreshes of each stream table, so that the first screen needs no DuckDB.

Any number of threads and processes may read and append. Whoever moves records writes them to their new place
first and removes them afterwards; readers look at the places in the same order and count each refresh once.
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.errors import NotFound
from engine.files import storage, write_atomically
from engine.observe.history_files import HistoryFiles, is_forgotten
from engine.observe.history_tail import Tail, lines_of, parse_lines
from engine.records import Outcome, RefreshRecord

#: how many refreshes of a stream table are held in memory
RECENT_IN_MEMORY = 64
#: how many of them outlive the process without a look into Parquet
RECENT_ON_DISK = 24
#: a longer tail is worth moving into Parquet
MAX_TAIL_LINES = 256


class History:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tail = Tail(folder / "tail.jsonl")
        self._files = HistoryFiles(folder)
        self._guard = threading.RLock()
        # What was read so far: a place in the tail, and the records up to there.
        self._generation = -1
        self._end = 0
        self._in_tail: dict[str, RefreshRecord] = {}
        self._recent: dict[str, deque[RefreshRecord]] = {}
        self._forgotten: dict[str, int] = {}

    def append(self, record: RefreshRecord) -> None:
        with self._locked("append"):
            self._tail.append(record)

    def last(self, st: str, count: int = 1) -> tuple[RefreshRecord, ...]:
        """The newest refreshes of `st`, newest last, at most 64, without touching Parquet.

        After a restart all but the newest come without their `operators` and `sql`; `find` has them.
        """
        with self._guard:
            self._catch_up()
            return tuple(self._recent.get(st.lower(), ()))[-count:] if count > 0 else ()

    def last_of_all(self, count: int = 1) -> dict[str, tuple[RefreshRecord, ...]]:
        """What `last` gives, for every stream table at once, by its name."""
        with self._guard:
            self._catch_up()
            if count <= 0:
                return {}
            return {recent[-1].st: tuple(recent)[-count:] for recent in self._recent.values() if recent}

    def find(self, number_or_id: int | str) -> RefreshRecord:
        """The refresh with this number or refresh id, complete."""
        by_number = isinstance(number_or_id, int)
        with self._guard:
            self._catch_up()
            for record in self._in_tail.values():
                if number_or_id == (record.number if by_number else record.refresh_id):
                    return record
            forgotten = dict(self._forgotten)
        found = self._files.newest(
            number=number_or_id if isinstance(number_or_id, int) else None,
            refresh_id=number_or_id if isinstance(number_or_id, str) else None,
            forgotten=forgotten,
            limit=1,
        )
        if not found:
            what = f"#{number_or_id}" if by_number else str(number_or_id)
            raise NotFound(
                f"there is no refresh {what} in the history",
                hint="`trickle history` lists them; old ones are removed after history.retention_days",
            )
        return found[0]

    def query(
        self,
        st: str | None = None,
        outcome: Outcome | None = None,
        limit: int = 100,
        since: datetime | None = None,
    ) -> tuple[RefreshRecord, ...]:
        """Refreshes that fit, newest first."""
        if limit <= 0:
            return ()
        with self._guard:
            # The tail first, the files after it: a record that moves meanwhile is then seen twice, not never.
            self._catch_up()
            in_tail = list(self._in_tail.values())
            forgotten = dict(self._forgotten)
        fitting = [
            record
            for record in in_tail
            if (st is None or record.st.lower() == st.lower())
            and (outcome is None or record.outcome == outcome)
            and (since is None or record.finished_at >= since)
        ]
        fitting.sort(key=lambda record: record.number, reverse=True)
        if len(fitting) >= limit and fitting[limit - 1].number > self._files.greatest_number():
            return tuple(fitting[:limit])
        filed = self._files.newest(st=st, outcome=outcome, since=since, forgotten=forgotten, limit=limit)
        every = {record.refresh_id: record for record in (*filed, *fitting)}
        newest_first = sorted(every.values(), key=lambda record: record.number, reverse=True)
        return tuple(newest_first[:limit])

    def forget(self, st: str) -> None:
        """Takes the history of a dropped stream table away; one of the same name starts afresh."""
        with self._locked("maintenance"):
            forgotten = self._read_forgotten()
            with self._locked("append"):
                part = self._tail.read()
                numbers = [record.number for record in part.records]
                forgotten[st.lower()] = max([*numbers, self._last_number(), forgotten.get(st.lower(), 0)])
                self._write_forgotten(forgotten)
                recent = [record for record in self._read_recent() if not is_forgotten(record, forgotten)]
                write_atomically(self._recent_path, lines_of(recent))
                kept = [record for record in part.records if not is_forgotten(record, forgotten)]
                self._tail.replace(_next(part.generation), kept)

    def rename(self, st: str, to: str) -> None:
        """The refreshes of a stream table are found under another name. To do it twice is to do it once."""
        if not self._folder.is_dir():
            return

        def renamed(records: Iterable[RefreshRecord]) -> list[RefreshRecord]:
            return [replace(each, st=to) if each.st.lower() == st.lower() else each for each in records]

        with self._locked("maintenance"):
            forgotten = self._read_forgotten()
            if forgotten:  # one that had the other name once may be among them
                self._files.remove_forgotten(forgotten)
                self._write_forgotten({})
            self._files.rename(st, to)
            with self._locked("append"):
                part = self._tail.read()
                write_atomically(self._recent_path, lines_of(renamed(self._read_recent())))
                self._tail.replace(_next(part.generation), renamed(part.records))

    def compact(self, force: bool = False) -> int:
        """Moves the tail into Parquet once it is long; gives the number of records moved."""
        if not force and self._lines_in_tail() <= MAX_TAIL_LINES:
            return 0
        with self._locked("maintenance"):
            part = self._tail.read()
            if not part.records or (not force and len(part.records) <= MAX_TAIL_LINES):
                return 0
            records = {record.refresh_id: record for record in part.records}
            numbers = [record.number for record in records.values()]
            # A crash after the last writing and before the tail was cut leaves records in both.
            known = self._files.ids_between(min(numbers), max(numbers))
            moved = [record for record in records.values() if record.refresh_id not in known]
            self._files.write(moved)
            self._write_recent([*self._read_recent(), *records.values()])
            with self._locked("append"):
                late = self._tail.read(part.generation, part.end)
                self._tail.replace(_next(part.generation), late.records)
            self._files.merge_days()
            return len(moved)

    def clean(self, retention_days: int, now: datetime | None = None) -> int:
        """Removes what is older than `retention_days`, and what was forgotten; gives the files removed."""
        self.compact(force=True)
        first = (now or datetime.now(UTC)) - timedelta(days=retention_days)
        with self._locked("maintenance"):
            removed = self._files.remove_before(first.date())
            forgotten = self._read_forgotten()
            if forgotten:
                self._files.remove_forgotten(forgotten)
                self._write_forgotten({})
            self._write_recent(record for record in self._read_recent() if record.finished_at.date() >= first.date())
            with self._locked("append"):
                part = self._tail.read()
                self._tail.replace(_next(part.generation), part.records)
        return removed

    def maintain(self, retention_days: int, now: datetime | None = None) -> None:
        """What has to be done now and then: compacts when that is worth it, cleans once a day.

        Costs next to nothing when there is nothing to do, so whoever is idle may call it often.
        """
        self.compact()
        now = now or datetime.now(UTC)
        marker = self._folder / "cleaned.txt"
        today = now.astimezone(UTC).date().isoformat().encode()
        if _content(marker) == today or not self._folder.is_dir():
            return
        # Marked first: when several processes come at once, or cleaning fails, one attempt a day is enough.
        write_atomically(marker, today)
        self.clean(retention_days, now)

    def close(self) -> None:
        self._files.close()

    # --- memory --------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Reads what this and other processes have added since the last look."""
        part = self._tail.read(self._generation, self._end)
        if part.whole:
            self._forgotten = self._read_forgotten()
            self._in_tail = {}
            self._recent = {}
            self._remember(self._read_recent())
        self._generation, self._end = part.generation, part.end
        for record in part.records:
            if not is_forgotten(record, self._forgotten):
                self._in_tail[record.refresh_id] = record
        self._remember(part.records)

    def _remember(self, records: Iterable[RefreshRecord]) -> None:
        for record in records:
            if is_forgotten(record, self._forgotten):
                continue
            recent = self._recent.setdefault(record.st.lower(), deque(maxlen=RECENT_IN_MEMORY))
            place = next((at for at, each in enumerate(recent) if each.refresh_id == record.refresh_id), None)
            if place is None:
                recent.append(record)
            else:
                recent[place] = record

    # --- small files beside the tail -----------------------------------------------------------------------

    @property
    def _recent_path(self) -> Path:
        return self._folder / "recent.jsonl"

    def _read_recent(self) -> tuple[RefreshRecord, ...]:
        return parse_lines(_content(self._recent_path), self._recent_path)

    def _write_recent(self, records: Iterable[RefreshRecord]) -> None:
        """Keeps the newest of each stream table, the very newest with all it has."""
        each_once = {record.refresh_id: record for record in records}
        by_st: dict[str, list[RefreshRecord]] = {}
        for record in sorted(each_once.values(), key=lambda each: each.number):
            by_st.setdefault(record.st.lower(), []).append(record)
        kept: list[RefreshRecord] = []
        for of_st in by_st.values():
            *older, newest = of_st[-RECENT_ON_DISK:]
            kept += [replace(record, operators=(), sql="") for record in older]
            kept.append(newest)
        write_atomically(self._recent_path, lines_of(kept))

    @property
    def _forgotten_path(self) -> Path:
        return self._folder / "forgotten.json"

    def _read_forgotten(self) -> dict[str, int]:
        """Stream table -> the number up to which its refreshes are gone."""
        try:
            held = json.loads(_content(self._forgotten_path) or b"{}")
        except ValueError:
            return {}
        if not isinstance(held, dict):
            return {}
        return {str(name): until for name, until in held.items() if isinstance(until, int)}

    def _write_forgotten(self, forgotten: Mapping[str, int]) -> None:
        write_atomically(self._forgotten_path, json.dumps(forgotten).encode())

    def _last_number(self) -> int:
        recent = max((record.number for record in self._read_recent()), default=0)
        filed = self._files.greatest_number()
        return max(recent, filed if filed < 1 << 62 else 0)

    def _lines_in_tail(self) -> int:
        with self._guard:
            self._catch_up()
            return len(self._in_tail)

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        """Keeps other threads and processes out: "append" for a moment, "maintenance" for longer."""
        path = self._folder / f".{what}.lock"
        with storage(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Opened each time: a lock belongs to the opened file, so threads exclude each other too.
            stream = path.open("w")
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _next(generation: int) -> int:
    return max(generation, 0) + 1


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
