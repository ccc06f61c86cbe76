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

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.support.multisets import same_rows, written
from tests.support.view_test import Row

#: what the writers of Delta leave in a table's folder, uncommitted files of killed ones among it
_DELTAS_OWN = re.compile(
    r"((_change_data|full-[^/]+)/)?([^/]+\.parquet(#\d+)?|\.[^/]+\.crc)|deletion_vector_[^/]+\.bin"
    # a full refresh writes its files with a log beside them, which it removes; a later one does it for the killed
    r"|(full-[^/]+/)?_delta_log/.+"
)

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
    with duckdb.connect() as db:
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
    """What lies in the warehouse and belongs to no table, or in a table's folder and is not Delta's."""
    files = [path.relative_to(warehouse) for path in warehouse.rglob("*") if path.is_file()]
    strange = [str(file) for file in files if not _DELTAS_OWN.fullmatch("/".join(file.parts[1:]))]
    return strange + [path.name for path in warehouse.iterdir() if path.name not in tables]


def _same(actual: list[Row], expected: list[Row], what: str) -> None:
    if not same_rows(actual, expected):
        raise Broken(f"{what} differ\n  expected\n{written(expected)}\n  actual\n{written(actual)}")
