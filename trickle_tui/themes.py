"""Themes: files of named colours, those that ship with Trickle and the user's own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rich.style import Style

if TYPE_CHECKING:
    from textual.theme import Theme as TextualTheme

#: every colour a theme names, and what it is for
TOKENS = {
    "bg": "everything; panels have no fill of their own",
    "raised": "popups and buttons",
    "select": "the selected row and the active tab",
    "line": "borders and the tracks of bars",
    "line2": "axes, tree lines, edges",
    "text": "what differs",
    "dim": "labels, units, the usual",
    "faint": "ids, times, estimates",
    "accent": "focus, keys, SQL keywords; the only accent",
    "data": "lines and bars of plots",
    "spark": "sparklines",
    "band": "the usual range behind a plot",
    "hot": "the background of the one slow row",
    "string": "SQL literals",
    "failed": "failed, suspended, tampered",
    "fused": "fused, diverged",
    "stale": "stale, late, a number over its limit",
    "running": "running",
    "fresh": "fresh",
    "paused": "paused, frozen, unpopulated",
}
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Theme:
    name: str
    dark: bool
    colors: dict[str, str] = field(hash=False)

    def for_textual(self) -> TextualTheme:
        """The same colours as variables of the stylesheet."""
        from textual.theme import Theme as TextualTheme

        colors = self.colors
        return TextualTheme(
            name=self.name,
            dark=self.dark,
            primary=colors["accent"],
            accent=colors["accent"],
            foreground=colors["text"],
            background=colors["bg"],
            surface=colors["bg"],
            panel=colors["raised"],
            warning=colors["stale"],
            error=colors["failed"],
            success=colors["fresh"],
            variables={f"t-{token}": color for token, color in colors.items()}
            | {
                "scrollbar": colors["line2"],
                "scrollbar-background": colors["bg"],
                "scrollbar-hover": colors["dim"],
                "scrollbar-active": colors["accent"],
                "scrollbar-background-hover": colors["bg"],
                "scrollbar-background-active": colors["bg"],
                "input-selection-background": colors["select"],
                "input-cursor-background": colors["accent"],
                "input-cursor-foreground": colors["bg"],
            },
        )


@dataclass(frozen=True)
class ThemeLibrary:
    """All themes found, in order of name, and what was wrong with the others."""

    themes: tuple[Theme, ...]
    problems: tuple[str, ...] = ()

    def get(self, name: str) -> Theme | None:
        return next((theme for theme in self.themes if theme.name == name), None)

    def after(self, name: str) -> Theme:
        """The next one, round and round."""
        names = [theme.name for theme in self.themes]
        return self.themes[(names.index(name) + 1) % len(names) if name in names else 0]


def load(folders: Iterable[Path]) -> ThemeLibrary:
    """Read every theme file; a bad one is reported, never fatal. Later folders win."""
    found: dict[str, Theme] = {}
    problems: list[str] = []
    for folder in folders:
        for file in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            try:
                theme = _read(file)
            except (OSError, ValueError) as error:
                problems.append(f"theme {file.name}: {error}")
            else:
                found[theme.name] = theme
    return ThemeLibrary(tuple(found[name] for name in sorted(found, reverse=True)), tuple(problems))


def _read(file: Path) -> Theme:
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    colors = content.get("colors")
    if not isinstance(colors, dict):
        raise ValueError("has no [colors]")
    for token, color in colors.items():
        if token not in TOKENS:
            raise ValueError(f"knows no colour named {token!r}")
        if not isinstance(color, str) or not _COLOR.fullmatch(color):
            raise ValueError(f"{token} = {color!r} is not a colour such as '#56c7d1'")
    if missing := [token for token in TOKENS if token not in colors]:
        raise ValueError(f"lacks {', '.join(missing)}")
    return Theme(str(content.get("name", file.stem)), bool(content.get("dark", True)), dict(colors))


def stamp(folders: Iterable[Path]) -> tuple[tuple[str, int], ...]:
    """Changes when a theme file is written, added or removed."""
    return tuple(
        (str(file), file.stat().st_mtime_ns)
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.glob("*.toml"))
    )


class Palette:
    """Turns roles ('stale bold', 'text on hot') into styles of one theme."""

    def __init__(self, theme: Theme, no_color: bool = False) -> None:
        self.theme = theme
        self.no_color = no_color
        self.style = lru_cache(maxsize=512)(self._style)

    def _style(self, role: str, ground: str = "bg") -> Style:
        words = role.split()
        if "on" in words:
            ground = words[words.index("on") + 1]
            words = words[: words.index("on")]
        color = next((word for word in words if word in TOKENS), "text")
        # faint would fall below readable contrast on the selected row
        if ground == "select" and color == "faint":
            color = "dim"
        # what is a filled block in colour is a reversed one without
        front, back = (None, None) if self.no_color else (self.theme.colors[color], self.theme.colors[ground])
        return Style(
            color=front,
            bgcolor=back,
            bold="bold" in words or None,
            italic="italic" in words or None,
            underline="underline" in words or None,
            reverse=(self.no_color and ground == "accent") or None,
        )
