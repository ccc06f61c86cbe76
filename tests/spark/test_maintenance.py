"""The files of stream tables are put in order, and no row, no stamp and no reader notices."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from engine.engine import Engine
from engine.errors import RefreshFailed, RefreshSkipped, Tampered
from engine.event_records import EventKind
from engine.lake import log, tables, upkeep, views
from engine.records import Outcome
from engine.refresh.maintain import TOLD_AFTER
from engine.results import Maintenance
from tests.spark.shop import PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark


def grown(engine: Engine, shop: Shop, times: int, name: str = "paid", start: int = 100) -> None:
    for number in range(times):
        shop.insert("orders", order(start + number, 1, 100 + number))
        assert engine.refresh_stream_table(name).outcome is Outcome.DIFFERENTIAL


def maintainer(engine: Engine) -> Any:
    return engine._core.maintainer


def looked_at(engine: Engine) -> list[Maintenance]:
    """As the scheduler does it when nobody waits: once for each stream table."""
    done = (maintainer(engine).when_idle() for _ in engine.stream_tables())
    return [each for each in done if each is not None]


def test_small_files_become_few_and_nobody_notices(engine: Engine, shop: Shop) -> None:
    path = engine.create_stream_table("paid", PAID).table.path
    engine.create_stream_table("top", "SELECT id, amount FROM paid WHERE amount > 1")
    grown(engine, shop, 12)
    engine.refresh_stream_table("top")
    before = engine.select("SELECT * FROM paid ORDER BY id").to_pylist()
    version = log.newest_version(path)
    done = engine.sql("MAINTAIN STREAM TABLE paid").value
    assert done.files_before >= 12
    assert done.files_after == 1 == upkeep.files(path)
    assert log.newest_version(path) > version
    changed = [
        action["add"]["dataChange"]
        for each in range(version + 1, log.newest_version(path) + 1)
        for action in log.actions(path, each) or []
        if "add" in action
    ]
    assert changed == [False]
    assert engine.select("SELECT * FROM paid ORDER BY id").to_pylist() == before
    # for the stream table itself, and for the one that reads it, nothing has happened
    assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA
    assert engine.refresh_stream_table("top").outcome is Outcome.NO_DATA
    grown(engine, shop, 2, start=200)
    assert engine.refresh_stream_table("top").outcome is Outcome.DIFFERENTIAL
    holds(engine, "paid")
    holds(engine, "top")
    assert any(event.kind is EventKind.MAINTAINED for event in engine.events())
    # old versions are readable: nothing of them was removed
    assert views.is_readable(path, version)


def test_after_so_many_commits_when_nobody_waits(tmp_path: Path, shop: Shop) -> None:
    with opened(tmp_path / "ws", shop, maintenance__every_commits="5") as engine:
        path = engine.create_stream_table("paid", PAID).table.path
        grown(engine, shop, 3)
        assert looked_at(engine) == []
        grown(engine, shop, 2, start=200)
        assert [each.name for each in looked_at(engine)] == ["paid"]
        assert upkeep.files(path) == 1
        assert looked_at(engine) == []
        grown(engine, shop, 5, start=300)
        with engine._core.refresher.undisturbed(engine.stream_table("paid"), "tried"):
            assert looked_at(engine) == []
        assert upkeep.files(path) == 6
        assert [each.files_after for each in looked_at(engine)] == [1]
        engine.start_scheduler()
        grown(engine, shop, 6, start=400)
        deadline = time.monotonic() + 60
        while upkeep.files(path) > 6 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert upkeep.files(path) <= 6
        engine.stop_scheduler()
        holds(engine, "paid")


def test_files_stay_for_as_long_as_somebody_reads_from_there(engine: Engine, shop: Shop) -> None:
    """Time is turned back in the files, as VACUUM sees it."""
    path = engine.create_stream_table("paid", PAID).table.path
    engine.create_stream_table("top", "SELECT id FROM paid")
    grown(engine, shop, 3)
    engine.refresh_stream_table("top")
    at = engine.status("top").frontier["paid"].version  # type: ignore[index]
    grown(engine, shop, 3, start=200)
    assert maintainer(engine)._kept_hours(engine.stream_table("paid")) == 7 * 24 + 1
    a_month_s = 30 * 24 * 3600
    head = log.commit_info(path, at)
    assert head is not None
    assert head.at is not None

    class Later:
        def now(self) -> Any:
            from datetime import timedelta

            return head.at + timedelta(seconds=a_month_s)

    maintainer(engine)._clock = Later()
    assert maintainer(engine)._kept_hours(engine.stream_table("paid")) == 30 * 24 + 1
    engine.refresh_stream_table("top")
    engine.drop_stream_table("top")
    assert maintainer(engine)._kept_hours(engine.stream_table("paid")) == 7 * 24 + 1


def test_what_is_long_gone_is_removed_and_what_is_in_use_stays(engine: Engine, shop: Shop, spark: Any) -> None:
    """Deletion vectors too, which another vacuum takes for files of nobody."""
    engine.create_stream_table("paid", PAID)
    path = engine.stream_table("paid").path
    tables.set_properties(path, {"delta.deletedFileRetentionDuration": "interval 1 hour"})
    grown(engine, shop, 3)
    spark.sql(f"DELETE FROM delta.`{shop.path('orders')}` WHERE id IN (1, 2)")
    engine.refresh_stream_table("paid")
    engine.maintain_stream_table("paid")
    old = time.time() - 3 * 3600
    orphan = Path(path) / "part-00000-nobody.parquet"
    orphan.write_bytes(b"PAR1PAR1")
    os.utime(orphan, (old, old))
    engine.maintain_stream_table("paid")
    assert not orphan.exists()
    holds(engine, "paid")
    assert all(Path(file).exists() for file in DeltaTable(path).file_uris())


def test_it_hides_nothing_that_somebody_else_did(engine: Engine, shop: Shop, spark: Any) -> None:
    path = engine.create_stream_table("paid", PAID).table.path
    grown(engine, shop, 3)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    engine.maintain_stream_table("paid")
    with pytest.raises(Tampered):
        engine.refresh_stream_table("paid")


def test_never_beside_a_refresh(engine: Engine, shop: Shop) -> None:
    engine.create_stream_table("paid", PAID)
    refused: list[Exception] = []

    def maintain() -> None:
        try:
            engine.maintain_stream_table("paid")
        except RefreshSkipped as error:
            refused.append(error)

    core = engine._core
    core.refresher.refresh(engine.stream_table("paid"), asked_full=True, initiated_by="API", once_claimed=maintain)  # type: ignore[arg-type]
    assert len(refused) == 1


def test_three_failures_in_a_row_are_told(tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "ws", shop, maintenance__every_commits="1") as engine:
        engine.create_stream_table("paid", PAID)

        def fail(path: str) -> int:
            raise RefreshFailed("the disk said no")

        with monkeypatch.context() as patched:
            patched.setattr(upkeep, "checkpoint", fail)
            for number in range(2 * TOLD_AFTER):
                grown(engine, shop, 1, start=100 + number)
                assert looked_at(engine) == []
        told = [event for event in engine.events() if event.kind is EventKind.MAINTENANCE_FAILED]
        assert [("3 times" in event.text, "6 times" in event.text) for event in told] == [(True, False), (False, True)]
        grown(engine, shop, 1, start=300)
        assert len(looked_at(engine)) == 1
