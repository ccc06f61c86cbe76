"""What is no Delta table: folders of Parquet, CSV and JSON files, databases, tables that Spark knows by a name.

Nobody can ask such a thing for its changes or its past. So a copy is kept, a Delta table of our own; looking again
commits to it what is there now, and from then on the copy is a source like any other. A commit says how many rows came
and how many went since the one before, which its files alone do not tell.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.algebra.nodes import WEIGHT
from engine.errors import CommitConflict, InvalidArgument, SourceDropped
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import apply, failures, log, netting, polled_merge, tables
from engine.lake.tables import CDF_PROPERTY, ILLEGAL_IN_NAMES
from engine.records import Column, Polled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: a table or view that Spark knows by this name
TABLE = "table"
JDBC = "jdbc"
#: read with the columns that were found at first, which the files themselves do not tell for sure
_WITHOUT_TYPES = ("csv", "json", "text")
_USUAL: Mapping[str, Mapping[str, str]] = {"csv": {"header": "true"}}
#: where a commit says what it is
_KEY = "trickle_poll"
#: a copy is ours: its changes are recorded, and a row that goes rewrites no file
_STORAGE: Mapping[str, str] = {CDF_PROPERTY: "true", "delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class Poll:
    """What one look came to."""

    came: int
    went: int

    @property
    def changed(self) -> bool:
        return bool(self.came or self.went)


def fingerprint(polled: Polled) -> str | None:
    """Of files on this machine: another one when anybody wrote. None where only looking tells."""
    if polled.format in (TABLE, JDBC) or "://" in polled.place:
        return None
    place = Path(polled.place)
    if not place.exists():
        raise SourceDropped(
            f"nothing is at {place}", hint="bring it back, or drop what reads it and then the source itself"
        )
    seen = hashlib.sha256()
    for name, size, written_ns in sorted(_files(place)):
        seen.update(f"{name}\0{size}\0{written_ns}\n".encode())
    return seen.hexdigest()[:32]


def _files(place: Path) -> Iterator[tuple[str, int, int]]:
    """Those that Spark reads: names with _ or . in front are none of the data."""
    if place.is_file():
        found = place.stat()
        yield place.name, found.st_size, found.st_mtime_ns
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [each for each in folders if not each.startswith((".", "_")) or "=" in each]
        for name in names:
            if not name.startswith((".", "_")):
                found = os.stat(os.path.join(folder, name))
                yield os.path.relpath(os.path.join(folder, name), place), found.st_size, found.st_mtime_ns


def poll(session: SparkSession, copy: str, polled: Polled) -> Poll:
    """Brings the copy to what is there now; makes it where there is none."""
    try:
        folder = log.local_path(copy)
        if folder is None or not log.is_table(folder):
            return _first(session, copy, polled)
        return _again(session, copy, polled)
    except Exception as error:
        raise failures.typed(error, f"Looking at {polled.place}", copy) from error


def change_in(user_metadata: str | None) -> Poll | None:
    """What a commit of ours says of its change; None of any other commit."""
    if not user_metadata or _KEY not in user_metadata:
        return None
    try:
        said = json.loads(user_metadata)[_KEY]
        return Poll(int(said["came"]), int(said["went"]))
    except (ValueError, KeyError, TypeError):
        return None


def _first(session: SparkSession, copy: str, polled: Polled) -> Poll:
    there = _there(session, polled, None)
    if not there.columns:
        raise InvalidArgument(f"{polled.place} has no columns", hint="is it of this format?")
    odd = any(char in name for name in there.columns for char in ILLEGAL_IN_NAMES)
    properties = dict(_STORAGE) | ({"delta.columnMapping.mode": "name"} if odd else {})
    columns = tuple(Column(field.name, tables.spelled_by_spark(field.dataType)) for field in there.schema.fields)
    tables.create(session, copy, columns, properties)
    rows = there.persist()
    try:
        made = Poll(rows.count(), 0)
        with _committed(session, copy, 0, made):
            rows.write.format("delta").mode("append").save(copy)
    finally:
        rows.unpersist()
    return made


def _again(session: SparkSession, copy: str, polled: Polled) -> Poll:
    """What differs, and nothing else, is committed: whoever reads the copy has as much to do as there is to tell."""
    version = log.newest_version(copy)
    was = session.read.format("delta").option("versionAsOf", version).load(copy)
    # read once: it may be written to while it is looked at
    there = _there(session, polled, was).persist()
    changed = None
    try:
        if there.schema.simpleString() != was.schema.simpleString():
            return _with_other_columns(session, copy, version, there)
        changed = netting.of_frame(netting.weighted(there, 1).unionAll(netting.weighted(was, -1))).persist()
        counted = {row[WEIGHT]: row["count"] for row in changed.groupBy(WEIGHT).count().collect()}
        found = Poll(counted.get(1, 0), counted.get(-1, 0))
        if not found.changed:
            return found
        with _committed(session, copy, version, found):
            if not found.went:
                changed.drop(WEIGHT).write.format("delta").mode("append").save(copy)
            elif polled_merge.fits(was, found.came + found.went, tables.pin(copy, version).rows()):
                polled_merge.run(session, copy, was, changed)
            else:
                there.write.format("delta").mode("overwrite").save(copy)
        return found
    finally:
        there.unpersist()
        if changed is not None:
            changed.unpersist()


def _with_other_columns(session: SparkSession, copy: str, version: int, there: DataFrame) -> Poll:
    """All of it is another than before, as far as anybody can tell."""
    found = Poll(there.count(), tables.pin(copy).rows())
    with _committed(session, copy, version, found):
        there.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(copy)
    return found


def _there(session: SparkSession, polled: Polled, known: DataFrame | None) -> DataFrame:
    if polled.format == TABLE:
        return session.table(polled.place)
    reader = session.read.format(polled.format).options(**_USUAL.get(polled.format, {}))
    if polled.format == JDBC:
        return reader.option("url", polled.place).options(**polled.options).load()
    if polled.format in _WITHOUT_TYPES:
        reader = reader.option("inferSchema", "true") if known is None else reader.schema(known.schema)
    return reader.options(**polled.options).load(polled.place)


@contextmanager
def _committed(session: SparkSession, copy: str, version: int, found: Poll) -> Iterator[None]:
    """On top of that version of the copy, or not at all: another process may have looked meanwhile."""
    FAILPOINTS.reach(Failpoint.LOOKED)
    look = uuid.uuid4().hex
    with apply.saying(session, said(found, look), (_KEY, version + 1)):
        yield
    refuse_overtaken(copy, version, look)


def said(found: Poll, look: str) -> str:
    return json.dumps({_KEY: {"came": found.came, "went": found.went, "look": look}})


def refuse_overtaken(copy: str, version: int, look: str) -> None:
    """Nobody may take for looked at what another one committed, who saw something else."""
    head = log.newest_version(copy)
    ours = log.commit_info(copy, version + 1)
    if head != version + 1 or ours is None or look not in (ours.user_metadata or ""):
        raise CommitConflict(
            "another process looked at the same source meanwhile", hint="try again: what it saw is looked at, too"
        )
