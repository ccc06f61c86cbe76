"""Completion scripts for bash, zsh and fish, made from the parser itself."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """What may follow one command."""

    name: str
    help: str
    options: tuple[tuple[str, str], ...]
    actions: tuple[tuple[str, str], ...]


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    commands = tuple(_commands(parser))
    match shell:
        case "bash":
            return _bash(commands)
        case "zsh":
            return _zsh(commands)
        case _:
            return _fish(commands)


def _commands(parser: argparse.ArgumentParser) -> list[Words]:
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, command in action.choices.items():
                options, actions = _follow(command)
                found.append(Words(name, helps.get(name, ""), options, actions))
    return found


def _follow(
    command: argparse.ArgumentParser,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    options: list[tuple[str, str]] = []
    actions: list[tuple[str, str]] = []
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action._choices_actions:
                actions.append((each.dest, each.help or ""))
            for below in action.choices.values():
                options += _follow(below)[0]
        elif action.option_strings:
            options += [(name, action.help or "") for name in action.option_strings if name.startswith("--")]
        elif action.choices:
            actions += [(str(choice), "") for choice in action.choices]
    return tuple(dict(options).items()), tuple(actions)


def _bash(commands: tuple[Words, ...]) -> str:
    cases = "\n".join(
        f"        {each.name}) words='{' '.join(name for name, _ in (*each.actions, *each.options))}' ;;"
        for each in commands
    )
    names = " ".join(each.name for each in commands)
    return f"""\
_trickle() {{
    local words current=${{COMP_WORDS[COMP_CWORD]}} command='' word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case " {names} " in *" $word "*) command=$word; break ;; esac
    done
    case "$command" in
{cases}
        *) words='{names}' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ ${{#COMPREPLY[@]}} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}}
complete -F _trickle trickle
"""


def _zsh(commands: tuple[Words, ...]) -> str:
    def described(pairs: tuple[tuple[str, str], ...]) -> str:
        return " ".join(_quoted(f"{name}:{text}" if text else name) for name, text in pairs)

    cases = "\n".join(
        f"        {each.name}) candidates=({described((*each.actions, *each.options))}) ;;" for each in commands
    )
    names = " ".join(each.name for each in commands)
    top = described(tuple((each.name, each.help) for each in commands))
    return f"""\
#compdef trickle
_trickle() {{
    local -a typed candidates
    local command='' word
    typed=("${{(@)words[2,CURRENT-1]}}")
    for word in $typed; do
        case " {names} " in *" $word "*) command=$word; break ;; esac
    done
    case "$command" in
{cases}
        *) candidates=({top}) ;;
    esac
    _describe 'trickle' candidates || _files
}}
compdef _trickle trickle
"""


def _fish(commands: tuple[Words, ...]) -> str:
    lines = ["complete -c trickle -f"]
    for each in commands:
        lines.append(f"complete -c trickle -n __fish_use_subcommand -a {each.name} -d {_quoted(each.help)}")
        condition = f"-n '__fish_seen_subcommand_from {each.name}'"
        for name, text in each.actions:
            lines.append(f"complete -c trickle {condition} -a {name} -d {_quoted(text)}")
        for name, text in each.options:
            lines.append(f"complete -c trickle {condition} -l {name.removeprefix('--')} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
