"""What waits to be read, how it will be read and for how long that is possible: from logs alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine.event_records import EventKind, Severity
from engine.lake import log, tables
from engine.lake.shared_changes import SharedChanges
from engine.refresh.cdc import Cdc
from engine.results import CdcStatus
from engine.schedule.alerts import HistoryAlerts
from tests.faults.life import world_of
from tests.faults.simulation import FIRST, Setup, World
from tests.faults.test_breaks import ORDERS, ROWS, TOTALS

DAY_S = 86_400


def setup(**ways: bool) -> Setup:
    return Setup("waiting", {"orders": ORDERS}, {"orders": ROWS}, TOTALS, (), **ways)


@pytest.fixture
def world() -> Iterator[World]:
    with world_of(setup()) as made:
        made.create()
        yield made


def cdc(world: World) -> Cdc:
    process = world.process
    relations, observer, polls = process.plans.relations, process.refresher.observer, process.refresher.polls
    return Cdc(process.catalog, relations, observer, polls, SharedChanges(1_000_000), world.clock, "1d", "2h")


def only(world: World) -> CdcStatus:
    (found,) = cdc(world).statuses()
    return found


def test_nothing_waits_and_then_something_does(world: World) -> None:
    settled = only(world)
    assert (settled.source, settled.stream_table, settled.asked, settled.in_force) == ("orders", FIRST, "auto", "cdf")
    assert (settled.frontier, settled.pending_versions, settled.head_room_s) == (settled.head, 0, None)
    world.change_sources("INSERT INTO orders VALUES (9, 'south', 8); UPDATE orders SET amount = 0 WHERE id < 3")
    waiting = only(world)
    assert waiting.head == (waiting.frontier or 0) + 2
    assert (waiting.pending_versions, waiting.pending_rows) == (2, 5)  # an update counts twice
    assert waiting.pending_bytes > 0
    assert waiting.severity is Severity.OK
    assert waiting.head_room_s is not None
    (buffer,) = cdc(world).buffers()
    assert (buffer.source, buffer.readers, buffer.slowest, buffer.pending_versions) == ("orders", 1, FIRST, 2)
    world.refresh()
    assert only(world).pending_versions == 0


def test_a_source_that_nobody_reads_is_told_of_too() -> None:
    with world_of(setup()) as world:
        (found,) = cdc(world).statuses()
        assert (found.source, found.stream_table, found.pending_versions) == ("orders", None, 0)
        (buffer,) = cdc(world).buffers()
        assert (buffer.readers, buffer.slowest) == (0, None)


@pytest.mark.parametrize(("by_files", "asked", "in_force"), [(True, "diff", "diff"), (False, "auto", "diff")])
def test_why_it_is_no_feed(by_files: bool, asked: str, in_force: str) -> None:
    with world_of(setup(by_files=by_files)) as world:
        world.create()
        path = str(world.sources["orders"].path)
        tables.set_properties(path, {tables.CDF_PROPERTY: "false"})
        world.sources["orders"].version += 1
        off = only(world)
        assert (off.asked, off.in_force) == (asked, in_force)
        assert off.why == ("asked for" if by_files else "its Change Data Feed is off")
        tables.set_properties(path, {tables.CDF_PROPERTY: "true"})
        world.sources["orders"].version += 1
        if not by_files:
            world.change_sources("DELETE FROM orders WHERE id = 1")
            assert "was off at version" in only(world).why
            world.refresh()
            assert (only(world).in_force, only(world).why) == ("cdf", "its Change Data Feed is on")


def test_a_recomputed_one_reads_no_changes() -> None:
    with world_of(setup(recomputed=True)) as world:
        world.create()
        world.change_sources("DELETE FROM orders WHERE id = 1")
        found = only(world)
        assert (found.in_force, found.head_room_s, found.pending_rows) == ("full", None, 1)


def test_what_is_polled_says_when_somebody_looked() -> None:
    with world_of(setup(polled=True)) as world:
        world.create()
        found = only(world)
        assert (found.asked, found.in_force) == ("poll", "poll")
        assert found.looked_at is not None
        with world.later(days=1):
            world.refresh()
            assert (only(world).looked_at or found.looked_at) - found.looked_at > timedelta(hours=23)


@pytest.mark.parametrize(
    ("days_left", "severity"), [(3.0, Severity.OK), (0.5, Severity.WARN), (0.01, Severity.ERROR), (-1, Severity.ERROR)]
)
def test_head_room_shrinks(world: World, days_left: float, severity: Severity) -> None:
    world.change_sources("INSERT INTO orders VALUES (9, 'south', 8)")
    newest = log.commit_file(str(world.sources["orders"].path), world.sources["orders"].version)
    written_s = time.time() - (30 - days_left) * DAY_S
    os.utime(newest, (written_s, written_s))
    found = only(world)
    assert found.severity is severity, found
    assert found.head_room_s == pytest.approx(max(0.0, days_left * DAY_S), abs=5)
    assert "the log may forget version" in found.head_room_why


def test_what_is_gone_already_counts(world: World) -> None:
    world.change_sources("UPDATE orders SET amount = 0 WHERE id < 3")
    for file in (Path(world.sources["orders"].path) / "_change_data").iterdir():
        file.unlink()
    found = only(world)
    assert (found.head_room_s, found.severity) == (0.0, Severity.ERROR)
    assert "the next refresh recomputes" in found.head_room_why


def test_what_the_next_refresh_would_stumble_over(world: World) -> None:
    world.replace_source("orders")
    found = only(world)
    assert found.severity is Severity.ERROR
    assert "replaced" in (found.error or "")


def test_the_same_is_told_after_a_while_and_no_sooner(world: World) -> None:
    world.change_sources("INSERT INTO orders VALUES (9, 'south', 8)")
    newest = log.commit_file(str(world.sources["orders"].path), world.sources["orders"].version)
    written_s = time.time() - 29.5 * DAY_S
    os.utime(newest, (written_s, written_s))
    process = world.process
    told: list[str] = []

    class Clock(type(world.clock)):
        at_s = 1_000.0

        def monotonic_s(self) -> float:
            return self.at_s

    clock = Clock()
    from engine.events import EventBus

    with closing(process.catalog):
        events = EventBus(process.catalog.append_event, clock)
        events.subscribe(lambda event: told.append(event.text) if event.kind is EventKind.HISTORY_EXPIRING else None)
        alerts = HistoryAlerts(replace(cdc(world), clock=clock), events, clock, 300)
        alerts.look()
        assert len(told) == 1
        assert "1 commits of orders wait" in told[0]
        for at_s, times in ((1_010, 1), (1_070, 1), (1_299, 1), (1_360, 2), (1_430, 2)):
            clock.at_s = at_s
            alerts.look()
            assert len(told) == times, at_s
