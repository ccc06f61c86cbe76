"""One Delta table: its columns, its properties, its making and its end."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import AlreadyExists, InvalidArgument
from engine.lake import failures, hold, log, quoting
from engine.records import Column

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

CDF_PROPERTY = "delta.enableChangeDataFeed"

#: what Delta refuses in a column name without column mapping
ILLEGAL_IN_NAMES = " ,;{}()\n\t="

#: names of folders that readers do not see
_ASIDE = ".dropped-"

_ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}|\\")

#: Delta's names of types where Spark's SQL has another
_SPELLINGS = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


@dataclass(frozen=True)
class Pinned:
    """A table held at one version: commits through it fail as soon as anybody else has committed."""

    path: str
    version: int
    table_id: str
    #: commit through this handle only, and once; see `apply`
    handle: DeltaTable

    @property
    def columns(self) -> tuple[Column, ...]:
        return columns_of(json.loads(self.handle.schema().to_json()))

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.handle.metadata().configuration)

    def rows(self) -> int:
        """How many rows it has, by what its files say of themselves."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            total = int(self.handle.count())
            for batch in self.handle.deletion_vectors():
                for kept in pa.record_batch(batch).column("selection_vector"):
                    total -= len(kept) - int(pc.sum(kept.values).as_py() or 0)
        except Exception as error:
            # it opens tables that it then does not read: with widened types, say
            raise failures.typed(error, f"Counting the rows of {self.path}") from error
        return total


def pin(path: str, version: int | None = None) -> Pinned:
    from deltalake import DeltaTable

    _refuse_escapes(path)
    try:
        handle = DeltaTable(path, version=version)
        return Pinned(path, handle.version(), str(handle.metadata().id), handle)
    except Exception as error:
        raise failures.typed(error, f"Opening {path}") from error


def _refuse_escapes(path: str) -> None:
    """delta-rs reads them as other characters, and looks in another folder."""
    found = _ESCAPES.search(path)
    if found and log.local_path(path) is not None:
        raise InvalidArgument(
            f"{path} cannot be opened: its name has {found.group()!r} in it",
            detail="delta-rs takes that for another character",
            hint="give the folder another name",
        )


def columns(path: str, version: int | None = None) -> tuple[Column, ...]:
    """As Spark spells their types."""
    return columns_of(log.definition(path, version).schema)


def properties(path: str) -> dict[str, str]:
    return log.definition(path).properties


def partition_columns(path: str) -> tuple[str, ...]:
    return log.definition(path).partition_columns


def cdf_enabled(path: str) -> bool:
    return is_on(properties(path), CDF_PROPERTY)


def is_on(configuration: Mapping[str, str], key: str) -> bool:
    return configuration.get(key, "false").lower() == "true"


def create(
    session: SparkSession,
    path: str,
    columns: Sequence[Column],
    properties: Mapping[str, str],
    comment: str = "",
    partition_by: Sequence[str] = (),
) -> None:
    """By Spark: delta-rs asks for table features that nobody needs, which keeps other readers out."""
    folder = log.local_path(path)
    if folder is not None and log.is_table(folder):
        raise AlreadyExists(f"There already is a table at {path}.", hint="Drop it, or choose another name.")
    listed = ", ".join(
        f"{quoting.name(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}" for column in columns
    )
    statement = f"CREATE TABLE {quoting.table(path)} ({listed}) USING delta"
    if partition_by:
        statement += f" PARTITIONED BY ({', '.join(map(quoting.name, partition_by))})"
    if comment:
        statement += f" COMMENT {quoting.text(comment)}"
    if properties:
        statement += f" TBLPROPERTIES ({_property_list(properties)})"
    _run(session, statement, f"Creating the table at {path}", path)


def set_properties(path: str, values: Mapping[str, str]) -> int:
    """Without Spark; the version that has them."""
    pinned = pin(path)
    try:
        pinned.handle.alter.set_table_properties(dict(values), raise_if_not_exists=False)
    except Exception as error:
        raise failures.typed(error, f"Setting properties of {path}", path) from error
    return pinned.handle.version()


