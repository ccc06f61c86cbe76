"""Writes docs/SETTINGS.md and docs/CLI.md from the tables that the program itself uses.

    python -m scripts.reference

A test compares both pages with what this gives, so that they cannot fall behind.
"""

from __future__ import annotations

from pathlib import Path

from engine.config import SETTINGS, Setting

DOCS = Path(__file__).resolve().parent.parent / "docs"
WRITTEN_BY = "<!-- written by: python -m scripts.reference -->\n"


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        WRITTEN_BY,
        "Each setting can be given in four places; the first one that names it wins: the command line",
        "(`--set spark.master=…`), the environment (`TRICKLE_SPARK_MASTER`), the workspace's `trickle.toml`, and",
        "the user's `~/.config/trickle/trickle.toml`. An unknown key or a bad value is an error that names the file,",
        "the line and the nearest valid key. `trickle config list` shows each value and where it came from.",
    ]
    section = ""
    for setting in SETTINGS:
        if setting.section != section:
            section = setting.section
            lines += ["", f"## [{section}]", "", "| key | default | takes | meaning |", "|---|---|---|---|"]
        lines.append(f"| `{setting.key}` | {default_of(setting)} | {takes(setting)} | {setting.meaning} |")
    return "\n".join(lines) + "\n"


def default_of(setting: Setting) -> str:
    match setting.default:
        case "" | {}:
            return "—"
        case value:
            return f"`{value}`"


def takes(setting: Setting) -> str:
    match setting.type:
        case "choice":
            return ", ".join(f"`{choice}`" for choice in setting.choices)
        case "duration":
            return "a duration such as `30s` or `1h30m`"
        case "integer" | "number":
            return f"{setting.unit or setting.type}{bounds(setting)}"
        case other:
            return other


def bounds(setting: Setting) -> str:
    match setting.least, setting.most:
        case None, None:
            return ""
        case least, None:
            return f", at least {least:g}"
        case None, most:
            return f", at most {most:g}"
        case least, most:
            return f", {least:g} to {most:g}"


def cli_page() -> str:
    from engine.cli.main import reference

    return reference()


def main() -> None:
    (DOCS / "SETTINGS.md").write_text(settings_page(), encoding="utf-8")
    (DOCS / "CLI.md").write_text(cli_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
