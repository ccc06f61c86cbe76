"""The bottom line, the menu of actions and the help: three readings of one registry."""

from __future__ import annotations

from collections.abc import Sequence

from engine.records import State
from trickle_tui import state
from trickle_tui.actions import ACTIONS, Action, Context, for_context, for_footer
from trickle_tui.paint import EMPTY, Line, Span, columns, left, line, span, spread, width


def footer(context: Context, room: int) -> Line:
    """The keys of what is in front; those at the end leave first."""
    help_key = line(Span("?", "accent bold" if room < 100 else "dim"), Span(" help" if room >= 100 else "", "dim"))
    space = room - 2 - width(help_key) - 1
    shown: list[Line] = []
    used = 0
    gap = "   " if room >= 100 else "  "
    for action in for_footer(context):
        label = action.label_for(context)
        if room < 100 and label == "command":
            label = "cmd"
        part = line(Span(action.shown_key, "accent bold"), Span(f" {label}", "dim"))
        needed = width(part) + (len(gap) if shown else 0)
        if used + needed > space:
            break
        used += needed
        shown.append(line(gap if shown else "", part))
    return line(" ", spread(line(*shown), help_key, room - 2), " ")


def menu_entry(action: Action, reason: str | None, context: Context, room: int) -> Line:
    """What it does, or what it waits for."""
    key = left(Span(action.shown_key, "dim" if reason else "accent bold"), 6)
    label = left(Span(action.label_for(context), "dim" if reason else "text"), 16)
    why = Span(reason, "stale") if reason else Span(action.help, "faint")
    return left(line(key, label, line(why)), room)


def help_lines(context: Context, room: int) -> tuple[Line, ...]:
    """All keys of what is in front, then what the signs mean."""
    lines: list[Line] = [span("KEYS", "dim")]
    lines += [_key(action) for action in for_context(context) if action.keys]
    lines += [_key_row("↑↓ jk", "move", "g and G: first and last; page up and down")]
    commands = [action for action in ACTIONS if action.command]
    lines += [EMPTY, span("COMMANDS", "dim")]
    lines += [
        line(Span(f":{action.command} {action.argument.value}".ljust(24), "text"), Span(action.help, "dim"))
        for action in commands
    ]
    lines += [EMPTY, span("SIGNS", "dim")]
    lines += _signs()
    return tuple(left(each, room) for each in lines)


def _key(action: Action) -> Line:
    return _key_row(action.shown_key, action.label, action.help)


def _key_row(key: str, label: str, text: str) -> Line:
    return columns((left(Span(key, "accent bold"), 9), left(Span(label), 14), span(text, "dim")))


def _signs() -> Sequence[Line]:
    return [
        columns(
            (
                left(
                    line(Span(state.glyph(each), state.token(each)), " ", Span(each.value, state.word_role(each))), 13
                ),
                span(state.MEANING[each], "dim"),
            )
        )
        for each in State
    ]
