"""Theme files: those that ship are complete and readable, bad ones are reported and leave the rest alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from trickle_tui import locations, themes

SHIPPED = themes.load([locations.shipped_themes()])


def _luminance(color: str) -> float:
    def linear(part: int) -> float:
        value = part / 255
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(color[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_night_and_day_ship() -> None:
    assert SHIPPED.problems == ()
    assert {theme.name: theme.dark for theme in SHIPPED.themes} == {"night": True, "day": False}


@pytest.mark.parametrize("theme", SHIPPED.themes, ids=lambda theme: theme.name)
def test_text_can_be_read_and_marks_be_seen(theme: themes.Theme) -> None:
    colors = theme.colors
    for token in ("text", "dim", "faint", "accent", "string", "failed", "fused", "stale", "running", "fresh"):
        assert contrast(colors[token], colors["bg"]) >= 4.5, token
    for token in ("text", "dim", "accent", "failed", "fused", "stale", "running"):
        assert contrast(colors[token], colors["select"]) >= 4.0, token
    for token in ("data", "line2"):
        assert contrast(colors[token], colors["bg"]) >= 3.0, token


def write(folder: Path, name: str, change: str = "", colors: dict[str, str] | None = None) -> None:
    lines = [f'{token} = "{color}"' for token, color in (colors or SHIPPED.themes[0].colors).items()]
    (folder / f"{name}.toml").write_text("\n".join([f'name = "{name}"', "[colors]", *lines, change]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ('pink = "#ff00ff"', "knows no colour named 'pink'"),
        ("= broken", "theme mine.toml:"),
    ],
)
def test_a_bad_file_is_reported_and_the_others_work(tmp_path: Path, change: str, problem: str) -> None:
    write(tmp_path, "mine", change)
    write(tmp_path, "other")
    library = themes.load([tmp_path])
    assert [theme.name for theme in library.themes] == ["other"]
    assert problem in library.problems[0]


def test_missing_and_malformed_colours_are_named(tmp_path: Path) -> None:
    colors = dict(SHIPPED.themes[0].colors)
    without = dict(colors)
    del without["accent"]
    write(tmp_path, "a", colors=without)
    write(tmp_path, "b", colors=colors | {"bg": "black"})
    assert [problem.split(": ")[1] for problem in themes.load([tmp_path]).problems] == [
        "lacks accent",
        "bg = 'black' is not a colour such as '#56c7d1'",
    ]


def test_the_users_own_file_wins(tmp_path: Path) -> None:
    write(tmp_path, "night", colors=dict(SHIPPED.themes[0].colors) | {"accent": "#123456"})
    library = themes.load([locations.shipped_themes(), tmp_path])
    found = library.get("night")
    assert found is not None
    assert found.colors["accent"] == "#123456"
    assert len(library.themes) == 2


def test_the_next_theme_goes_round() -> None:
    names = [theme.name for theme in SHIPPED.themes]
    assert [SHIPPED.after(name).name for name in names] == [*names[1:], names[0]]
    assert SHIPPED.after("gone").name == names[0]


def test_the_users_folder_follows_xdg() -> None:
    assert locations.user_themes({"XDG_CONFIG_HOME": "/x"}) == Path("/x/trickle/themes")
    assert locations.user_themes({"HOME": "/home/ada"}) == Path("/home/ada/.config/trickle/themes")


def test_roles_become_styles() -> None:
    palette = themes.Palette(SHIPPED.themes[0])
    style = palette.style("stale bold on hot")
    assert style.bold
    assert style.color is not None
    assert style.color.name == SHIPPED.themes[0].colors["stale"]
    assert style.bgcolor is not None
    assert style.bgcolor.name == SHIPPED.themes[0].colors["hot"]
    # on the selected row the faintest text is lifted
    assert palette.style("faint", "select").color == palette.style("dim", "select").color


def test_without_colour_there_is_none() -> None:
    palette = themes.Palette(SHIPPED.themes[0], no_color=True)
    for role in ("failed bold", "text on hot", "bg bold on accent"):
        assert palette.style(role).color is None
        assert palette.style(role).bgcolor is None
    assert palette.style("bg bold on accent").reverse
