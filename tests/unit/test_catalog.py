"""The catalog: records come back equal, names are unique, bad files are recognised, nobody is in the way."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.catalog import Catalog, Lease, Progress, database, disk, migrations
from engine.catalog import store as store_module
from engine.catalog.database import APPLICATION_ID
from engine.clock import SystemClock
from engine.errors import (
    AlreadyExists,
    CatalogBusy,
    CatalogCorrupt,
    DependentsExist,
    InvalidArgument,
    LeaseHeld,
    NotFound,
    ReadOnly,
    StorageFull,
    TrickleError,
    WorkspaceError,
    WorkspaceMissing,
    WorkspaceTooNew,
    WorkspaceTooOld,
)
from engine.event_records import Event, EventKind, Severity
from engine.events import EventBus
from engine.records import CdcMode, Column, Reason, ReasonCode, RefreshMode, Source, SourceVersion, StreamTable, View
from tests.support.permissions import open_the_way_to

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".trickle" / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Catalog:
    return Catalog.open(path)


def source(name: str = "orders", **other: object) -> Source:
    return replace(Source(name, f"/data/{name}", added_at=NOON, owner="etl"), **other)


def stream_table(name: str = "revenue", sources: tuple[str, ...] = ("orders",), **other: object) -> StreamTable:
    made = StreamTable(
        id=f"st-{name.lower()}",
        name=name,
        query="SELECT 'it''s' AS a\nFROM orders",
        refresh_mode=RefreshMode.AUTO,
        schedule="30s",
        interval_s=30.0,
        path=f"/warehouse/{name}",
        owner="etl",
        created_at=NOON,
        sources=sources,
        columns=(Column("a", "string", False), Column("ü b", "decimal(12,2)")),
        fingerprint="f1",
    )
    return replace(made, **other)


# --- records -----------------------------------------------------------------------------------------------


def test_records_come_back_equal(catalog: Catalog, path: Path) -> None:
    orders = source(cdc_mode=CdcMode.CDF, key=("id", "line"))
    items = source("Items", added_at=None)
    table = stream_table(
        sources=("orders", "Items"),
        append_only=True,
        differential_max_change_ratio=0.25,
        comment="what for",
        full_reason=Reason(ReasonCode.UNSUPPORTED, "top-k"),
    )
    progress = Progress(
        st_id=table.id,
        sequence=7,
        refresh_id="refresh",
        frontier={"orders": SourceVersion(412, "hash", "table")},
        data_as_of_at=NOON,
        populated=True,
        paused=True,
        consecutive_errors=2,
        error="boom",
        error_code="RefreshFailed",
        error_hint="mend it",
        error_at=NOON,
        verified_at=NOON,
        verified_equal=False,
        next_due_at=NOON + timedelta(seconds=30),
    )
    catalog.add_source(orders)
    catalog.add_source(items)
    catalog.add_stream_table(table)
    catalog.save_progress(progress)
    catalog.set_meta("k", "v")
    for each in (catalog, Catalog.open(path), Catalog.open(path, read_only=True)):
        assert each.sources() == (items, orders)
        assert each.get_source("ORDERS") == orders
        assert each.stream_tables() == (table,)
        assert each.get_stream_table("Revenue") == table
        assert each.get_progress(table.id) == progress
        assert each.all_progress() == {table.id: progress}
        assert each.get_progress("unknown") == Progress("unknown")
        assert each.dependents("items") == ("revenue",)
        assert (each.get_meta("k"), each.get_meta("other")) == ("v", None)
        assert not each.is_newer()


def test_names_are_unique_over_sources_and_stream_tables(catalog: Catalog) -> None:
    catalog.add_source(source("orders"))
    catalog.add_stream_table(stream_table("revenue"))
    for add in (
        lambda: catalog.add_source(source("ORDERS")),
        lambda: catalog.add_source(source("Revenue")),
        lambda: catalog.add_stream_table(stream_table("REVENUE", id="other")),
        lambda: catalog.add_stream_table(stream_table("Orders")),
    ):
        with pytest.raises(AlreadyExists) as caught:
            add()
        assert caught.value.hint
    assert [each.name for each in catalog.sources()] == ["orders"]
    assert [each.name for each in catalog.stream_tables()] == ["revenue"]


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "../x", "é", "__trickle_x", "__TRICKLE", "x" * 129, "a\n"])
def test_names_that_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        catalog.add_source(source(name))
    assert caught.value.hint
    with pytest.raises(InvalidArgument):
        catalog.add_stream_table(stream_table(name))


def test_what_is_not_there_is_named_with_its_neighbour(catalog: Catalog) -> None:
    catalog.add_source(source("orders"))
    catalog.add_stream_table(stream_table("revenue"))
    for look, hint in (
        (lambda: catalog.get_source("ordres"), "did you mean orders?"),
        (lambda: catalog.get_source("revenue"), "revenue is a stream table"),
        (lambda: catalog.get_stream_table("revenu"), "did you mean revenue?"),
        (lambda: catalog.get_stream_table("zzz"), "there are: revenue"),
        (lambda: catalog.drop_source("zzz"), "there are: orders"),
        (lambda: catalog.drop_stream_table("orders"), "orders is a source"),
        (lambda: catalog.change_stream_table("st-gone", lambda now: now), "nothing is left to do"),
        (lambda: catalog.stream_table_now("st-gone"), "nothing is left to do"),
    ):
        with pytest.raises(NotFound) as caught:
            look()
        assert caught.value.hint == hint
    with pytest.raises(NotFound, match="gone"):
        catalog.save_progress(Progress("st-gone"))


def test_dropping_respects_who_reads(catalog: Catalog) -> None:
    catalog.add_source(source("orders"))
    catalog.add_stream_table(stream_table("a"))
    catalog.add_stream_table(stream_table("b", sources=("A", "orders")))
    catalog.save_progress(Progress("st-a", 3))
    for drop, readers in (
        (lambda: catalog.drop_source("ORDERS"), "a, b"),
        (lambda: catalog.drop_stream_table("a"), "b"),
    ):
        with pytest.raises(DependentsExist) as caught:
            drop()
        assert caught.value.detail == readers
        assert caught.value.hint
    catalog.drop_stream_table("b")
    catalog.drop_stream_table("A")
    catalog.drop_source("orders")
    assert (catalog.sources(), catalog.stream_tables(), catalog.all_progress()) == ((), (), {})
    catalog.add_stream_table(stream_table("a"))
    assert catalog.get_progress("st-a") == Progress("st-a")


def test_updating_may_rename_but_not_onto_another(catalog: Catalog) -> None:
    catalog.add_stream_table(stream_table("a"))
    catalog.add_stream_table(stream_table("b"))
    catalog.save_progress(Progress("st-a", 3))
    renamed = stream_table("C", id="st-a", sources=("x", "y"), schedule="1m")
    assert catalog.change_stream_table("st-a", lambda _: renamed)
    assert not catalog.change_stream_table("st-a", lambda now: now)
    assert catalog.get_stream_table("c") == catalog.stream_table_now("st-a") == renamed
    assert catalog.get_progress("st-a").sequence == 3
    assert catalog.dependents("x") == ("C",)
    catalog.change_stream_table("st-a", lambda now: replace(now, name="c"))
    assert catalog.get_stream_table("C").name == "c"
    with pytest.raises(AlreadyExists):
        catalog.change_stream_table("st-a", lambda now: replace(now, name="B"))
    assert catalog.get_stream_table("c").name == "c"


def event(text: str, subject: str = "") -> Event:
    return Event(NOON, EventKind.SPARK, Severity.WARN, subject, text, "r1")


def test_events_are_numbered_filtered_and_bounded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_EVENTS", 10)
    for number in range(1, 26):
        stored = catalog.append_event(event(str(number), "Even" if number % 2 == 0 else "odd"))
        assert stored == replace(event(str(number), stored.subject), number=number)
    assert [each.number for each in catalog.events()] == list(range(16, 26))
    assert [each.number for each in catalog.events(after=20)] == [21, 22, 23, 24, 25]
    assert [each.number for each in catalog.events(limit=3)] == [23, 24, 25]
    assert [each.number for each in catalog.events(subject="even", limit=2)] == [22, 24]


def test_refresh_numbers_grow_over_openings(catalog: Catalog, path: Path) -> None:
    assert [catalog.next_refresh_number() for _ in range(3)] == [1, 2, 3]
    catalog.close()
    assert Catalog.open(path).next_refresh_number() == 4


def test_the_event_bus_stores_tells_and_drops_a_listener_that_fails(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    bus, heard = EventBus(catalog.append_event, SystemClock()), []

    def bad(_: Event) -> None:
        raise ValueError("broken listener")

    bus.subscribe(bad)
    unsubscribe = bus.subscribe(heard.append)
    first = bus.publish(EventKind.SPARK, "", "ready")
    second = bus.publish(EventKind.REFRESH_FAILED, "revenue", "no", Severity.ERROR, "r1")
    unsubscribe()
    unsubscribe()
    bus.publish(EventKind.SPARK, "", "gone")
    assert heard == [first, second]
    assert [each.text for each in catalog.events()] == ["ready", "no", "gone"]
    assert caplog.text.count("ValueError: broken listener") == 1


# --- files -------------------------------------------------------------------------------------------------


def filled(path: Path) -> bytes:
    catalog = Catalog.open(path)
    catalog.add_source(source("orders"))
    for number in range(60):
        catalog.add_stream_table(stream_table(f"st{number:03}", comment="x" * 300))
        catalog.append_event(event("y" * 100))
    with catalog.database.write() as connection:
        connection.execute("SELECT 1")
    catalog.database._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.close()
    return path.read_bytes()


def read_all(path: Path, read_only: bool) -> tuple[int, int]:
    catalog = Catalog.open(path, read_only=read_only)
    try:
        return len(catalog.stream_tables()), len(catalog.events(limit=1000))
    finally:
        catalog.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_truncated_catalog_is_recognised_at_every_length(path: Path, read_only: bool) -> None:
    whole = filled(path)
    assert read_all(path, read_only) == (60, 60)
    step = max(1, len(whole) // 60)
    lengths = {*range(0, len(whole), step), 1, 15, 16, 99, 100, 4095, 4096, 4097, len(whole) - 1}
    for length in sorted(lengths):
        for leftover in path.parent.glob("catalog.db-*"):
            leftover.unlink()
        path.write_bytes(whole[:length])
        with pytest.raises(CatalogCorrupt) as caught:
            read_all(path, read_only)
        assert "move it away" in (caught.value.hint or "")
        assert path.read_bytes() == whole[:length]


def test_a_cut_catalog_with_its_log_is_right_or_refused(path: Path) -> None:
    """After a crash the log holds newer pages: what opens must hold everything."""
    filled(path)
    holder = Catalog.open(path)
    holder.add_stream_table(stream_table("late"))
    files = {name: path.with_name(name).read_bytes() for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm")}
    assert files["catalog.db-wal"]
    holder.close()
    whole, refused = files["catalog.db"], 0
    for cut in range(0, len(whole) + 1, 1024):
        for name, content in files.items():
            path.with_name(name).write_bytes(content)
        path.write_bytes(whole[:cut])
        outcome = tables_or_error(path)
        if isinstance(outcome, CatalogCorrupt):
            refused += 1
        else:
            assert outcome == 61
    assert refused > 10


def tables_or_error(path: Path) -> int | TrickleError:
    try:
        return read_all(path, read_only=False)[0]
    except TrickleError as error:
        return error


def test_a_cut_log_loses_at_most_the_last_commits(path: Path) -> None:
    catalog = Catalog.open(path)
    for number in range(5):
        catalog.add_source(source(f"s{number}"))
    main, log = path.read_bytes(), path.with_name("catalog.db-wal").read_bytes()
    catalog.close()
    for cut in range(0, len(log), 1500):
        path.with_name("catalog.db-shm").unlink(missing_ok=True)
        path.write_bytes(main)
        path.with_name("catalog.db-wal").write_bytes(log[:cut])
        survivor = Catalog.open(path)
        names = [each.name for each in survivor.sources()]
        assert names == [f"s{number}" for number in range(len(names))]
        survivor.close()


def test_the_log_of_a_catalog_that_was_taken_away_is_not_replayed(path: Path) -> None:
    catalog = Catalog.open(path)
    catalog.add_source(source("old"))
    log = path.with_name("catalog.db-wal").read_bytes()
    assert log
    catalog.close()
    path.unlink()
    path.with_name("catalog.db-wal").write_bytes(log)
    fresh = Catalog.open(path)
    assert fresh.sources() == ()
    fresh.add_source(source("new"))
    fresh.close()
    assert [each.name for each in Catalog.open(path).sources()] == ["new"]


def test_foreign_files(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"hello", b"\x00" * 5000, b"SQLite format 3\x00", os.urandom(8192)):
        path.write_bytes(content)
        with pytest.raises(CatalogCorrupt):
            Catalog.open(path)
        assert path.read_bytes() == content
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    with pytest.raises(CatalogCorrupt) as caught:
        Catalog.open(path)
    assert "another program" in (caught.value.detail or "")
    path.unlink()
    path.mkdir()
    with pytest.raises(CatalogCorrupt):
        Catalog.open(path)


def test_bytes_changed_inside_are_typed_errors_and_never_tracebacks(path: Path) -> None:
    whole = bytearray(filled(path))
    wrong = 0
    for at in range(100, len(whole), max(1, len(whole) // 120)):
        damaged = bytearray(whole)
        damaged[at : at + 40] = b"\xff" * min(40, len(whole) - at)
        path.write_bytes(damaged)
        outcome = tables_or_error(path)
        if isinstance(outcome, TrickleError):
            wrong += 1
            assert outcome.hint
    assert wrong > 5


def test_a_newer_workspace_is_read_and_never_written(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as newer:
        newer.execute("ALTER TABLE stream_tables ADD COLUMN tier TEXT DEFAULT 'hot'")
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(WorkspaceTooNew) as caught:
        Catalog.open(path)
    assert "99" in (caught.value.detail or "")
    assert "--read-only" in (caught.value.hint or "")
    reader = Catalog.open(path, read_only=True)
    assert reader.is_newer()
    assert len(reader.stream_tables()) == 60
    with pytest.raises(ReadOnly):
        reader.set_meta("a", "b")
    reader.close()
    assert path.read_bytes() == before


def test_a_newer_workspace_of_another_shape_says_that_it_is_newer(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as newer:
        newer.execute("ALTER TABLE stream_tables RENAME COLUMN query TO definition")
        newer.execute("ALTER TABLE events RENAME TO happenings")
        newer.execute("UPDATE sources SET cdc_mode = 'telepathy'")
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    reader = Catalog.open(path, read_only=True)
    for read in (reader.stream_tables, reader.events, reader.sources):
        with pytest.raises(WorkspaceTooNew):
            read()


def test_an_older_workspace_names_the_way_and_migrates(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    now = migrations.SCHEMA_VERSION
    for module in (migrations, database):
        monkeypatch.setattr(module, "SCHEMA_VERSION", now + 2)
    steps = {now: "ALTER TABLE sources ADD COLUMN tier TEXT;\nCREATE TABLE more (a);", now + 1: "DROP TABLE more;"}
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    for read_only in (False, True):
        with pytest.raises(WorkspaceTooOld) as caught:
            Catalog.open(path, read_only=read_only)
        assert "trickle migrate" in (caught.value.hint or "")
    connection = sqlite3.connect(path, isolation_level=None)
    monkeypatch.setitem(steps, now + 1, "DROP TABLE missing;")
    with pytest.raises(sqlite3.OperationalError):
        migrations.migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (now,)
    assert "tier" not in [row[1] for row in connection.execute("PRAGMA table_info(sources)")]
    monkeypatch.setitem(steps, now + 1, "DROP TABLE more;")
    assert migrations.migrate(connection) == 2
    assert migrations.migrate(connection) == 0
    connection.close()
    assert len(Catalog.open(path).stream_tables()) == 60


def test_a_workspace_from_before_views_is_brought_up_to_date(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as older:
        older.execute("DROP TABLE views")
        older.execute("ALTER TABLE stream_tables DROP COLUMN written_json")
        older.execute("ALTER TABLE stream_tables DROP COLUMN known_columns_json")
        older.execute("ALTER TABLE stream_tables DROP COLUMN partition_by_json")
        older.execute("ALTER TABLE sources DROP COLUMN polled_json")
        older.execute("ALTER TABLE progress DROP COLUMN suspended_at")
        older.execute("ALTER TABLE stream_tables DROP COLUMN differential_max_change_ratio")
        older.execute("DROP TABLE costs")
        older.execute("PRAGMA user_version = 1")
    older.close()
    with pytest.raises(WorkspaceTooOld):
        Catalog.open(path)
    assert database.migrate(path, dry_run=True) == 3
    assert database.migrate(path) == 3
    assert database.migrate(path) == 0
    catalog = Catalog.open(path)
    assert len(catalog.stream_tables()) == 60
    catalog.save_view(View("v", "SELECT 1"))
    assert [view.name for view in catalog.views()] == ["v"]
    catalog.close()


def test_views_share_the_namespace_of_relations(path: Path) -> None:
    catalog = Catalog.open(path)
    catalog.save_view(View("Recent", "SELECT 1"))
    with pytest.raises(AlreadyExists) as caught:
        catalog.add_source(Source("recent", "/lake/recent"))
    assert "trickle view drop Recent" in (caught.value.hint or "")
    catalog.add_source(Source("orders", "/lake/orders"))
    with pytest.raises(AlreadyExists):
        catalog.save_view(View("ORDERS", "SELECT 1"))
    with pytest.raises(NotFound) as missing:
        catalog.get_source("recent")
    assert missing.value.hint == "Recent is a view"
    catalog.save_view(View("Recent", "SELECT 2"), replace=True)
    assert [view.query for view in catalog.views()] == ["SELECT 2"]
    catalog.drop_view("recent")
    assert catalog.views() == ()
    catalog.close()


def test_read_only_makes_nothing(path: Path) -> None:
    with pytest.raises(WorkspaceMissing) as caught:
        Catalog.open(path, read_only=True)
    assert caught.value.hint
    assert not path.parent.exists()


NOBODY = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from engine.catalog import Catalog
from engine.errors import TrickleError
import difflib
os.setuid(65534)
path = Path(sys.argv[2])
try:
    Catalog.open(path).set_meta("a", "b")
    print("written")
except TrickleError as error:
    print(error.code)
try:
    print(len(Catalog.open(path, read_only=True).stream_tables()))
except TrickleError as error:
    print(error.code, error.detail)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("with_log", [False, True])
def test_a_read_only_folder_can_be_read_and_says_that_it_cannot_be_written(path: Path, with_log: bool) -> None:
    filled(path)
    holder = Catalog.open(path)
    if with_log:
        holder.set_meta("x", "y")
    else:
        holder.close()
    open_the_way_to(path.parent)
    for file in path.parent.iterdir():
        file.chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, str(ROOT), str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["ReadOnly", "60"]
    holder.close()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs root and mount")
def test_a_full_disk_is_said_so_and_breaks_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        path = disk / "catalog.db"
        catalog = Catalog.open(path)
        catalog.add_source(source("orders"))
        written: list[int] = []
        with pytest.raises(StorageFull) as caught:
            write_until_full(catalog, written)
        assert caught.value.retryable
        assert caught.value.exit_code == 4
        assert 0 < len(written) < 1000
        assert [each.name for each in catalog.sources()] == ["orders"]
        assert catalog.get_meta(f"k{len(written) - 1}") is not None
        assert catalog.get_meta(f"k{len(written)}") is None
        catalog.close()
        assert Catalog.open(path, read_only=True).get_meta(f"k{len(written) - 1}") is not None
        with pytest.raises(StorageFull):
            fill_up(disk)
        with pytest.raises(StorageFull):
            Catalog.open(disk / "second.db")
        assert not (disk / "second.db").exists()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def write_until_full(catalog: Catalog, written: list[int]) -> None:
    for number in range(1000):
        catalog.set_meta(f"k{number}", "x" * 4000)
        written.append(number)


def fill_up(disk: Path) -> None:
    from engine.files import storage

    with storage(disk), (disk / "filler").open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 1024)


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        ("/dev/a / ext4 rw\n", False),
        ("/dev/a / ext4 rw\nserver:/x {parent} nfs4 rw\n", True),
        ("server:/x / nfs rw\n/dev/b {parent} ext4 rw\n", False),
        ("/dev/a / ext4 rw\nserver:/x {parent}x nfs rw\n", False),
        ("/dev/a / ext4 rw\nserver:/x {parent} nfs rw\ntmpfs {parent} tmpfs rw\n", False),
        ("broken\n", False),
        (None, False),
    ],
)
def test_a_network_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str | None, refused: bool
) -> None:
    parent = tmp_path / "a b"
    if mounts is not None:
        (tmp_path / "mounts").write_text(mounts.format(parent=str(parent).replace(" ", "\\040")))
    monkeypatch.setattr(disk, "MOUNTS", tmp_path / "mounts")
    if refused:
        with pytest.raises(WorkspaceError, match="nfs4") as caught:
            Catalog.open(parent / ".trickle" / "catalog.db")
        assert "local disk" in (caught.value.hint or "")
        assert not parent.exists()
    else:
        Catalog.open(parent / ".trickle" / "catalog.db").close()


def test_a_failed_write_leaves_no_transaction_behind(catalog: Catalog) -> None:
    catalog.add_source(source("orders"))
    with pytest.raises(AlreadyExists):
        catalog.add_source(source("orders"))
    catalog.add_source(source("items"))
    assert len(catalog.sources()) == 2


def test_after_closing_it_says_so(catalog: Catalog) -> None:
    catalog.sources()
    catalog.close()
    with pytest.raises(WorkspaceError, match="closed"):
        catalog.sources()
    catalog.close()


def test_a_writer_that_never_ends_is_busy(catalog: Catalog, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    impatient = Catalog.open(path)
    with pytest.raises(CatalogBusy) as caught:
        impatient.set_meta("a", "b")
    assert caught.value.retryable
    assert impatient.get_meta("a") is None
    other.execute("ROLLBACK")
    impatient.set_meta("a", "b")
    other.close()


def test_file_is_private_and_marked(catalog: Catalog, path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


def test_opening_is_quick(path: Path) -> None:
    filled(path)
    durations = []
    for _ in range(10):
        start = time.perf_counter()
        catalog = Catalog.open(path)
        catalog.stream_tables()
        durations.append(time.perf_counter() - start)
        catalog.close()
    assert sorted(durations)[5] < 0.05


# --- many at once ------------------------------------------------------------------------------------------


def test_many_threads(catalog: Catalog) -> None:
    numbers: list[int] = []
    errors: list[BaseException] = []

    def work(at: int) -> None:
        try:
            for _ in range(50):
                numbers.append(catalog.next_refresh_number())
                catalog.append_event(event("x"))
                catalog.stream_tables()
            catalog.add_source(source(f"s{at}"))
        except TrickleError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(numbers) == list(range(1, 401))
    assert len(catalog.sources()) == 8
    assert [each.number for each in catalog.events(limit=1000)] == list(range(1, 401))


def test_connections_of_dead_threads_are_closed(catalog: Catalog) -> None:
    def count() -> int:
        target = str(catalog.path)
        links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        return links.count(target)

    catalog.sources()
    before = count()
    for _ in range(20):
        thread = threading.Thread(target=catalog.sources)
        thread.start()
        thread.join()
    assert count() <= before + 2


PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from engine.catalog import Catalog
from engine.event_records import Event, EventKind, Severity
from datetime import datetime, UTC
catalog = Catalog.open(Path(sys.argv[2]))
for number in range(int(sys.argv[3])):
    event = Event(datetime.now(UTC), EventKind.SPARK, Severity.OK, "", "x" * 500)
    sys.stdout.write(f"{catalog.next_refresh_number()} {catalog.append_event(event).number}\\n")
    sys.stdout.flush()
"""


