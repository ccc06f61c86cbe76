"""Altering: what stays, what is computed anew, what is refused, and that readers never see half of it."""

from __future__ import annotations

import threading

import pytest
from deltalake import DeltaTable

from engine.engine import Engine
from engine.errors import CycleDetected, DependentsExist, InvalidArgument, QueryError, RefreshFailed, VolatileFunction
from engine.event_records import EventKind
from engine.lake import tables
from engine.records import Outcome, ReasonCode, RefreshMode
from engine.results import AlterKind, AlterResult
from tests.spark.shop import BY_REGION, PAID, Shop, holds, order

pytestmark = pytest.mark.spark

VOID = "SELECT id, amount FROM orders WHERE status = 'void'"


def rows_of(engine: Engine, name: str) -> list[dict[str, object]]:
    return engine.select(f"SELECT * FROM {name}").to_pylist()


def test_settings_change_at_once_and_rows_stay(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    version = version_of(engine, "paid")
    result = engine.alter_stream_table("paid", schedule="30s", comment="what came in")
    assert (result.kind, result.refresh) == (AlterKind.SETTINGS, None)
    assert result.text == "schedule 30s, comment what came in"
    assert (result.table.interval_s, result.table.comment) == (30.0, "what came in")
    assert engine.alter_stream_table("paid", schedule="30s").kind is AlterKind.NOTHING
    assert engine.alter_stream_table("paid", query=PAID).kind is AlterKind.NOTHING
    assert set(operations_since(engine, "paid", version)) == {"SET TBLPROPERTIES"}
    shop.insert("orders", order(90, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")
    with pytest.raises(InvalidArgument):
        engine.alter_stream_table("paid", schedule="1ms")
    with pytest.raises(InvalidArgument):
        engine.alter_stream_table("paid", refresh_mode="QUICK")


def test_another_query_is_one_commit_of_all_rows(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    version = version_of(engine, "paid")
    result = engine.alter_stream_table("paid", query=VOID)
    assert result.kind is AlterKind.REBUILD
    assert result.refresh is not None
    assert (result.refresh.outcome, result.refresh.reason.code) == (
        Outcome.REINITIALIZE,
        ReasonCode.FINGERPRINT_CHANGED,
    )
    holds(engine, "paid")
    assert {row["id"] for row in rows_of(engine, "paid")} == set(range(7, 61, 7))
    assert len([each for each in operations_since(engine, "paid", version) if each != "SET TBLPROPERTIES"]) == 1
    assert any(event.kind is EventKind.STREAM_TABLE_ALTERED for event in engine.overview(events=20).events)

    wider = engine.alter_stream_table("paid", query=VOID.replace("amount", "amount, customer AS who"))
    assert (wider.kind, "with who" in wider.text) == (AlterKind.COLUMNS, True)
    assert set(rows_of(engine, "paid")[0]) == {"id", "amount", "who"}
    narrower = engine.alter_stream_table("paid", query=VOID.replace("id, amount", "id"))
    assert "without amount, who" in narrower.text
    assert set(rows_of(engine, "paid")[0]) == {"id"}
    grouped = engine.alter_stream_table("paid", query=BY_REGION)
    assert grouped.table.sources == ("orders", "customers")
    shop.insert("orders", order(91, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")
    engine.repair()
    assert engine.stream_table("paid").query == BY_REGION


def test_what_fails_leaves_everything_as_it_was(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    before, rows = engine.stream_table("paid"), rows_of(engine, "paid")
    refused: tuple[tuple[str, type[Exception], str | None], ...] = (
        ("SELECT id, 1 / (customer - customer) AS x FROM orders", RefreshFailed, None),
        ("SELECT nosuch FROM orders", QueryError, None),
        ("SELECT * FROM paid", CycleDetected, None),
        ("SELECT id FROM orders LIMIT", QueryError, None),
        ("SELECT id, current_date() AS d FROM orders", VolatileFunction, "DIFFERENTIAL"),
    )
    for query, error, mode in refused:
        with pytest.raises(error):
            engine.alter_stream_table("paid", query=query, refresh_mode=mode)
        assert engine.stream_table("paid") == before
        assert rows_of(engine, "paid") == rows
    shop.insert("orders", order(90, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")


def test_what_others_read_stays(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    engine.create_stream_table("sums", "SELECT SUM(amount) AS total FROM paid")
    with pytest.raises(DependentsExist, match="sums reads amount of paid"):
        engine.alter_stream_table("paid", query="SELECT id FROM orders")
    with pytest.raises(DependentsExist):
        engine.alter_stream_table("paid", query="SELECT id, CAST(amount AS DOUBLE) AS amount FROM orders")
    with pytest.raises(CycleDetected):
        engine.alter_stream_table("paid", query="SELECT id, amount FROM orders JOIN sums ON total = amount")
    engine.alter_stream_table("paid", query=VOID.replace("id, ", ""))
    engine.refresh_stream_table("sums")
    for name in ("paid", "sums"):
        holds(engine, name)


def test_another_mode_goes_on_with_the_same_rows(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    assert engine.alter_stream_table("paid", refresh_mode="FULL").table.refresh_mode is RefreshMode.FULL
    shop.insert("orders", order(90, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.FULL
    assert engine.alter_stream_table("paid", refresh_mode="DIFFERENTIAL").kind is AlterKind.SETTINGS
    shop.insert("orders", order(91, 1, 100))
    assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")


def test_replacing_says_what_it_did(engine: Engine, shop: Shop) -> None:
    def replaced(query: str) -> object:
        return engine.sql(f"CREATE OR REPLACE STREAM TABLE paid WITH (schedule = '20s') AS {query}").value

    first = replaced(PAID)
    assert not isinstance(first, AlterResult)
    again, other = replaced(PAID), replaced(VOID)
    assert isinstance(again, AlterResult)
    assert isinstance(other, AlterResult)
    assert (again.kind, other.kind) == (AlterKind.NOTHING, AlterKind.REBUILD)
    altered = engine.sql("ALTER STREAM TABLE paid SET (schedule = '40s') AS SELECT id FROM orders").value
    assert isinstance(altered, AlterResult)
    assert (altered.kind, altered.table.schedule) == (AlterKind.COLUMNS, "40s")
    holds(engine, "paid")


def test_readers_never_see_an_empty_table(engine: Engine, shop: Shop) -> None:
    """Between the definition and the commit its readers have the rows of before."""
    engine.create_stream_table("paid", PAID)
    path = engine.stream_table("paid").path
    seen: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(tables.pin(path).rows())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        engine.alter_stream_table("paid", query=VOID)
    finally:
        stop.set()
        reader.join()
    assert set(seen) <= {52, 8}
    assert seen[0] == 52
    assert seen[-1] == 8


def version_of(engine: Engine, name: str) -> int:
    return int(DeltaTable(engine.stream_table(name).path).version())


def operations_since(engine: Engine, name: str, version: int) -> list[str]:
    found = DeltaTable(engine.stream_table(name).path).history()
    return [each["operation"] for each in found if each["version"] > version]
