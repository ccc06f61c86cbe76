"""The writer on real Delta tables: what it commits, that it continues, that it never outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import pytest

from engine.demo.process import writer_process
from engine.demo.rows import ORDERS, TABLES
from engine.demo.shop import Size
from engine.demo.writer import Writer, make_sources
from engine.errors import InternalError
from engine.lake.demo_tables import DemoTable

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SMALL = Size(customers=60, products=25, orders=300)


@pytest.fixture
def lake(tmp_path):
    assert make_sources(tmp_path, 7, SMALL, NOON)
    return tmp_path


def rows_of(lake: Path, table: str) -> list[dict]:
    keys = {shape.name: shape.key for shape in TABLES}[table]
    rows = deltalake.DeltaTable(str(lake / table)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def test_sources_have_the_change_feed_and_no_deletion_vectors(lake):
    for shape in TABLES:
        table = deltalake.DeltaTable(str(lake / shape.name))
        assert table.metadata().configuration["delta.enableChangeDataFeed"] == "true"
        assert "deletionVectors" not in (table.protocol().writer_features or [])
    assert not make_sources(lake, 7, SMALL, NOON), "what exists is left alone"


def test_columns_are_of_the_types_that_were_asked_for(lake):
    for shape in TABLES:
        fields = deltalake.DeltaTable(str(lake / shape.name)).schema().fields
        spelled = {"long": "bigint", "integer": "int"}
        found = [(field.name, spelled.get(field.type.type, field.type.type)) for field in fields]
        assert found == list(shape.columns)


def test_a_commit_does_what_it_says(lake):
    table = DemoTable(lake / "orders", ORDERS.columns, ORDERS.key)
    before = {row["order_id"]: row for row in rows_of(lake, "orders")}
    new = {**before[1], "order_id": 9_001}
    changed = {**before[2], "status": "cancelled"}
    version = table.commit(inserts=[new], updates=[changed], deletes=[{"order_id": 3}])
    assert version == 1
    after = {row["order_id"]: row for row in rows_of(lake, "orders")}
    assert after == {**{key: row for key, row in before.items() if key != 3}, 2: changed, 9_001: new}
    feed = deltalake.DeltaTable(str(lake / "orders")).load_cdf(starting_version=1).read_all()
    kinds = sorted(change.as_py() for change in feed.column(feed.schema.get_field_index("_change_type")))
    assert kinds == ["delete", "insert", "update_postimage", "update_preimage"]


def test_the_tables_hold_what_the_shop_remembers(lake):
    writer = Writer(lake, 7)
    for step in range(120):
        writer.step(NOON + timedelta(seconds=step))
    orders = {row["order_id"]: row for row in rows_of(lake, "orders")}
    assert writer.shop.orders.items() <= orders.items()
    lines = rows_of(lake, "order_items")
    assert [line for lines in writer.shop.items.values() for line in lines if line not in lines] == []
    payments = {row["payment_id"]: row for row in rows_of(lake, "payments")}
    assert writer.shop.payments.items() <= payments.items()
    assert len(rows_of(lake, "order_items")) == len(lines)


def test_a_second_writer_continues(lake):
    first = Writer(lake, 7)
    for step in range(60):
        first.step(NOON + timedelta(seconds=step))
    second = Writer(lake, 7)
    assert second.shop.orders == first.shop.orders
    assert {k: v for k, v in second.shop.items.items() if v} == {k: v for k, v in first.shop.items.items() if v}
    assert second.shop.next_payment >= max(second.shop.payments)
    for step in range(60):
        second.step(NOON + timedelta(minutes=5, seconds=step))
    ids = [row["order_id"] for row in rows_of(lake, "orders")]
    assert len(ids) == len(set(ids))


def test_a_commit_of_somebody_else_is_no_obstacle(lake):
    ours = DemoTable(lake / "orders", ORDERS.columns, ORDERS.key)
    theirs = DemoTable(lake / "orders", ORDERS.columns, ORDERS.key)
    row = rows_of(lake, "orders")[0]
    theirs.commit(updates=[{**row, "status": "shipped"}])
    ours.commit(updates=[{**row, "channel": "phone"}])
    assert rows_of(lake, "orders")[0]["channel"] == "phone"


def test_maintenance_changes_no_row_and_joins_files(lake):
    writer = Writer(lake, 7)
    for step in range(40):
        writer.step(NOON + timedelta(seconds=step))
    before = rows_of(lake, "orders")
    files = len(deltalake.DeltaTable(str(lake / "orders")).file_uris())
    DemoTable(lake / "orders", ORDERS.columns, ORDERS.key).maintain()
    assert rows_of(lake, "orders") == before
    assert len(deltalake.DeltaTable(str(lake / "orders")).file_uris()) < files


OWNER = """
import sys, time
from pathlib import Path
from engine.demo.process import writer_process
with writer_process(Path(sys.argv[1]), Path(sys.argv[1]) / "writer.log", 0.05) as writer:
    print(writer.pid, flush=True)
    time.sleep(60)
"""


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_writer_ends_with_its_owner(lake, how):
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(lake)], stdout=subprocess.PIPE, text=True)
    writer_pid = int(owner.stdout.readline())
    orders = deltalake.DeltaTable(str(lake / "orders"))
    wait_until(lambda: orders.update_incremental() or orders.version() > 2, "the writer commits")
    assert not gone(writer_pid)
    os.kill(owner.pid, how)
    owner.wait()
    wait_until(lambda: gone(writer_pid), "the writer ends")


def test_a_writer_that_cannot_write_says_why(tmp_path):
    (tmp_path / "lake").write_text("not a folder")
    with (
        pytest.raises(InternalError) as caught,
        writer_process(tmp_path / "lake", tmp_path / "writer.log", 1.0),
    ):
        pass
    assert caught.value.detail
    assert "writer.log" in (caught.value.hint or "")


def wait_until(condition, what: str, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {within_s}s until {what}"
        time.sleep(0.02)