def start_process(path: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(ROOT), str(path), str(count)], stdout=subprocess.PIPE, text=True
    )


def test_processes_that_create_and_write_at_once(path: Path) -> None:
    path.parent.mkdir()
    processes = [start_process(path, 100) for _ in range(3)]
    numbers: list[int] = []
    for process in processes:
        numbers += [int(line.split()[0]) for line in process.communicate()[0].splitlines()]
        assert process.returncode == 0
    assert sorted(numbers) == list(range(1, 301))
    assert len(Catalog.open(path).events(limit=1000)) == 300


@pytest.mark.parametrize("delay_ms", [0, 20, 60, 150])
def test_kill_9_in_mid_write_keeps_what_was_acknowledged(path: Path, delay_ms: int) -> None:
    process = start_process(path, 1_000_000)
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGKILL)
    # Not communicate(): it would pass over what readline has already buffered.
    lines += process.stdout.read().splitlines()
    process.wait()
    last_number, last_event = (int(part) for part in lines[-1].split())
    catalog = Catalog.open(path)
    with catalog.database.read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert catalog.events(limit=1)[0].number >= last_event
    assert catalog.next_refresh_number() > last_number


# --- the lease ---------------------------------------------------------------------------------------------


class ManualClock:
    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.elapsed_s)

    def monotonic_s(self) -> float:
        return 1000.0 + self.elapsed_s


