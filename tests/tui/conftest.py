"""Times of day on the screen are local ones: here everybody lives in UTC."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.pilot import Pilot

from tests.tui.fake import FakeBridge
from trickle_tui.app import DashboardApp

Open = Callable[..., AbstractAsyncContextManager[Pilot[None]]]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def open_app(tmp_path: os.PathLike[str]) -> Open:
    """Run the dashboard on a fake bridge; nothing of the user's own folder is read."""

    @asynccontextmanager
    async def opened(bridge: FakeBridge | None = None, size: tuple[int, int] = (140, 45)) -> AsyncIterator[Pilot[None]]:
        from trickle_tui import locations

        app = DashboardApp(bridge or FakeBridge(), theme_folders=(locations.shipped_themes(),))
        # the signs of running refreshes stand, so that a screen is the same each time
        app._turn = lambda: None  # type: ignore[method-assign]
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield pilot

    return opened
