"""Delta commits written by hand: what a source's own writers leave in its log, in a millisecond.

Only tables of a few rows: each commit that is not a plain append writes the whole table anew, as one file, and what
changed as a change file.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from sqlglot import exp

from engine.algebra.scalars import data_type
from engine.records import Column

#: Delta's names of types where Spark's SQL has another
_SPELLINGS = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


#: as Spark does it
CHECKPOINT_INTERVAL = 10


def create_table(path: Path, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
    """Version 0, as Spark writes it."""
    (path / "_delta_log").mkdir(parents=True)
    fields = [_field(c.name, data_type(c.type), nullable=c.nullable) for c in columns]
    moments = ["timestampNtz"] if any("timestamp_ntz" in column.type for column in columns) else []
    commit(
        path,
        0,
        "CREATE TABLE",
        [
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors", *moments],
                    "writerFeatures": ["deletionVectors", "changeDataFeed", "appendOnly", "invariants", *moments],
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


def _field(name: str, type_: exp.DataType, *, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": _in_delta(type_), "nullable": nullable, "metadata": {}}


def _in_delta(type_: exp.DataType) -> object:
    """A type as Delta's log spells it."""
    parts = type_.expressions
    match type_.this:
        case exp.DType.ARRAY:
            return {"type": "array", "elementType": _in_delta(parts[0]), "containsNull": True}
        case exp.DType.MAP:
            key, value = map(_in_delta, parts)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case exp.DType.STRUCT:
            return {"type": "struct", "fields": [_field(each.name, each.kind) for each in parts]}
        case _:
            spelled = type_.sql("spark").lower().replace(", ", ",")
            return _SPELLINGS.get(spelled, spelled)


def commit(
    path: Path, version: int, operation: str, actions: Sequence[Mapping[str, Any]], said_besides: str | None = None
) -> None:
    """Refused with FileExistsError where that version is already there, as every store must."""
    said = {"timestamp": 1_700_000_000_000 + version, "operation": operation, "operationParameters": {}}
    if said_besides is not None:
        said["userMetadata"] = said_besides
    info = {"commitInfo": {**said, "engineInfo": "by hand", "txnId": str(uuid.uuid4())}}
    with (path / "_delta_log" / f"{version:020d}.json").open("x") as file:
        file.write("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in (info, *actions)))


class PolledFile:
    """A source that is one file, and its writer; Trickle keeps a copy of it."""

    def __init__(self, place: Path, columns: Sequence[Column], copy: Path) -> None:
        self.place = place
        #: of the copy
        self.path = copy
        self._columns = columns
        self._rows: pa.Table | None = None
        place.mkdir(parents=True)

    def append(self, rows: pa.Table) -> None:
        self._write(rows if self._rows is None else pa.concat_tables([self._rows, rows.cast(self._rows.schema)]))

    def change(self, all_rows: pa.Table, changes: pa.Table) -> None:
        self._write(all_rows)

    def optimize(self) -> None:
        """The same rows in a file of another time."""
        if self._rows is not None:
            self._write(self._rows)

    def replace(self, columns: Sequence[Column], all_rows: pa.Table) -> None:
        """The copy is lost, and is made anew."""
        shutil.rmtree(self.path)
        self._write(all_rows)

    def _write(self, rows: pa.Table) -> None:
        self._rows = rows
        with tempfile.NamedTemporaryFile(dir=self.place.parent, delete=False) as file:
            pq.write_table(rows, file)
        os.replace(file.name, self.place / "rows.parquet")


class SourceTable:
    """A source and its writer."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self.path = self.place = path
        self.version = 0
        self._files: list[str] = []
        #: what its commits carry besides
        self.saying: str | None = None
        create_table(path, columns, {"delta.enableChangeDataFeed": "true"})

    def catch_up(self) -> None:
        """Somebody else may have written."""
        handle = DeltaTable(self.path)
        self.version, self._files = handle.version(), [Path(unquote(uri)).name for uri in handle.file_uris()]

    def append(self, rows: pa.Table) -> None:
        name, added = self._written(rows)
        self._commit("WRITE", [added])
        self._files.append(name)

    def change(self, all_rows: pa.Table, changes: pa.Table) -> None:
        """`changes` has `_change_type` besides the columns."""
        removed = [{"remove": {"path": name, "dataChange": True, "deletionTimestamp": 0}} for name in self._files]
        name, added = self._written(all_rows)
        self._commit("MERGE", [*removed, added, self._change_file(changes)])
        self._files = [name]

    def optimize(self) -> None:
        """The same rows in another file."""
        if not self._files:
            self._commit("SET TBLPROPERTIES", [])
            return
        rows = pa.concat_tables([pq.read_table(self.path / name) for name in self._files])
        removed = [{"remove": {"path": name, "dataChange": False, "deletionTimestamp": 0}} for name in self._files]
        name, added = self._written(rows, data_change=False)
        self._commit("OPTIMIZE", [*removed, added])
        self._files = [name]

    def lie(self, changes: pa.Table) -> None:
        """A change feed that tells of changes which never were."""
        change_file = self._change_file(changes)
        self._commit("MERGE", [change_file])

    def replace(self, columns: Sequence[Column], all_rows: pa.Table) -> None:
        """Another table at the same place, with the same rows."""
        shutil.rmtree(self.path)
        self.version, self._files = 0, []
        create_table(self.path, columns, {"delta.enableChangeDataFeed": "true"})
        self.append(all_rows)

    def rewrite_newest(self) -> None:
        """The newest commit is another one than it was: what a log looks like that was restored and went on."""
        commit_file = self.path / "_delta_log" / f"{self.version:020d}.json"
        lines = commit_file.read_text().splitlines()
        info = json.loads(lines[0])
        info["commitInfo"]["txnId"] = str(uuid.uuid4())
        commit_file.write_text("\n".join([json.dumps(info), *lines[1:]]) + "\n")

    def forget_history(self) -> None:
        """What happens to a log after its retention: a checkpoint is all that is left of it."""
        DeltaTable(self.path).create_checkpoint()
        for version in range(self.version):
            (self.path / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)

    def _commit(self, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
        commit(self.path, self.version + 1, operation, actions, self.saying)
        self.version += 1
        if self.version % CHECKPOINT_INTERVAL == 0:
            DeltaTable(self.path).create_checkpoint()

    def _change_file(self, changes: pa.Table) -> dict[str, Any]:
        folder = self.path / "_change_data"
        folder.mkdir(exist_ok=True)
        name = f"_change_data/cdc-{uuid.uuid4()}.parquet"
        pq.write_table(changes, self.path / name)
        size = (self.path / name).stat().st_size
        return {"cdc": {"path": name, "partitionValues": {}, "size": size, "dataChange": False}}

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
