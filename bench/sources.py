"""Sources as strangers write them: rows made by DuckDB, commits by delta-rs, with a Change Data Feed.

And the same rows as DuckDB finds them in the same files, for recomputing without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from deltalake import DeltaTable, write_deltalake

from bench.stage import Stage, timed_ms

if TYPE_CHECKING:
    import pyarrow as pa

OP = "__op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"


class Source:
    """A Delta table, and what changes it. `rows` may be any table that DuckDB can select from."""

    def __init__(self, folder: Path, name: str, key: Sequence[str]) -> None:
        self.name = name
        self.path = str(folder / name)
        self._key = tuple(key)

    def create(self, stage: Stage, parquet: str, files: int) -> None:
        """In the order of its key, as data usually lies that came over time."""
        rows = stage.spark.read.parquet(parquet).repartitionByRange(files, *self._key).sortWithinPartitions(*self._key)
        rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(self.path)
        stage.engine.add_source(self.name, self.path)

    def append(self, rows: pa.Table) -> None:
        write_deltalake(DeltaTable(self.path), rows, mode="append")

    def change(self, rows: pa.Table) -> None:
        """One commit; each row says by `__op` what becomes of it."""
        values = {name: f"change.{name}" for name in rows.column_names if name != OP}
        (
            DeltaTable(self.path)
            .merge(
                rows,
                " and ".join(f"kept.{name} = change.{name}" for name in self._key),
                source_alias="change",
                target_alias="kept",
            )
            .when_matched_delete(predicate=f"change.{OP} = '{DELETE}'")
            .when_matched_update(values, predicate=f"change.{OP} = '{UPDATE}'")
            .when_not_matched_insert(values, predicate=f"change.{OP} = '{INSERT}'")
            .execute()
        )

    def remove(self, rows: pa.Table) -> None:
        """The same for rows that all go, of which nothing but the key is known."""
        on = " and ".join(f"kept.{name} = change.{name}" for name in self._key)
        merge = DeltaTable(self.path).merge(rows, on, source_alias="change", target_alias="kept")
        merge.when_matched_delete().execute()

    def files(self) -> list[str]:
        return [uri.removeprefix("file://") for uri in DeltaTable(self.path).file_uris()]


@contextmanager
def duckdb_over(sources: Sequence[Source]) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the newest rows of these sources under their names."""
    with duckdb.connect() as db:
        for source in sources:
            files = ", ".join(f"'{file}'" for file in source.files())
            db.execute(f"CREATE VIEW {source.name} AS SELECT * FROM read_parquet([{files}])")
        yield db


def recompute_ms(db: duckdb.DuckDBPyConnection, query: str, folder: Path) -> float:
    """The whole result computed anew, into a Parquet file: what somebody does who has DuckDB and no Trickle."""
    target = folder / "recomputed.parquet"
    return timed_ms(lambda: db.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet)"))
