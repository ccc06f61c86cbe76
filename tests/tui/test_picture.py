"""Pictures show the screen cell by cell: sizes, colours and signs."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.tui.conftest import Open
from tests.tui.test_app import app_of
from trickle_tui import picture, strips

Image = pytest.importorskip("PIL.Image")


async def test_a_picture_has_the_screens_size_and_colours(open_app: Open, tmp_path: Path) -> None:
    async with open_app(size=(80, 24)) as pilot:
        app = app_of(pilot)
        rows, colors = strips.cells(app), app.palette.theme.colors
    assert [len(row) for row in rows] == [80] * 24
    try:
        picture.save_png(rows, tmp_path / "a.png", colors["bg"])
    except picture.FontMissing as missing:
        pytest.skip(str(missing))
    image = Image.open(tmp_path / "a.png").convert("RGB")
    assert image.size == (80 * picture.CELL_WIDTH, 24 * picture.CELL_HEIGHT)
    found = {f"#{red:02x}{green:02x}{blue:02x}" for _, (red, green, blue) in image.getcolors(1 << 20)}
    assert {colors[token] for token in ("bg", "accent", "failed", "fused", "stale", "fresh", "select")} <= found


async def test_an_svg_is_well_formed_and_holds_every_run_to_its_cells(open_app: Open, tmp_path: Path) -> None:
    async with open_app(size=(80, 24)) as pilot:
        app = app_of(pilot)
        picture.save_svg(strips.cells(app), tmp_path / "a.svg", app.palette.theme.colors["bg"])
    root = ElementTree.parse(tmp_path / "a.svg").getroot()  # noqa: S314
    texts = [node for node in root if node.tag.endswith("text")]
    assert "fx_exposure" in [node.text for node in texts]
    for node in texts:
        assert int(node.attrib["textLength"]) == len(node.text or "") * picture.CELL_WIDTH
    assert "http" not in (tmp_path / "a.svg").read_text().replace("http://www.w3.org/2000/svg", "")
