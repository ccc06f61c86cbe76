"""What a table's log says of it. The logs here are written by hand where no writer at hand writes such ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from engine.errors import InvalidArgument, NotFound, SourceHistoryLost
from engine.lake import commits, log, quoting, tables
from engine.lake.capabilities import capabilities
from engine.lake.commits import ChangeKind
from engine.records import Column

ROWS = pa.table({"k": pa.array([1, 2, 3])})
FIELDS = [
    {"name": "a", "type": "long", "nullable": False, "metadata": {}},
    {"name": "b", "type": {"type": "array", "elementType": "integer", "containsNull": True}, "nullable": True},
    {
        "name": "c",
        "type": {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "struct", "fields": [{"name": "x", "type": "short"}]},
            "valueContainsNull": True,
        },
    },
    {"name": "d", "type": "decimal(12,2)"},
    {"name": "e", "type": "byte"},
]


def write_log(
    path: Path,
    *commits: list[dict[str, Any]],
    configuration: dict[str, str] | None = None,
    features: tuple[str, ...] = (),
) -> str:
    """A table whose first commit defines it."""
    folder = path / "_delta_log"
    folder.mkdir(parents=True)
    metadata = {
        "id": "id-1",
        "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
        "partitionColumns": [],
        "configuration": configuration or {},
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": list(features)}
    first = [{"commitInfo": {"operation": "CREATE TABLE"}}, {"metaData": metadata}, {"protocol": protocol}]
    for version, actions in enumerate([first, *commits]):
        text = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
        (folder / f"{version:020d}.json").write_text(text + "\n")
    return str(path)


def file(action: str, name: str, rows: int, size: int = 1000, **more: Any) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows})
    return {action: {"path": name, "size": size, "dataChange": True, "stats": stats, **more}}


def said(operation: str, metrics: dict[str, Any] | None = None, **parameters: str) -> dict[str, Any]:
    return {
        "commitInfo": {"operation": operation, "operationParameters": parameters, "operationMetrics": metrics or {}}
    }


def vector(rows: int) -> dict[str, Any]:
    return {"deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "cardinality": rows}}


def test_types_are_spelled_as_spark_spells_them(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t")
    assert tables.columns(path) == (
        Column("a", "bigint", False),
        Column("b", "array<int>"),
        Column("c", "map<string,struct<x:smallint>>"),
        Column("d", "decimal(12,2)"),
        Column("e", "tinyint"),
    )
    with pytest.raises(NotFound):
        tables.columns(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("actions", "kind", "rows", "right"),
    [
        ([said("WRITE", mode="Append"), file("add", "f", 7)], ChangeKind.APPEND, 7, True),
        ([said("WRITE", mode="Append"), file("add", "f", 7, **vector(2))], ChangeKind.APPEND, 5, False),
        ([said("OPTIMIZE"), file("add", "f", 7, dataChange=False)], ChangeKind.DATALESS, 0, True),
        ([said("SET TBLPROPERTIES")], ChangeKind.DATALESS, 0, True),
        (
            [said("DELETE"), file("add", "f", 9, **vector(3)), file("remove", "f", 9, **vector(1))],
            ChangeKind.CHANGE,
            2,
            False,
        ),
        (
            [said("UPDATE", {"numUpdatedRows": "4"}), file("add", "g", 9), {"cdc": {"path": "c", "size": 10}}],
            ChangeKind.CHANGE,
            8,
            True,
        ),
        (
            [
                said("MERGE", {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "4"}),
                file("add", "f", 9, **vector(3)),
                {"cdc": {"path": "c", "size": 10}},
            ],
            ChangeKind.CHANGE,
            9,
            True,
        ),
        (
            [said("WRITE", mode="Overwrite"), file("add", "g", 4), file("remove", "f", 6)],
            ChangeKind.OVERWRITE,
            10,
            True,
        ),
        (
            [said("WRITE", mode="Overwrite", predicate="k < 3"), file("add", "g", 4), file("remove", "f", 6)],
            ChangeKind.CHANGE,
            10,
            True,
        ),
        ([said("DELETE", predicate='["true"]'), file("remove", "f", 6)], ChangeKind.OVERWRITE, 6, True),
        ([said("DELETE", predicate='["(day = 1)"]'), file("remove", "f", 6)], ChangeKind.CHANGE, 6, True),
        ([said("RESTORE"), file("add", "f", 6, **vector(1))], ChangeKind.OVERWRITE, 5, False),
        ([said("CREATE OR REPLACE TABLE AS SELECT"), file("add", "f", 6)], ChangeKind.OVERWRITE, 6, True),
        ([file("add", "f", 6)], ChangeKind.APPEND, 6, True),
    ],
)
def test_a_commit_is_told_from_its_log(
    tmp_path: Path, actions: list[dict[str, Any]], kind: ChangeKind, rows: int, right: bool
) -> None:
    path = write_log(tmp_path / "t", actions, [said("OPTIMIZE")])
    summary = commits.summarise(path, 0, 2)
    assert (summary.kind, summary.rows_estimate, summary.delta_rs_is_right) == (kind, rows, right)
    assert [commit.version for commit in summary.commits] == [1, 2]
    assert not summary.metadata_changed
    nothing = commits.summarise(path, 2, 2)
    assert (nothing.kind, nothing.rows_estimate, nothing.commits) == (ChangeKind.DATALESS, 0, ())


def test_history_that_was_cleaned_is_lost(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t", [file("add", "f", 1)], [file("add", "g", 1)])
    log.commit_file(path, 1).unlink()
    with pytest.raises(SourceHistoryLost) as caught:
        commits.summarise(path, 0, 2)
    assert "version 1" in (caught.value.detail or "")
    assert commits.summarise(path, 1, 2).rows_estimate == 1


def test_a_changed_definition_is_told(tmp_path: Path) -> None:
    def metadata(fields: list[dict[str, Any]], cdf: str, table_id: str = "id-1") -> dict[str, Any]:
        schema = json.dumps({"type": "struct", "fields": fields})
        configuration = {"delta.enableChangeDataFeed": cdf}
        return {"metaData": {"id": table_id, "schemaString": schema, "configuration": configuration}}

    path = write_log(
        tmp_path / "t",
        [said("ADD COLUMNS"), metadata([*FIELDS, {"name": "new", "type": "string"}], "true")],
        [said("SET TBLPROPERTIES"), metadata([*FIELDS, {"name": "new", "type": "string"}], "false")],
        [said("REPLACE TABLE"), metadata(FIELDS, "true", "id-2")],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    wider = commits.summarise(path, 0, 1)
    assert (wider.metadata_changed, wider.schema_changed, wider.cdf_lost_at) == (True, True, None)
    assert wider.columns_after is not None
    assert wider.columns_after[-1] == Column("new", "string")
    assert not wider.delta_rs_is_right
    lost = commits.summarise(path, 1, 3)
    assert (lost.schema_changed, lost.cdf_lost_at, lost.table_id_after) == (True, 2, "id-2")


@pytest.mark.parametrize(
    ("configuration", "features", "driver_merge", "driver_read", "reason"),
    [
        ({}, (), True, True, ""),
        ({"delta.enableDeletionVectors": "true"}, ("deletionVectors",), True, True, ""),
        ({"delta.columnMapping.mode": "name"}, ("columnMapping",), False, False, "column mapping"),
        ({}, ("clustering", "domainMetadata"), False, True, "clustering"),
        ({"delta.enableRowTracking": "true"}, ("rowTracking", "domainMetadata"), False, True, "row tracking"),
        ({}, ("somethingNew",), False, True, "somethingNew"),
    ],
)
def test_abilities(
    tmp_path: Path,
    configuration: dict[str, str],
    features: tuple[str, ...],
    driver_merge: bool,
    driver_read: bool,
    reason: str,
) -> None:
    able = capabilities(write_log(tmp_path / "t", configuration=configuration, features=features))
    assert (able.can_driver_merge, able.can_driver_read) == (driver_merge, driver_read)
    assert reason in " ".join(able.reasons)
    assert bool(able.reasons) == bool(reason)


def test_only_what_is_in_the_warehouse_is_removed(tmp_path: Path) -> None:
    warehouse, outside = tmp_path / "warehouse", tmp_path / "outside"
    for path in (warehouse / "st", outside):
        write_deltalake(path, ROWS)
    (warehouse / "link").symlink_to(outside)
    for path in (outside, warehouse, tmp_path, warehouse / "link", warehouse / ".." / "outside"):
        with pytest.raises(InvalidArgument):
            tables.remove(str(path), warehouse)
    assert DeltaTable(outside).version() == 0
    tables.remove(str(warehouse / "st"), warehouse)
    assert [entry.name for entry in warehouse.iterdir()] == ["link"]
    tables.remove(str(warehouse / "st"), warehouse)


def test_a_pinned_table_stays_where_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        write_deltalake(path, ROWS, mode="append")
    pinned = tables.pin(path)
    write_deltalake(path, ROWS, mode="append")
    assert (pinned.version, pinned.rows()) == (1, 6)
    assert pinned.columns == (Column("k", "bigint"),)
    assert (tables.pin(path).version, tables.pin(path, 0).rows()) == (2, 3)
    with pytest.raises(NotFound):
        tables.pin(str(tmp_path / "nowhere"))
    assert tables.set_properties(path, {"trickle.query": "SELECT 'it''s'"}) == 3
    assert tables.properties(path)["trickle.query"] == "SELECT 'it''s'"


@pytest.mark.parametrize("folder", ["a%20b", "back\\slash"])
def test_a_path_that_delta_rs_reads_as_another_says_so(tmp_path: Path, folder: str) -> None:
    path = str(tmp_path / folder)
    write_deltalake(str(tmp_path / "made"), pa.table({"id": [1]}))
    (tmp_path / "made").rename(path)
    with pytest.raises(InvalidArgument, match="cannot be opened"):
        tables.pin(path)
    with pytest.raises(DeltaError):  # if this fails, delta-rs has learned it
        DeltaTable(path)


def test_names_and_texts_are_quoted(tmp_path: Path) -> None:
    assert quoting.name("a`b") == "`a``b`"
    assert quoting.text("it's \\n") == "'it\\'s \\\\n'"
    assert quoting.table(f"{tmp_path}/x`y") == f"delta.`{tmp_path}/x``y`"
    assert quoting.table((tmp_path / "x y").as_uri()) == f"delta.`{tmp_path}/x y`"
