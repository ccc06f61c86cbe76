"""Whole screens as text. `TRICKLE_UPDATE_GOLDEN=1 pytest tests/tui/test_golden.py` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tui.conftest import Open
from tests.tui.fake import FakeBridge
from trickle_tui.snapshot import UiSettings
from trickle_tui.strips import to_text

GOLDEN = Path(__file__).parent / "golden"
SIZES = [(80, 24), (110, 32), (140, 45)]
TO_CUSTOMER_LTV = ("down", "down", "down", "down")
SCREENS: dict[str, tuple[tuple[str, ...], str]] = {
    # keys to get there, and a text that tells that the screen is complete
    "overview": (("down",) * 5, "revenue_by_region"),
    "summary": ((*TO_CUSTOMER_LTV, "enter"), "what each customer brought in"),
    "query": ((*TO_CUSTOMER_LTV, "enter", "tab"), "SUM(o.amount)"),
    "plan": ((*TO_CUSTOMER_LTV, "enter", "tab", "tab"), "numbers of #1741"),
    "history": ((*TO_CUSTOMER_LTV, "enter", "tab", "tab", "tab"), "60 refreshes"),
    "menu": (("x",), "no refresh is running"),
    "question": (("R",), "Cancel"),
    "command": (("colon", "r", "e"), "refresh-full NAME"),
    "help": (("question_mark",), "KEYS"),
}


def compare(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("TRICKLE_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert file.exists(), f"no {file.name}: run with TRICKLE_UPDATE_GOLDEN=1 and look at it"
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screens(open_app: Open, name: str, size: tuple[int, int]) -> None:
    keys, complete = SCREENS[name]
    async with open_app(size=size) as pilot:
        await pilot.press(*keys)
        text = await settled(pilot, complete)
    compare(f"{name}_{size[0]}x{size[1]}", text)


async def settled(pilot: object, complete: str) -> str:
    """The screen once it is complete and no longer changes."""
    before = ""
    for _ in range(200):
        await pilot.pause(0.02)  # type: ignore[attr-defined]
        text = to_text(pilot.app)  # type: ignore[attr-defined]
        if text == before and complete in text:
            return text
        before = text
    raise AssertionError(f"never showed {complete!r}:\n{before}")


async def test_ascii_is_ascii(open_app: Open) -> None:
    async with open_app(FakeBridge(ui=UiSettings(ascii=True)), (110, 32)) as pilot:
        text = await settled(pilot, "fx_exposure")
        assert text.isascii(), sorted({letter for letter in text if not letter.isascii()})
        compare("overview_ascii_110x32", text)
        await pilot.press(*TO_CUSTOMER_LTV, "enter", "tab", "tab")
        text = await settled(pilot, "numbers of #1741")
        assert text.isascii(), sorted({letter for letter in text if not letter.isascii()})


async def test_without_colour_nothing_is_lost(open_app: Open) -> None:
    async with open_app(FakeBridge(ui=UiSettings(no_color=True))) as pilot:
        await pilot.press(*["down"] * 5)
        text = await settled(pilot, "p50 0.21s")
    assert text == (GOLDEN / "overview_140x45.txt").read_text(encoding="utf-8")
