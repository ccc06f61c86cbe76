"""Looks at a stream table from outside: its log as text, its rows by delta-rs, its query by DuckDB.

Nothing here is the engine's, so that no mistake of the engine's can hide itself.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.support.duckdb_of_tests import connect
from tests.support.multisets import same_rows, written
from tests.support.view_test import Row

#: what the writers of Delta leave in a table's folder, uncommitted files of killed ones among it
_DELTAS_OWN = re.compile(
    r"(_change_data/)?([^/]+\.parquet(#\d+)?|\.[^/]+\.crc)|deletion_vector_[^/]+\.bin|_delta_log/.+"
)
#: what a full refresh writes into, and of which sequence it is
_FULL_REFRESH = re.compile(r"full-(\d+)-[^/]+/.+")

#: by who wrote a commit, what it is called there and how
_STRATEGIES = {
    ("delta-rs", "WRITE", "Append"): "append from driver",
    ("delta-rs", "MERGE", None): "merge from driver",
    ("Apache-Spark", "WRITE", "Append"): "append by spark",
    ("Apache-Spark", "MERGE", None): "merge by spark",
    ("delta-rs", "WRITE", "Overwrite"): "overwrite",
}


class Broken(AssertionError):
    """The promise does not hold."""


@dataclass(frozen=True)
class Watched:
    """A stream table, as its owner knows it."""

    path: Path
    query: str
    #: by the names that the query calls them
    sources: Mapping[str, Path]


@dataclass(frozen=True)
class Stamped:
    """A commit with a stamp."""

    version: int
    refresh_id: str
    sequence: int
    frontier: Mapping[str, int]
    strategy: str


class Witness:
    def __init__(self) -> None:
        #: every commit that was ever seen: none may become another one
        self._seen: dict[Path, str] = {}

    def look(self, table: Watched) -> int:
        """At any moment: the rows are the query's at the frontier, which never goes back, under one stamp each."""
        commits = self._commits(table.path)
        stamps = stamps_of(commits)
        sequences = [each.sequence for each in stamps]
        if sequences != list(range(1, len(stamps) + 1)):
            raise Broken(f"the sequences are {sequences}")
        if len({each.refresh_id for each in stamps}) < len(stamps):
            raise Broken(f"a refresh has two stamps: {[each.refresh_id for each in stamps]}")
        for before, after in itertools.pairwise(stamps):
            back = [name for name, version in before.frontier.items() if after.frontier[name] < version]
            if back:
                raise Broken(f"the frontier of {back[0]} went back in version {after.version}")
        if stamps:
            actual = rows_at(table.path, len(commits) - 1)
            _same(actual, answer(table, stamps[-1].frontier), f"version {len(commits) - 1} and its frontier")
        return len(commits) - 1

    def look_caught_up(self, table: Watched) -> int:
        """The rows are the query's over the sources as they are now."""
        version = self.look(table)
        newest = {name: DeltaTable(path).version() for name, path in table.sources.items()}
        _same(rows_at(table.path, version), answer(table, newest), f"version {version} and the sources now")
        return version

    def strategies(self, table: Watched, after: int) -> list[str]:
        """What the commits after a version were made by."""
        return [each.strategy for each in stamps_of(self._commits(table.path)) if each.version > after]

    def _commits(self, path: Path) -> list[str]:
        files = sorted((path / "_delta_log").glob("*.json"))
        if [file.name for file in files] != [f"{number:020d}.json" for number in range(len(files))]:
            raise Broken(f"the log has gaps: {[file.name for file in files]}")
        commits = [file.read_text(encoding="utf-8") for file in files]
        for file, text in zip(files, commits, strict=True):
            if self._seen.setdefault(file, text) != text:
                raise Broken(f"{file.name} was one commit and is another")
        if any(file.parent == path / "_delta_log" and file not in files for file in self._seen):
            raise Broken("a commit is gone")
        return commits

    def forget(self, path: Path) -> None:
        """It was dropped: another one may come to its place."""
        self._seen = {file: text for file, text in self._seen.items() if path not in file.parents}


