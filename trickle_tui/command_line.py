"""The `:` line: which action is meant, with which argument, and how to complete it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from trickle_tui.actions import ACTIONS, BY_COMMAND, Action, Argument


@dataclass(frozen=True)
class Words:
    """The names an argument may take."""

    stream_tables: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    action: Action
    argument: str


@dataclass(frozen=True)
class Misread:
    """Why a line is no command."""

    text: str
    hint: str = ""


@dataclass(frozen=True)
class Candidate:
    """One way to go on: the whole line it gives, what to show, and what it does."""

    line: str
    shown: str
    help: str


def parse(text: str, words: Words) -> Command | Misread:
    name, _, rest = text.strip().partition(" ")
    argument = rest.strip()
    action = BY_COMMAND.get(name.lower())
    if action is None:
        near = get_close_matches(name.lower(), BY_COMMAND, n=1)
        return Misread(f"no command {name!r}", f"did you mean {near[0]}?" if near else "tab lists all commands")
    match action.argument:
        case Argument.NONE:
            return Misread(f"{name} takes nothing more") if argument else Command(action, "")
        case Argument.STREAM_TABLE:
            return (
                Command(action, "") if not argument else _named(action, argument, words.stream_tables, "stream table")
            )
        case Argument.THEME:
            return Command(action, "") if not argument else _named(action, argument, words.themes, "theme")
        case Argument.TEXT:
            if not argument and action.id == "sql":
                return Misread("sql wants a statement", "sql select * from orders limit 5")
            return Command(action, argument)


def _named(action: Action, argument: str, names: Sequence[str], thing: str) -> Command | Misread:
    for name in names:
        if name.lower() == argument.lower():
            return Command(action, name)
    near = get_close_matches(argument.lower(), [name.lower() for name in names], n=1)
    return Misread(f"no {thing} {argument!r}", f"did you mean {near[0]}?" if near else "")


def complete(text: str, words: Words, limit: int = 8) -> tuple[Candidate, ...]:
    """Commands first; after a command and a space the names it may take."""
    name, space, rest = text.lstrip().partition(" ")
    if not space:
        commands = sorted((action for action in ACTIONS if action.command), key=lambda action: action.command)
        found = [action for action in commands if action.command.startswith(name.lower())]
        return tuple(_command(action) for action in found)[:limit]
    action = BY_COMMAND.get(name.lower())
    match action.argument if action else None:
        case Argument.STREAM_TABLE:
            names = words.stream_tables
        case Argument.THEME:
            names = words.themes
        case _:
            return ()
    typed = rest.lstrip().lower()
    starting = [each for each in names if each.lower().startswith(typed)]
    holding = [each for each in names if typed in each.lower() and each not in starting]
    return tuple(Candidate(f"{name} {each}", each, "") for each in [*starting, *holding] if each != rest)[:limit]


def _command(action: Action) -> Candidate:
    takes = f" {action.argument.value}" if action.argument.value else ""
    return Candidate(f"{action.command} " if takes else action.command, f"{action.command}{takes}", action.help)