def enable_cdf(session: SparkSession, path: str) -> int:
    """Switch the Change Data Feed on; the version after which every change can be read from it."""
    if not cdf_enabled(path):
        _run(
            session,
            f"ALTER TABLE {quoting.table(path)} SET TBLPROPERTIES ({_property_list({CDF_PROPERTY: 'true'})})",
            f"Switching the Change Data Feed of {path} on",
            path,
        )
    return log.newest_version(path) if log.local_path(path) is not None else pin(path).version


def remove(path: str, warehouse: Path) -> None:
    """Delete a table's folder: out of sight in one step, so that no reader meets half a table."""
    clear(set_aside(path, warehouse, uuid.uuid4().hex))


def set_aside(path: str, warehouse: Path, st_id: str) -> Path:
    """Out of readers' sight, and still whole: until `clear` it can be brought back.

    Only inside the warehouse: whatever else is asked for is not ours.
    """
    folder = log.local_path(path)
    inside = folder is not None and warehouse.resolve() in folder.resolve().parents and not folder.is_symlink()
    if folder is None or not inside:
        raise InvalidArgument(f"{path} is not inside the warehouse and stays.", detail=f"It is {warehouse}.")
    doomed = folder.with_name(f"{_ASIDE}{st_id}")
    try:
        with hold.for_removal(folder):
            if folder.exists():
                folder.rename(doomed)
    except OSError as error:
        raise failures.typed(error, f"Removing {path}", path) from error
    return doomed


def clear(doomed: Path) -> None:
    try:
        if doomed.exists():
            shutil.rmtree(doomed)
    except OSError as error:
        raise failures.typed(error, f"Removing {doomed}", doomed) from error


def set_aside_in(warehouse: Path) -> dict[str, Path]:
    """What was set aside and neither cleared nor brought back, by the id that it was set aside under."""
    if not warehouse.is_dir():
        return {}
    found = (entry for entry in warehouse.iterdir() if entry.name.startswith(_ASIDE))
    return {entry.name.removeprefix(_ASIDE): entry for entry in found}


def spelled(kind: Any) -> str:
    """Spark's SQL spelling of a type in a Delta schema."""
    if isinstance(kind, str):
        return _SPELLINGS.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{spelled(kind['elementType'])}>"
        case "map":
            return f"map<{spelled(kind['keyType'])},{spelled(kind['valueType'])}>"
        case "struct":
            fields = ",".join(f"{quoting.field(item['name'])}:{spelled(item['type'])}" for item in kind["fields"])
            return f"struct<{fields}>"
        case other:
            return str(other)


def spelled_by_spark(kind: DataType) -> str:
    """The same of a type in Spark's hands, whose own `simpleString` is no SQL where a field's name needs backticks."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case ArrayType():
            return f"array<{spelled_by_spark(kind.elementType)}>"
        case MapType():
            return f"map<{spelled_by_spark(kind.keyType)},{spelled_by_spark(kind.valueType)}>"
        case StructType():
            fields = (f"{quoting.field(item.name)}:{spelled_by_spark(item.dataType)}" for item in kind.fields)
            return f"struct<{','.join(fields)}>"
        case _:
            return kind.simpleString()


def columns_of(schema: dict[str, Any]) -> tuple[Column, ...]:
    return tuple(
        Column(item["name"], _collated(item) or spelled(item["type"]), bool(item.get("nullable", True)))
        for item in schema["fields"]
    )


def _collated(item: Any) -> str | None:
    """A text that is compared by a collation; Delta notes that beside the type."""
    collations = (item.get("metadata") or {}).get("__COLLATIONS") or {}
    named = collations.get(item["name"])
    return f"string collate {str(named).rpartition('.')[2]}" if named and item["type"] == "string" else None


def _property_list(values: Mapping[str, str]) -> str:
    return ", ".join(f"{quoting.text(key)} = {quoting.text(value)}" for key, value in values.items())


def _run(session: SparkSession, statement: str, doing: str, path: str) -> None:
    try:
        session.sql(statement)
    except Exception as error:
        raise failures.typed(error, doing, path) from error
