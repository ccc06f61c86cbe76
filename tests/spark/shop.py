"""A small shop on real Delta tables, and an engine over it: what the engine's own tests stand on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from engine.engine import Engine

ORDERS = pa.schema(
    [("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.decimal128(12, 2)), ("status", pa.string())]
)
CUSTOMERS = pa.schema([("id", pa.int64()), ("region", pa.string())])

BY_REGION = (
    "SELECT c.region, SUM(o.amount) AS total, AVG(o.amount) AS mean, COUNT(*) AS orders "
    "FROM orders o JOIN customers c ON o.customer = c.id WHERE o.status <> 'void' GROUP BY c.region"
)
PAID = "SELECT id, amount FROM orders WHERE status = 'paid'"


def order(id: int, customer: int | None, cents: int | None, status: str | None = "paid") -> dict[str, object]:
    amount = None if cents is None else Decimal(cents) / 100
    return {"id": id, "customer": customer, "amount": amount, "status": status}


class Shop:
    def __init__(self, folder: Path, *, cdf: bool = True) -> None:
        self.folder = folder
        self.configuration = {"delta.enableChangeDataFeed": "true"} if cdf else {}
        self.add("orders", ORDERS, [order(n, n % 5, 100 * n, "void" if n % 7 == 0 else "paid") for n in range(1, 61)])
        self.add("customers", CUSTOMERS, [{"id": n, "region": f"r{n % 2}"} for n in range(5)])

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.path(name))

    def add(self, name: str, schema: pa.Schema, rows: list[dict[str, object]]) -> None:
        write_deltalake(self.path(name), pa.Table.from_pylist(rows, schema), configuration=self.configuration)

    def insert(self, name: str, *rows: dict[str, object]) -> None:
        schema = {"orders": ORDERS, "customers": CUSTOMERS}[name]
        write_deltalake(self.path(name), pa.Table.from_pylist(list(rows), schema), mode="append")


@contextmanager
def opened(folder: Path, shop: Shop, **overrides: str) -> Iterator[Engine]:
    """An engine over the shop. Its Spark is the run's own: engines of the same settings share the JVM."""
    if not (folder / ".trickle").exists():
        Engine.init(folder)
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    with Engine.open(folder, overrides=keys, start_spark=True) as engine:
        engine.wait_for_spark(240)
        if not engine.sources():
            engine.add_source("orders", shop.path("orders"))
            engine.add_source("customers", shop.path("customers"))
        yield engine


def source(engine: Engine, spark: Any, path: Path, columns: str, *rows: str, properties: str = "", by: str = "") -> str:
    """A Delta table made by Spark and known by the name of its folder."""
    wanted = "'delta.enableChangeDataFeed'='true'" + properties
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {by} TBLPROPERTIES ({wanted})")
    if rows:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES {', '.join(rows)}")
    engine.add_source(path.name, str(path))
    return f"delta.`{path}`"


def holds(engine: Engine, name: str) -> None:
    """The promise."""
    result = engine.verify(name)
    assert result.equal, result
