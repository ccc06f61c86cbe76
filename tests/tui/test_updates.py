"""The threads behind the screen: coalesced pictures, answers as messages, themes followed on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.message import Message

from engine.errors import CatalogCorrupt
from tests.tui.conftest import Open
from tests.tui.fake import FakeBridge
from tests.tui.test_app import app_of
from trickle_tui import locations
from trickle_tui.messages import RequestFinished, SnapshotFailed, SnapshotReady, ThemesChanged
from trickle_tui.snapshot import Done, Refresh
from trickle_tui.updates import Updates


class Posted:
    """Collects messages and waits for one of a kind."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._came = threading.Condition()

    def __call__(self, message: Message) -> None:
        with self._came:
            self.messages.append(message)
            self._came.notify_all()

    def wait(self, wanted: Callable[[Message], bool], seconds: float = 5.0) -> Message:
        with self._came:
            found = self._came.wait_for(lambda: any(wanted(each) for each in self.messages), seconds)
            assert found, self.messages
            return next(each for each in self.messages if wanted(each))

    def count(self, kind: type[Message]) -> int:
        with self._came:
            return sum(isinstance(each, kind) for each in self.messages)


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge()


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def updates(bridge: FakeBridge, posted: Posted, tmp_path: Path) -> Iterator[Updates]:
    made = Updates(bridge, posted, [tmp_path])
    made.start()
    yield made
    made.stop()


def test_a_picture_comes_each_second_by_itself(updates: Updates, posted: Posted) -> None:
    posted.wait(lambda message: isinstance(message, SnapshotReady))
    assert posted.count(SnapshotReady) <= 2


def test_many_events_make_few_pictures(updates: Updates, bridge: FakeBridge, posted: Posted) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < 0.6:
        bridge.wake()
        time.sleep(0.001)
    # ten a second at most, whatever comes in
    assert 1 <= bridge.snapshots_taken <= 8


def test_what_is_watched_travels_along(updates: Updates, posted: Posted) -> None:
    updates.watch("customer_ltv")
    message = posted.wait(lambda each: isinstance(each, SnapshotReady) and each.snapshot.focus is not None)
    assert isinstance(message, SnapshotReady)
    assert message.snapshot.focus_on("customer_ltv") is not None
    assert message.snapshot.focus_on("top_products") is None


def test_staleness_is_remembered_while_one_watches(bridge: FakeBridge, posted: Posted) -> None:
    updates = Updates(bridge, posted)
    updates.snapshot()
    updates.snapshot()
    assert [sample.staleness_s for sample in updates._samples["top_products"]] == [192, 192]
    bridge.overview = bridge.overview.__class__(**{**vars(bridge.overview), "tables": ()})
    updates.snapshot()
    assert updates._samples == {}


def test_an_answer_and_an_error_come_back_as_messages(updates: Updates, bridge: FakeBridge, posted: Posted) -> None:
    updates.submit(Refresh("a"))
    done = posted.wait(lambda each: isinstance(each, RequestFinished))
    assert isinstance(done, RequestFinished)
    assert done.answer == Done("a: differential 0.80s, +12 −3")
    assert done.error is None
    bridge.fail_with = CatalogCorrupt("the catalog is truncated", hint="trickle repair")
    updates.submit(Refresh("b"))
    failed = posted.wait(lambda each: isinstance(each, RequestFinished) and each.error is not None)
    assert isinstance(failed, RequestFinished)
    assert failed.answer is None
    assert failed.error is not None
    assert failed.error.hint == "trickle repair"


def test_a_catalog_that_cannot_be_read_is_said_and_tried_again(
    bridge: FakeBridge, posted: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(focus: str | None) -> None:
        raise CatalogCorrupt("the catalog is truncated")

    updates = Updates(bridge, posted)
    monkeypatch.setattr(bridge, "snapshot", refuse)
    updates.start()
    updates.wake()
    failed = posted.wait(lambda each: isinstance(each, SnapshotFailed))
    assert isinstance(failed, SnapshotFailed)
    assert failed.error.message == "the catalog is truncated"
    monkeypatch.undo()
    updates.wake()
    posted.wait(lambda each: isinstance(each, SnapshotReady))
    updates.stop()


def test_a_theme_that_is_written_is_loaded(updates: Updates, posted: Posted, tmp_path: Path) -> None:
    night = (locations.shipped_themes() / "night.toml").read_text()
    (tmp_path / "mine.toml").write_text(night.replace('name = "night"', 'name = "mine"'))
    updates.wake()
    changed = posted.wait(lambda each: isinstance(each, ThemesChanged))
    assert isinstance(changed, ThemesChanged)
    assert [theme.name for theme in changed.library.themes] == ["mine"]


def test_nothing_new_is_begun_after_the_end(bridge: FakeBridge, posted: Posted) -> None:
    updates = Updates(bridge, posted)
    updates.stop()
    updates.perform(Refresh("a"))
    assert bridge.requests == []
    assert posted.messages == []


async def test_a_picture_that_comes_while_the_app_is_taken_down_is_not_drawn(open_app: Open) -> None:
    async with open_app(size=(80, 24)) as pilot:
        app = app_of(pilot)
        page = app.page
        # the first thing that its end does, and then the parts go one by one
        app._running = False
        await page.remove_children()
        app.on_snapshot_ready(SnapshotReady(app.snapshot))
        app._turn()
        app._running = True
