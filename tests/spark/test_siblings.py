"""Stream tables that read the same source share one read of its change."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.lake import changes
from engine.lake.session import SparkHost
from engine.records import Outcome
from tests.spark.shop import PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark

BY_CUSTOMER = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of each change that is really read."""
    found: list[tuple[str, ...]] = []
    real = changes._read

    def counted(session: Any, path: str, columns: Any, *rest: Any) -> Any:
        found.append(tuple(columns))
        return real(session, path, columns, *rest)

    monkeypatch.setattr(changes, "_read", counted)
    return found


@pytest.mark.parametrize("cdf", [True, False], ids=["feed", "files"])
def test_one_read_is_enough_for_all(
    tmp_path: Path, spark_host: SparkHost, reads: list[tuple[str, ...]], cdf: bool
) -> None:
    shop = Shop(tmp_path / "shop", cdf=cdf)
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID, refresh_mode="DIFFERENTIAL")
        engine.create_stream_table("by_customer", BY_CUSTOMER, refresh_mode="DIFFERENTIAL")
        shop.insert("orders", order(90, 3, 500))
        shop.table("orders").update(updates={"amount": "amount + 1"}, predicate="id < 5")
        done = engine.refresh_all()
        assert [each.outcome for each in done] == [Outcome.DIFFERENTIAL] * 2
        assert len(reads) == 1
        # the update touches no column of hers: it was read, and is not in her change
        counted = next(each for each in done if each.st == "by_customer")
        assert counted.rows_in == 1
        for name in ("paid", "by_customer"):
            holds(engine, name)
        shop.table("orders").restore(1 if cdf else 0)
        engine.refresh_all()
        for name in ("paid", "by_customer"):
            holds(engine, name)


def test_at_once_one_waits_for_the_other(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, reads: list[tuple[str, ...]]
) -> None:
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        engine.create_stream_table("by_customer", BY_CUSTOMER)
        for number in range(3):
            shop.insert("orders", order(90 + number, 3, 500))
            shop.table("orders").delete(f"id = {number + 1}")
            together(engine, "paid", "by_customer")
        assert len(reads) == 3
        for name in ("paid", "by_customer"):
            holds(engine, name)


def together(engine: Engine, *names: str) -> None:
    failed: list[Exception] = []

    def refresh(name: str) -> None:
        try:
            assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=refresh, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_without_memory_each_reads_for_itself(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, reads: list[tuple[str, ...]]
) -> None:
    with opened(tmp_path / "ws", shop, sources__shared_changes_mb="0") as engine:
        engine.create_stream_table("paid", PAID)
        engine.create_stream_table("by_customer", BY_CUSTOMER)
        shop.insert("orders", order(90, 3, 500))
        engine.refresh_all()
        assert len(reads) == 2
        assert engine._core.refresher._compute._shared.held_bytes == 0