def stamps_of(commits: list[str]) -> list[Stamped]:
    return [found for version, text in enumerate(commits) for found in _stamps(version, text)]


def _stamps(version: int, text: str) -> Iterator[Stamped]:
    actions = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    said = json.loads(info.get("userMetadata") or "{}").get("trickle")
    numbered = [(action["txn"]["appId"], action["txn"]["version"]) for action in actions if "txn" in action]
    if said is None:
        return
    if numbered != [(said["st_id"], said["sequence"])]:
        raise Broken(f"version {version} is numbered {numbered}, its stamp says {said['sequence']}")
    frontier = {name: at[0] for name, at in said["frontier"].items()}
    writer = info["engineInfo"].partition("/")[0].partition(":")[0]
    kind = (writer, info["operation"], info.get("operationParameters", {}).get("mode"))
    yield Stamped(version, said["refresh_id"], said["sequence"], frontier, _STRATEGIES.get(kind, str(kind)))


def answer(table: Watched, versions: Mapping[str, int]) -> list[Row]:
    """The query over the sources' own rows at these versions."""
    with connect() as db:
        for name, path in table.sources.items():
            db.register(name, arrow_at(path, versions[name]))
        return db.execute(table.query).fetchall()


def rows_at(path: Path, version: int) -> list[Row]:
    """As readers see them."""
    found = arrow_at(path, version)
    hidden = [name for name in found.column_names if name.startswith("__trickle")]
    return [tuple(row.values()) for row in found.drop_columns(hidden).to_pylist()]


def arrow_at(path: Path, version: int) -> pa.Table:
    opened = QueryBuilder().register("t", DeltaTable(path, version=version))
    found = pa.table(opened.execute("SELECT * FROM t").read_all())
    # DuckDB cannot filter the kind of strings that delta-rs hands out
    plain = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in found.schema]
    return found.cast(pa.schema(plain))


def strangers(warehouse: Path, tables: set[str]) -> list[str]:
    """What lies in the warehouse and belongs to no table, or in a table's folder and is neither Delta's nor of use.

    Who was killed in a full refresh leaves files that no version names. The next full refresh removes them, so that
    older ones than the last are strange; `left_by_full_refreshes` tells of all.
    """
    strange = []
    for name in sorted(path.name for path in warehouse.iterdir()):
        folder = warehouse / name
        if name not in tables:
            strange.append(name)
            continue
        files = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
        of_full = {file: int(found[1]) for file in files if (found := _FULL_REFRESH.fullmatch(file))}
        strange += [f"{name}/{file}" for file in files if file not in of_full and not _DELTAS_OWN.fullmatch(file)]
        if of_full:
            last, named = _overwritten(folder)
            strange += [f"{name}/{file}" for file, at in of_full.items() if at < last and not _is_named(file, named)]
    return strange


def left_by_full_refreshes(table: Path) -> list[str]:
    """Files that no version names. Right after a full refresh there are none, unless somebody writes right now."""
    files = sorted(file.relative_to(table).as_posix() for file in table.glob("full-*/**/*") if file.is_file())
    named = _overwritten(table)[1] if files else set()
    return [file for file in files if not _is_named(file, named)]


def _is_named(file: str, named: set[str]) -> bool:
    """Beside each file that it writes, Spark puts its checksum."""
    folder, _, name = file.rpartition("/")
    return file in named or (name.endswith(".crc") and f"{folder}/{name[1:].removesuffix('.crc')}" in named)


def _overwritten(table: Path) -> tuple[int, set[str]]:
    """The sequence of the last full refresh in a log, and all files that its versions name, also those of the past."""
    last, named = 0, set[str]()
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        for action in actions:
            named |= {unquote(action[kind]["path"]) for kind in ("add", "remove") if kind in action}
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        said = json.loads(info.get("userMetadata") or "{}").get("trickle")
        if said and info.get("operationParameters", {}).get("mode") == "Overwrite":
            last = said["sequence"]
    return last, named


def _same(actual: list[Row], expected: list[Row], what: str) -> None:
    if not same_rows(actual, expected):
        raise Broken(f"{what} differ\n  expected\n{written(expected)}\n  actual\n{written(actual)}")
