"""Delta commits written by hand: what a source's own writers leave in its log, in a millisecond.

Only tables of a few rows: each commit that is not a plain append writes the whole table anew, as one file, and what
changed as a change file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.records import Column

#: Delta's names of types where Spark's SQL has another
_SPELLINGS = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


def create_table(path: Path, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
    """Version 0, as Spark writes it."""
    (path / "_delta_log").mkdir(parents=True)
    types = {column.name: _SPELLINGS.get(column.type, column.type) for column in columns}
    fields = [{"name": c.name, "type": types[c.name], "nullable": c.nullable, "metadata": {}} for c in columns]
    commit(
        path,
        0,
        "CREATE TABLE",
        [
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"],
                    "writerFeatures": ["deletionVectors", "changeDataFeed", "appendOnly", "invariants"],
                }
            },
            {
                "metaData": {
                    "id": str(uuid.uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps({"type": "struct", "fields": fields}),
                    "partitionColumns": [],
                    "configuration": dict(properties),
                    "createdTime": 0,
                }
            },
        ],
    )


def commit(path: Path, version: int, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
    """Refused with FileExistsError where that version is already there, as every store must."""
    said = {"timestamp": 1_700_000_000_000 + version, "operation": operation, "operationParameters": {}}
    info = {"commitInfo": {**said, "engineInfo": "by hand", "txnId": str(uuid.uuid4())}}
    with (path / "_delta_log" / f"{version:020d}.json").open("x") as file:
        file.write("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in (info, *actions)))


class SourceTable:
    """A source and its writer."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self.path = path
        self.version = 0
        self._files: list[str] = []
        create_table(path, columns, {"delta.enableChangeDataFeed": "true"})

    def append(self, rows: pa.Table) -> None:
        name, added = self._written(rows)
        self._commit("WRITE", [added])
        self._files.append(name)

    def change(self, all_rows: pa.Table, changes: pa.Table) -> None:
        """`changes` has `_change_type` besides the columns."""
        removed = [{"remove": {"path": name, "dataChange": True, "deletionTimestamp": 0}} for name in self._files]
        name, added = self._written(all_rows)
        folder = self.path / "_change_data"
        folder.mkdir(exist_ok=True)
        change_file = f"_change_data/cdc-{uuid.uuid4()}.parquet"
        pq.write_table(changes, self.path / change_file)
        size = (self.path / change_file).stat().st_size
        cdc = {"cdc": {"path": change_file, "partitionValues": {}, "size": size, "dataChange": False}}
        self._commit("MERGE", [*removed, added, cdc])
        self._files = [name]

    def optimize(self) -> None:
        """The same rows in another file."""
        rows = pa.concat_tables([pq.read_table(self.path / name) for name in self._files])
        removed = [{"remove": {"path": name, "dataChange": False, "deletionTimestamp": 0}} for name in self._files]
        name, added = self._written(rows, data_change=False)
        self._commit("OPTIMIZE", [*removed, added])
        self._files = [name]

    def _commit(self, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
        commit(self.path, self.version + 1, operation, actions)
        self.version += 1

    def _written(self, rows: pa.Table, data_change: bool = True) -> tuple[str, dict[str, Any]]:
        name = f"part-{uuid.uuid4()}.parquet"
        pq.write_table(rows, self.path / name)
        return name, {
            "add": {
                "path": name,
                "partitionValues": {},
                "size": (self.path / name).stat().st_size,
                "modificationTime": 0,
                "dataChange": data_change,
                "stats": json.dumps({"numRecords": rows.num_rows}),
            }
        }