def test_one_holder_at_a_time(catalog: Catalog, path: Path) -> None:
    clock = ManualClock()
    mine, theirs = Lease(catalog, clock, 10), Lease(Catalog.open(path), clock, 10)
    epoch = mine.acquire()
    clock.elapsed_s = 4
    holder = theirs.holder()
    assert holder is not None
    assert (holder.pid, holder.epoch, holder.heartbeat_age_s) == (os.getpid(), epoch, 4)
    with pytest.raises(LeaseHeld) as caught:
        theirs.acquire()
    assert str(os.getpid()) in (caught.value.detail or "")
    assert mine.heartbeat(epoch)
    mine.release(epoch)
    assert theirs.holder() is None
    assert not mine.heartbeat(epoch)
    assert theirs.acquire() == epoch + 1


def test_a_silent_holder_loses_it_and_learns_so(catalog: Catalog) -> None:
    clock = ManualClock()
    lease = Lease(catalog, clock, 10)
    first = lease.acquire()
    clock.elapsed_s = 9.9
    with pytest.raises(LeaseHeld):
        lease.acquire()
    assert lease.heartbeat(first)
    clock.elapsed_s = 19.8
    assert lease.holder() is not None
    clock.elapsed_s = 20
    assert lease.holder() is None
    second = lease.acquire()
    assert second == first + 1
    assert not lease.heartbeat(first)
    lease.release(first)
    assert lease.epoch() == second
    assert lease.heartbeat(second)


