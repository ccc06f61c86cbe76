"""Writes docs/SETTINGS.md and docs/CLI.md from the tables that the program itself uses.

    python -m scripts.reference

A test compares both pages with what this gives, so that they cannot fall behind.
"""

from __future__ import annotations

import argparse
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
        case "" | {} | ():
            return "—"
        case value:
            return f"`{value}`"


def takes(setting: Setting) -> str:
    match setting.type:
        case "choice":
            return ", ".join(f"`{choice}`" for choice in setting.choices)
        case "duration":
            return "a duration such as `30s` or `1h30m`"
        case "names":
            return "a list of names"
        case "boolean":
            return "`true` or `false`"
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
    from engine.cli.main import build_parser

    parser = build_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    everywhere = [action for action in parser._actions if action is not commands]
    lines = [
        "# Commands",
        "",
        WRITTEN_BY,
        f"{parser.description} {parser.epilog}",
        "",
        "Errors go to standard error with their hint; what each means: [ERRORS.md](ERRORS.md).",
        "",
        "| command | what it does |",
        "|---|---|",
        *(f"| [`{name}`](#{name}) | {helps[name]} |" for name in commands.choices),
        "",
        "## Everywhere",
        "",
        "These stand before or after the command.",
        "",
        *options(everywhere),
    ]
    for name, command in commands.choices.items():
        lines += ["", f"## {name}", "", command.description or helps[name]]
        lines += command_section(command, everywhere)
    return "\n".join(lines) + "\n"


def command_section(command: argparse.ArgumentParser, everywhere: list[argparse.Action]) -> list[str]:
    """Usage and options of a command, and of the actions below it."""
    common = {option for action in everywhere for option in action.option_strings}
    own = [action for action in command._actions if not common & set(action.option_strings)]
    below = [action for action in own if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return ["", "```", usage(command, own), "```", *(["", *options(own)] if own else [])]
    lines: list[str] = []
    for name, action in below[0].choices.items():
        helps = {choice.dest: choice.help or "" for choice in below[0]._choices_actions}
        lines += ["", f"**{name}**: {helps.get(name, '')}", *command_section(action, everywhere)]
    return lines


def usage(command: argparse.ArgumentParser, own: list[argparse.Action]) -> str:
    """One line, without the options that all commands have; the same at every width of the terminal."""
    words = [command.prog]
    for action in sorted(own, key=lambda action: bool(action.option_strings), reverse=True):
        words.append(form(action) if action.required else f"[{form(action)}]")
    return " ".join(words)


def form(action: argparse.Action) -> str:
    """An option with its value, or an argument, as one types it."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    value = metavar or choices or action.dest.upper()
    if action.nargs in ("*", "+"):
        value += " …"
    if not action.option_strings:
        return value
    takes_value = action.nargs != 0
    return f"{action.option_strings[-1]} {value}" if takes_value else action.option_strings[-1]


def options(actions: list[argparse.Action]) -> list[str]:
    rows = []
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{form(action)}`"
        rows.append(f"| {names} | {action.help or ''} |")
    return ["| | |", "|---|---|", *rows] if rows else []


def main() -> None:
    (DOCS / "SETTINGS.md").write_text(settings_page(), encoding="utf-8")
    (DOCS / "CLI.md").write_text(cli_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
