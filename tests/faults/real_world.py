"""A workspace on real Spark: sources, a stream table for each strategy, an engine that mends, and a witness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from engine.engine import Engine
from engine.errors import TrickleError
from engine.failpoints import Failpoint
from engine.records import Outcome, RefreshRecord
from tests.faults.children import PATIENCE_S
from tests.faults.troubles import REFRESH_POINTS
from tests.faults.witness import Broken, Watched, Witness, strangers
from tests.spark.shop import ORDERS

#: a change of more rows is Spark's to commit
DRIVER_ROWS = 12
FEW, MANY = 3, 3 * DRIVER_ROWS

PAID = "SELECT id, amount FROM {orders} WHERE status = 'paid'"
BY_REGION = (
    "SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS orders "
    "FROM {orders} o JOIN customers c ON o.customer = c.id WHERE o.status <> 'void' GROUP BY c.region"
)

CUSTOMERS = pa.table({"id": range(5), "region": [f"r{n % 3}" for n in range(5)]})


@dataclass(frozen=True)
class Case:
    """A strategy, and the stream table and the change that call for it."""

    strategy: str
    query: str
    #: rows that a change inserts; none for a commit without rows
    rows: int
    #: does it update and delete as well?
    mixed: bool = False
    mode: str = "DIFFERENTIAL"

    @property
    def table(self) -> str:
        return self.strategy.replace(" ", "_")

    @property
    def orders(self) -> str:
        return f"orders_of_{self.table}"

    @property
    def text(self) -> str:
        return self.query.format(orders=self.orders)

    @property
    def points(self) -> tuple[Failpoint, ...]:
        """What its refresh passes, in order."""
        return tuple(point for point in REFRESH_POINTS if point not in _NOT_PASSED.get(self.strategy, ()))

    @property
    def by_spark(self) -> bool:
        """Does Spark write into the table's folder?"""
        return self.strategy in ("append by spark", "merge by spark", "overwrite")

    @property
    def spark_writes_after(self) -> Failpoint:
        """Of a full refresh Spark writes the files, and the driver commits them."""
        return Failpoint.CHANGES_READ if self.strategy == "overwrite" else Failpoint.COMMIT


_NOT_PASSED = {
    "no data": (Failpoint.CHANGES_READ, Failpoint.COMPUTED, Failpoint.COMMIT),
}

CASES = (
    Case("no data", BY_REGION, 0),
    Case("append from driver", PAID, FEW),
    Case("append by spark", PAID, MANY),
    Case("merge from driver", BY_REGION, FEW, mixed=True),
    Case("merge by spark", BY_REGION, MANY, mixed=True),
    Case("overwrite", BY_REGION, MANY, mixed=True, mode="FULL"),
)


def make_workspace(folder: Path) -> Path:
    """Enough for a child to start on; what it is to refresh may come later."""
    Engine.init(folder)
    (folder / "trickle.toml").write_text(f"[refresh]\nmax_driver_delta_rows = {DRIVER_ROWS}\n", encoding="utf-8")
    return folder


class World:
    """Sources, a stream table for each case, an engine that mends, and what looks at them."""

    def __init__(self, folder: Path, cases: Iterable[Case]) -> None:
        self.folder = folder
        self.witness = Witness()
        self._next_id = dict.fromkeys(CASES, 1000)
        self._sources = folder / "sources"
        write_deltalake(self._sources / "customers", CUSTOMERS, configuration=_WITH_FEED)
        self.engine = Engine.open(folder, start_spark=True)
        self.engine.wait_for_spark(PATIENCE_S)
        self.engine.add_source("customers", self._sources / "customers")
        for case in cases:
            write_deltalake(self._sources / case.orders, _orders(range(60)), configuration=_WITH_FEED)
            self.engine.add_source(case.orders, self._sources / case.orders)
            self.engine.create_stream_table(case.table, case.text, refresh_mode=case.mode)

    def close(self) -> None:
        self.engine.close()

    def watched(self, name: str, case: Case) -> Watched:
        sources = {case.orders: self._sources / case.orders, "customers": self._sources / "customers"}
        used = {source: path for source, path in sources.items() if f"{source} " in case.text}
        return Watched(self.engine.workspace.warehouse / name, case.text, used)

    def change(self, case: Case) -> None:
        """What a writer does that knows nothing of Trickle: up to three commits."""
        path = self._sources / case.orders
        if not case.rows:
            _commit_nothing(path)
            return
        first = self._next_id[case]
        self._next_id[case] += case.rows
        write_deltalake(path, _orders(range(first, first + case.rows)), mode="append")
        if case.mixed:
            DeltaTable(path).update({"amount": "amount + 1"}, predicate=f"id IN ({first - 1}, {first})")
            DeltaTable(path).delete(f"id = {first + 1}")

    def look(self, case: Case) -> int:
        version = self.witness.look(self.watched(case.table, case))
        strange = strangers(self.engine.workspace.warehouse, {each.name for each in self.engine.stream_tables()})
        if strange:
            raise Broken(f"left over: {strange}")
        return version

    def refresh(self, name: str) -> tuple[RefreshRecord, int]:
        """As the scheduler does it: what may be tried again is; and how many tries it took."""
        for tries in range(1, 6):
            try:
                return self.engine.refresh_stream_table(name), tries
            except TrickleError as error:
                if not error.retryable:
                    raise Broken(f"recovery failed: {error}") from error
        raise Broken(f"recovery was given up after {tries} tries")

    def recover(self, case: Case) -> tuple[RefreshRecord, int]:
        """Everything is caught up by one ordinary refresh, and then there is nothing to do."""
        record, tries = self.refresh(case.table)
        ordinary = Outcome.FULL if case.mode == "FULL" else Outcome.DIFFERENTIAL
        if record.outcome not in (ordinary, Outcome.NO_DATA):
            raise Broken(f"recovery was {record.outcome}: {record.reason.text}")
        self.look(case)
        self.idle(case)
        return record, tries

    def idle(self, case: Case) -> None:
        version = self.witness.look_caught_up(self.watched(case.table, case))
        again, _ = self.refresh(case.table)
        if again.outcome is not Outcome.NO_DATA or self.look(case) != version:
            raise Broken(f"a second refresh was {again.outcome}: {again.reason.text}")
        status = self.engine.status(case.table)
        if status.error is not None:
            raise Broken(f"its status is {status.state}: {status.error}")

    def commits(self, case: Case, after: int) -> list[str]:
        return self.witness.strategies(self.watched(case.table, case), after)


_WITH_FEED = {"delta.enableChangeDataFeed": "true"}


def _orders(ids: range) -> pa.Table:
    rows = [
        {"id": n, "customer": n % 5, "amount": Decimal(7 * n) / 100, "status": "void" if n % 7 == 0 else "paid"}
        for n in ids
    ]
    return pa.Table.from_pylist(rows, ORDERS)


def _commit_nothing(path: Path) -> None:
    """A version without a change: the frontier moves, and the catalog alone knows."""
    table = DeltaTable(path)
    table.create_write_transaction([], "append", table.schema(), commit_properties=CommitProperties())
