"""The newest refreshes as lines of JSON: cheap to append, safe to cut off anywhere.

The first line of the file carries its generation. Whoever moves lines away writes a new file with the next
generation, so that a reader who remembers a place in the file notices and starts over.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.codec import MalformedRecord, dumps, loads
from engine.files import storage, storage_error, write_atomically
from engine.records import RefreshRecord

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TailPart:
    """Complete lines of the tail, from a remembered place on."""

    generation: int
    records: tuple[RefreshRecord, ...]
    #: where the next part begins
    end: int
    #: is this the whole tail, because the remembered place is gone?
    whole: bool


class Tail:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, generation: int = -1, start: int = 0) -> TailPart:
        """What came after `start` of generation `generation`, or everything if that is no more."""
        try:
            with self.path.open("rb") as stream:
                header = stream.readline()
                present = _generation(header)
                size = os.fstat(stream.fileno()).st_size
                whole = present != generation or start < len(header) or size < start
                begin = len(header) if whole else start
                stream.seek(begin)
                content = stream.read(size - begin)
        except FileNotFoundError:
            return TailPart(0, (), 0, generation != 0 or start != 0)
        except OSError as error:
            raise storage_error(error, self.path) from error
        complete = content[: content.rfind(b"\n") + 1]
        return TailPart(present, parse_lines(complete, self.path), begin + len(complete), whole)

    def append(self, record: RefreshRecord) -> None:
        """Adds one line, wholly or not at all. The caller holds the lock."""
        line = dumps(record).encode() + b"\n"
        with storage(self.path), self.path.open("ab", buffering=0) as stream:
            before = stream.tell()
            if before == 0:
                line = _header(0) + line
            elif _last_byte(self.path, before) != b"\n":
                line = b"\n" + line  # whoever wrote the last line was killed in the middle of it
            try:
                written = 0
                while written < len(line):
                    written += stream.write(line[written:]) or 0
            except OSError:
                os.truncate(self.path, before)
                raise

    def replace(self, generation: int, records: Iterable[RefreshRecord]) -> None:
        """Puts a new file in the tail's place. The caller holds the lock."""
        write_atomically(self.path, _header(generation) + lines_of(records))


def lines_of(records: Iterable[RefreshRecord]) -> bytes:
    return b"".join(dumps(record).encode() + b"\n" for record in records)


def parse_lines(content: bytes, path: Path) -> tuple[RefreshRecord, ...]:
    """The records in `content`; a line that is none is left out, and the log says so."""
    records = []
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            records.append(loads(RefreshRecord, line.decode("utf-8")))
        except (MalformedRecord, UnicodeDecodeError):
            _log.warning("%s has a damaged line of %d bytes, which is left out", path, len(line))
    return tuple(records)


def _header(generation: int) -> bytes:
    return b'{"generation":%d}\n' % generation


def _generation(header: bytes) -> int:
    """A file whose first line is damaged counts as one of its own, read from the second line on."""
    try:
        value = json.loads(header)
    except ValueError:
        return -2
    number = value.get("generation") if isinstance(value, dict) else None
    return number if isinstance(number, int) else -2


def _last_byte(path: Path, size: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(size - 1)
        return stream.read(1)
