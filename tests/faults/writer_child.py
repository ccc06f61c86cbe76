"""Writers of one process: each sends DML through Trickle that reads what it changes, all of them at once."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from engine import config
from engine.records import Column, Outcome
from tests.faults.simulation import MovedClock, Process
from tests.support.duck_compute import DuckCompute

ORDERS = (Column("id", "int"), Column("region", "string"), Column("amount", "bigint"))


def write_at_once(process: Process, writers: int) -> list[str]:
    """What went wrong."""
    wrong: list[str] = []
    located = process.plans.relations.located("orders")

    def execute(said: str) -> None:
        """A lost update would show: each takes the number behind the last."""
        table = DeltaTable(located.path)
        last = max(number for number, _, _ in process.compute.rows_of(located.path, table.version(), ORDERS))
        row = pa.table({"id": [last + 1], "region": ["many"], "amount": [1]})
        properties = CommitProperties(custom_metadata={"userMetadata": said}, max_commit_retries=0)
        schema = pa.schema(table.schema().to_arrow())
        write_deltalake(table, row.cast(schema), mode="append", commit_properties=properties)

    def write() -> None:
        try:
            outcomes = [each.outcome for each in process.writes.run(located, execute).refreshes]
        except Exception as error:
            wrong.append(repr(error))
            return
        if set(outcomes) != {Outcome.DIFFERENTIAL}:
            wrong.append(f"it came to {outcomes}")

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def main(folder: Path, writers: int) -> int:
    process = Process(folder, DuckCompute({"orders": ORDERS}), config.load(folder, env={}), MovedClock())
    for table in process.catalog.stream_tables():
        process.compute.know(table.name, table.columns)
    wrong = write_at_once(process, writers)
    print("\n".join(wrong))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