def test_a_late_heartbeat_counts_while_nobody_took_over(catalog: Catalog) -> None:
    clock = ManualClock()
    lease = Lease(catalog, clock, 10)
    epoch = lease.acquire()
    clock.elapsed_s = 60
    assert lease.heartbeat(epoch)
    assert lease.holder() is not None


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_dead_holder_is_gone_at_once(catalog: Catalog) -> None:
    lease = Lease(catalog, ManualClock(), 10)
    lease.acquire(pid=dead_process())
    assert lease.holder() is None
    assert lease.acquire() == 2


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_zombie_is_dead(catalog: Catalog) -> None:
    lease = Lease(catalog, ManualClock(), 10)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lease.acquire(pid=process.pid)
    assert lease.holder() is not None
    process.kill()
    deadline = time.monotonic() + 5
    while lease.holder() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lease.holder() is None
    process.communicate()


@pytest.mark.parametrize(
    ("change", "elapsed_s", "alive"),
    [
        ("started = '1'", 0, False),  # the number was given to another process
        ("boot_id = 'before'", 0, False),  # this machine was started again
        ("host = 'other', boot_id = 'theirs', pid = 1", 5, True),
        ("host = 'other', boot_id = 'theirs', pid = 1", 11, False),
        ("pid_namespace = 'container', pid = 999999999", 5, True),  # its numbers mean nothing here
        ("pid_namespace = 'container', pid = 999999999", 11, False),
    ],
)
def test_who_counts_as_living(catalog: Catalog, change: str, elapsed_s: float, alive: bool) -> None:
    clock = ManualClock()
    lease = Lease(catalog, clock, 10)
    lease.acquire()
    with catalog.database.write() as connection:
        connection.execute(f"UPDATE lease SET {change}")
    clock.elapsed_s = elapsed_s
    assert (lease.holder() is not None) is alive


def test_of_many_who_try_one_gets_it(path: Path) -> None:
    Catalog.open(path).close()
    epochs: list[int] = []
    refused: list[LeaseHeld] = []
    barrier = threading.Barrier(6)

    def attempt() -> None:
        lease = Lease(Catalog.open(path), SystemClock(), 10)
        barrier.wait()
        try:
            epochs.append(lease.acquire())
        except LeaseHeld as error:
            refused.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert epochs == [1]
    assert len(refused) == 5


# --- costs -------------------------------------------------------------------------------------------------


def test_costs_go_with_their_stream_table(catalog: Catalog) -> None:
    catalog.add_source(source())
    table = stream_table()
    catalog.add_stream_table(table)
    assert catalog.get_costs(table.id) is None
    catalog.save_costs(table.id, "one")
    catalog.save_costs(table.id, "two")
    assert catalog.get_costs(table.id) == "two"
    catalog.drop_stream_table(table.name)
    assert catalog.get_costs(table.id) is None
    catalog.save_costs(table.id, "of a refresh that ended after that")
    assert catalog.get_costs(table.id) is None
