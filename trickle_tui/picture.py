"""A picture of the screen, as PNG and SVG: text from a font, but lines, blocks and dots drawn as shapes.

Fonts leave gaps between box-drawing cells and lack half of the signs; drawn as geometry they meet exactly.
Pillow is a development dependency, used for the pictures in the documentation only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from trickle_tui.strips import Cell

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont
    from rich.style import Style

CELL_WIDTH, CELL_HEIGHT = 12, 26
_FONT_SIZE = 20
#: steps between a colour and its ground: the soft edges of letters
_EDGES = 5
_FOLDERS = (
    Path("/usr/share/fonts/truetype/dejavu"),
    Path("/usr/share/fonts/TTF"),
    Path("/usr/share/fonts/dejavu-sans-mono-fonts"),
)
_FILES = {
    (False, False): "DejaVuSansMono.ttf",
    (True, False): "DejaVuSansMono-Bold.ttf",
    (False, True): "DejaVuSansMono-Oblique.ttf",
    (True, True): "DejaVuSansMono-BoldOblique.ttf",
}

Box = tuple[float, float, float, float]

#: arms of a box-drawing sign: up, right, down, left
_ARMS = {
    "─": (0, 1, 0, 1), "│": (1, 0, 1, 0), "╭": (0, 1, 1, 0), "╮": (0, 0, 1, 1), "╰": (1, 1, 0, 0),
    "╯": (1, 0, 0, 1), "┌": (0, 1, 1, 0), "┐": (0, 0, 1, 1), "└": (1, 1, 0, 0), "┘": (1, 0, 0, 1),
    "├": (1, 1, 1, 0), "┤": (1, 0, 1, 1), "┬": (0, 1, 1, 1), "┴": (1, 1, 0, 1), "┼": (1, 1, 1, 1),
}  # fmt: skip
_ROUND = {"╭": (1, 1), "╮": (-1, 1), "╰": (1, -1), "╯": (-1, -1)}
_EIGHTHS = "▁▂▃▄▅▆▇█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class FontMissing(Exception):
    """No monospace font to write with."""


def save_png(rows: Sequence[Sequence[Cell]], file: Path, ground: str) -> None:
    """The screen as a PNG."""
    from PIL import Image, ImageDraw

    wide = max(len(row) for row in rows)
    # drawn at twice the size and scaled down, so that discs and curves are smooth
    image = Image.new("RGB", (wide * CELL_WIDTH * 2, len(rows) * CELL_HEIGHT * 2), ground)
    draw = ImageDraw.Draw(image)
    fonts = _fonts()
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            _cell(draw, fonts, x * CELL_WIDTH * 2, y * CELL_HEIGHT * 2, cell, ground)
    image = image.resize((wide * CELL_WIDTH, len(rows) * CELL_HEIGHT), Image.Resampling.LANCZOS)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.quantize(palette=_palette(rows, ground), dither=Image.Dither.NONE).save(file, optimize=True)


def _palette(rows: Sequence[Sequence[Cell]], ground: str) -> Image:
    """The colours on the screen and their edges: exact where it matters, and a quarter of the size."""
    from PIL import Image

    pairs = Counter(_colors(cell.style, ground) for row in rows for cell in row)
    wanted: dict[tuple[int, ...], None] = {}
    for (front, back), _ in pairs.most_common():
        ends = [tuple(int(color[at : at + 2], 16) for at in (1, 3, 5)) for color in (back, front)]
        for step in range(_EDGES + 1):
            wanted[tuple(round(a + (b - a) * step / _EDGES) for a, b in zip(*ends, strict=True))] = None
    flat = [part for color in list(wanted)[:256] for part in color]
    palette = Image.new("P", (1, 1))
    palette.putpalette(flat + flat[:3] * (256 - len(flat) // 3))
    return palette


def save_svg(rows: Sequence[Sequence[Cell]], file: Path, ground: str) -> None:
    """The screen as an SVG that asks for no font from the net; each run of text is held to its cells."""
    wide, high = max(len(row) for row in rows) * CELL_WIDTH, len(rows) * CELL_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-size="{_FONT_SIZE}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">',
        f'<rect width="{wide}" height="{high}" fill="{ground}"/>',
    ]
    for y, row in enumerate(rows):
        x = 0
        for style, run in groupby(row, key=lambda cell: cell.style):
            text = "".join(cell.text or "" for cell in run)
            parts.append(_svg_run(text, style, x * CELL_WIDTH, y * CELL_HEIGHT, ground))
            x += cell_len(text)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(part for part in (*parts, "</svg>") if part) + "\n", encoding="utf-8")


def _svg_run(text: str, style: Style | None, x: int, y: int, ground: str) -> str:
    front, back = _colors(style, ground)
    width = cell_len(text) * CELL_WIDTH
    drawn = ""
    if back != ground:
        drawn = f'<rect x="{x}" y="{y}" width="{width}" height="{CELL_HEIGHT}" fill="{back}"/>'
    stripped = text.strip(" ")
    if not stripped:
        return drawn
    start = x + (len(text) - len(text.lstrip(" "))) * CELL_WIDTH
    weight = ' font-weight="bold"' if style and style.bold else ""
    slant = ' font-style="italic"' if style and style.italic else ""
    return (
        f'{drawn}<text x="{start}" y="{y + CELL_HEIGHT * 0.76:g}" textLength="{cell_len(stripped) * CELL_WIDTH}" '
        f'xml:space="preserve" fill="{front}"{weight}{slant}>{escape(stripped)}</text>'
    )


def _fonts() -> dict[tuple[bool, bool], FreeTypeFont]:
    from PIL import ImageFont

    folder = next((folder for folder in _FOLDERS if (folder / _FILES[False, False]).exists()), None)
    if folder is None:
        raise FontMissing("no DejaVu Sans Mono found; on Debian: apt install fonts-dejavu-core")
    return {
        kind: ImageFont.truetype(
            str(folder / (name if (folder / name).exists() else _FILES[False, False])), _FONT_SIZE * 2
        )
        for kind, name in _FILES.items()
    }


def _colors(style: Style | None, ground: str) -> tuple[str, str]:
    """Foreground and background as '#rrggbb'."""

    def hexed(color: object, default: str) -> str:
        triplet = getattr(color, "triplet", None)
        return triplet.hex if triplet is not None else default

    if style is None:
        return "#c0c0c0", ground
    front, back = hexed(style.color, "#c0c0c0"), hexed(style.bgcolor, ground)
    return (back, front) if style.reverse else (front, back)


def _cell(
    draw: ImageDraw, fonts: dict[tuple[bool, bool], FreeTypeFont], x: int, y: int, cell: Cell, ground: str
) -> None:
    width, height = CELL_WIDTH * 2, CELL_HEIGHT * 2
    style = cell.style
    front, back = _colors(style, ground)
    if back != ground:
        draw.rectangle((x, y, x + width - 1, y + height - 1), fill=back)
    if style is not None and style.underline:
        draw.rectangle((x, y + height - 6, x + width - 1, y + height - 4), fill=front)
    sign = cell.text
    if not sign or sign == " ":
        return
    if not _shape(draw, sign, x, y, width, height, front):
        font = fonts[bool(style and style.bold), bool(style and style.italic)]
        draw.text((x, y + height * 0.76), sign, fill=front, font=font, anchor="ls")


def _shape(draw: ImageDraw, sign: str, x: float, y: float, w: float, h: float, color: str) -> bool:
    """Draw it as geometry, if it is a sign of that kind."""
    cx, cy = x + w / 2, y + h / 2
    thin, thick = 3, 6
    if sign in _EIGHTHS:
        top = y + h - h * (_EIGHTHS.index(sign) + 1) / 8
        draw.rectangle((x, top, x + w - 1, y + h - 1), fill=color)
    elif 0x2800 <= ord(sign) <= 0x28FF:
        _braille(draw, ord(sign) - 0x2800, x, y, w, h, color)
    elif sign in _ROUND:
        _corner(draw, sign, cx, cy, w, h, thin, color)
    elif sign in _ARMS:
        up, right, down, left = _ARMS[sign]
        half = thin / 2
        if up or down:
            draw.rectangle((cx - half, y if up else cy, cx + half, y + h if down else cy), fill=color)
        if left or right:
            draw.rectangle((x if left else cx, cy - half, x + w if right else cx, cy + half), fill=color)
    elif sign in "━╸╺":
        start, end = (cx if sign == "╺" else x), (cx if sign == "╸" else x + w)
        draw.rectangle((start, cy - thick / 2, end, cy + thick / 2), fill=color)
    elif sign in "╌┈":
        for part in range(3):
            at = x + w * part / 3
            draw.rectangle((at + 1, cy - 1, at + w / 5, cy + 1), fill=color)
    elif sign in "▌▐":
        start = x if sign == "▌" else cx
        draw.rectangle((start, y, start + w / 2 - 1, y + h - 1), fill=color)
    else:
        return _symbol(draw, sign, cx, cy, w, color)
    return True


def _symbol(draw: ImageDraw, sign: str, cx: float, cy: float, w: float, color: str) -> bool:
    """The signs of states."""
    r = w * 0.46
    disc = (cx - r, cy - r, cx + r, cy + r)
    match sign:
        case "●":
            draw.ellipse(disc, fill=color)
        case "○":
            draw.ellipse(disc, outline=color, width=3)
        case "◐" | "◓" | "◑" | "◒":
            draw.ellipse(disc, outline=color, width=3)
            start = {"◐": 90, "◓": 180, "◑": 270, "◒": 0}[sign]
            draw.pieslice(disc, start, start + 180, fill=color)
        case "◆":
            r *= 1.1
            draw.polygon(((cx, cy - r), (cx + r, cy), (cx, cy + r), (cx - r, cy)), fill=color)
        case "▲":
            draw.polygon(((cx, cy - r), (cx + r, cy + r), (cx - r, cy + r)), fill=color)
        case "■":
            draw.rectangle((cx - r * 0.9, cy - r * 0.9, cx + r * 0.9, cy + r * 0.9), fill=color)
        case "□":
            draw.rectangle((cx - r * 0.9, cy - r * 0.9, cx + r * 0.9, cy + r * 0.9), outline=color, width=3)
        case "✖":
            r *= 0.8
            draw.line((cx - r, cy - r, cx + r, cy + r), fill=color, width=7)
            draw.line((cx - r, cy + r, cx + r, cy - r), fill=color, width=7)
        case _:
            return False
    return True


def _corner(draw: ImageDraw, sign: str, cx: float, cy: float, w: float, h: float, line: int, color: str) -> None:
    """A quarter circle between two edges of the cell, with straight ends."""
    right, down = _ROUND[sign]
    r = w / 2
    half = line / 2
    draw.rectangle(
        (cx - half, cy + r if down > 0 else cy - h / 2, cx + half, cy + h / 2 if down > 0 else cy - r), fill=color
    )
    # the centre of the circle lies inside the bend
    ox, oy = cx + right * r, cy + down * r
    start = {(1, 1): 180, (-1, 1): 270, (1, -1): 90, (-1, -1): 0}[right, down]
    draw.arc(
        (ox - r - half, oy - r - half, ox + r + half, oy + r + half), start, start + 90, fill=color, width=line + 1
    )


def _braille(draw: ImageDraw, bits: int, x: float, y: float, w: float, h: float, color: str) -> None:
    r = 2.6
    for row, pair in enumerate(_DOTS):
        for column, bit in enumerate(pair):
            if bits & bit:
                px, py = x + w * (column * 2 + 1) / 4, y + h * (row * 2 + 1) / 8
                draw.ellipse((px - r, py - r, px + r, py + r), fill=color)
