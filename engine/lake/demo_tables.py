"""The demo's sources, written without Spark: as other people's writers do, and fast to start.

Each call is one Delta commit. The tables have the Change Data Feed on, so that every reader of changes finds
inserts, updates and deletes in them, and no deletion vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

Row = dict[str, Any]
#: column names with their types as Spark spells them
Columns = Sequence[tuple[str, str]]

#: somebody else committed in between: so often is a commit tried again from the newest version
ATTEMPTS = 5

#: Joined files stay small: a changed row rewrites its whole file, and the demo may run for days.
JOINED_FILE_BYTES = 256 * 1024

#: What was replaced longer ago than this is removed, with the log that tells of it.
HISTORY_HOURS = 6

_OP = "__op"


class DemoTable:
    """One table that exists, with the columns that identify a row."""

    def __init__(self, path: Path, columns: Columns, key: tuple[str, ...]) -> None:
        from deltalake import DeltaTable

        self._handle: DeltaTable = DeltaTable(str(path))
        self._columns = tuple(columns)
        self._key = key

    @staticmethod
    def exists(path: Path) -> bool:
        return (path / "_delta_log" / "00000000000000000000.json").exists()

    @staticmethod
    def create(path: Path, columns: Columns, rows: Sequence[Row]) -> None:
        from deltalake import write_deltalake

        properties = {
            "delta.enableChangeDataFeed": "true",
            "delta.logRetentionDuration": f"interval {HISTORY_HOURS} hours",
        }
        write_deltalake(str(path), _arrow(columns, rows), mode="error", configuration=properties)

    def commit(self, inserts: Sequence[Row] = (), updates: Sequence[Row] = (), deletes: Sequence[Row] = ()) -> int:
        """Writes one commit and returns its version. Updates are whole rows, deletes at least the key."""
        from deltalake.exceptions import CommitFailedError

        for attempt in range(1, ATTEMPTS + 1):
            try:
                if updates or deletes:
                    self._merge(inserts, updates, deletes)
                else:
                    self._append(inserts)
                break
            except CommitFailedError:
                if attempt == ATTEMPTS:
                    raise
                self._handle.update_incremental()
        return self._handle.version()

    def _append(self, rows: Sequence[Row]) -> None:
        from deltalake import write_deltalake

        write_deltalake(self._handle, _arrow(self._columns, rows), mode="append")

    def _merge(self, inserts: Sequence[Row], updates: Sequence[Row], deletes: Sequence[Row]) -> None:
        changed = [
            *({**row, _OP: "insert"} for row in inserts),
            *({**row, _OP: "update"} for row in updates),
            *({**row, _OP: "delete"} for row in deletes),
        ]
        values = {name: f"change.{name}" for name, _ in self._columns}
        (
            self._handle.merge(
                _arrow((*self._columns, (_OP, "string")), changed),
                " and ".join(f"kept.{name} = change.{name}" for name in self._key),
                source_alias="change",
                target_alias="kept",
            )
            .when_matched_delete(predicate=f"change.{_OP} = 'delete'")
            .when_matched_update(values, predicate=f"change.{_OP} = 'update'")
            .when_not_matched_insert(values, predicate=f"change.{_OP} = 'insert'")
            .execute()
        )

    def rows(self, where: tuple[str, int] | None = None) -> list[Row]:
        """All rows, or those whose column is at least the number given."""
        filters = [(where[0], ">=", where[1])] if where else None
        table = self._handle.to_pyarrow_table(columns=[name for name, _ in self._columns], filters=filters)
        rows: list[Row] = table.to_pylist()
        return rows

    def highest(self, column: str) -> int:
        """The highest number in a column, 0 when there is no row."""
        import pyarrow.compute

        values = self._handle.to_pyarrow_table(columns=[column])[column]
        return int(pyarrow.compute.max(values).as_py() or 0)

    def maintain(self) -> None:
        """Joins small files, a commit without a change of data, and removes what is long replaced."""
        self._handle.optimize.compact(target_size=JOINED_FILE_BYTES)
        self._handle.vacuum(HISTORY_HOURS, dry_run=False, enforce_retention_duration=False)

    @property
    def version(self) -> int:
        return self._handle.version()


def _arrow(columns: Columns, rows: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), pa.schema([(name, _arrow_type(type_)) for name, type_ in columns]))


def _arrow_type(spark_type: str) -> pa.DataType:
    import pyarrow as pa

    match spark_type:
        case "bigint":
            return pa.int64()
        case "int":
            return pa.int32()
        case "boolean":
            return pa.bool_()
        case "timestamp":
            return pa.timestamp("us", tz="UTC")
        case "decimal(12,2)":
            return pa.decimal128(12, 2)
        case _:
            return pa.string()
