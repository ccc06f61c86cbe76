"""Everything a person can do, once: keys, footer, `:` commands, menus and help all come from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from engine.records import SparkPhase, State, StreamTableStatus

OVERVIEW = "overview"
TABLE = "stream_table"
EVERYWHERE = frozenset({OVERVIEW, TABLE})


class Argument(Enum):
    """What a `:` command takes."""

    NONE = ""
    STREAM_TABLE = "NAME"
    THEME = "THEME"
    TEXT = "TEXT"


@dataclass(frozen=True)
class Context:
    """What decides whether an action is possible now."""

    screen: str
    table: StreamTableStatus | None = None
    read_only: bool = False
    marked: int = 0
    spark: SparkPhase = SparkPhase.READY
    tab: str = ""


Blocked = Callable[[Context], str | None]


def _never(_: Context) -> str | None:
    return None


def _needs_table(context: Context) -> str | None:
    return None if context.table is not None or context.marked else "no stream table is selected"


def _writes(context: Context) -> str | None:
    return "opened read-only" if context.read_only else _needs_table(context)


def _refreshes(context: Context) -> str | None:
    if reason := _writes(context):
        return reason
    if context.spark is SparkPhase.FAILED:
        return "Spark did not start"
    if not context.marked and context.table is not None and context.table.running is not None:
        return "a refresh is running"
    return None


def _renames(context: Context) -> str | None:
    if reason := _writes(context):
        return reason
    return "one at a time" if context.marked else None


def _cancels(context: Context) -> str | None:
    if reason := _writes(context):
        return reason
    return None if context.marked or (context.table and context.table.running) else "no refresh is running"


def _verifies(context: Context) -> str | None:
    if reason := _needs_table(context):
        return reason
    if context.spark is SparkPhase.FAILED:
        return "Spark did not start"
    if not context.marked and context.table is not None and context.table.state is State.UNPOPULATED:
        return "it has no rows yet"
    return None


def _runs_sql(context: Context) -> str | None:
    return "Spark did not start" if context.spark is SparkPhase.FAILED else None


def is_paused(table: StreamTableStatus | None) -> bool:
    return table is not None and table.state in (State.PAUSED, State.SUSPENDED)


@dataclass(frozen=True)
class Action:
    #: also the name of the method that does it
    id: str
    label: str
    help: str
    keys: tuple[str, ...] = ()
    #: as shown; by default the first key
    key_label: str = ""
    screens: frozenset[str] = EVERYWHERE
    #: name on the `:` line; empty where that makes no sense
    command: str = ""
    argument: Argument = Argument.NONE
    #: asks before it does anything, Cancel first
    dangerous: bool = False
    #: acts on the selected stream table, or on the marked ones
    on_table: bool = False
    #: place in the footer, small first; 0 is not in it
    footer: int = 0
    blocked: Blocked = _never
    #: only on this tab of the stream table's page
    tab: str = ""

    @property
    def shown_key(self) -> str:
        return self.key_label or (self.keys[0] if self.keys else "")

    def label_for(self, context: Context) -> str:
        """'pause' is 'resume' where the thing is paused."""
        return "resume" if self.id == "pause" and is_paused(context.table) else self.label


_HERE = frozenset({OVERVIEW})
_PAGE = frozenset({TABLE})

ACTIONS = (
    Action("open", "open", "show the stream table's page", ("enter",), screens=_HERE, command="open",
           argument=Argument.STREAM_TABLE, on_table=True, footer=1, blocked=_needs_table),
    Action("next_tab", "next tab", "the next tab of this page", ("tab", "right_square_bracket"), "tab",
           screens=_PAGE, footer=1),
    Action("previous_tab", "previous tab", "the tab before", ("shift+tab", "left_square_bracket"), "shift+tab",
           screens=_PAGE),
    Action("older_refresh", "other refresh", "the refresh before this one", ("left", "h"), "←→", screens=_PAGE,
           footer=2, tab="Plan"),
    Action("newer_refresh", "newer refresh", "the refresh after this one", ("right", "l"), "→", screens=_PAGE,
           tab="Plan"),
    Action("show_plan", "plan of it", "the plan of the chosen refresh", ("enter",), screens=_PAGE, footer=2,
           tab="History"),
    Action("refresh", "refresh", "refresh it now", ("r",), command="refresh", argument=Argument.STREAM_TABLE,
           on_table=True, footer=3, blocked=_refreshes),
    Action("refresh_full", "refresh fully", "compute all of it again; asks first", ("R",), command="refresh-full",
           argument=Argument.STREAM_TABLE, dangerous=True, on_table=True, blocked=_refreshes),
    Action("pause", "pause", "stop its schedule, or go on with it", ("p",), command="pause",
           argument=Argument.STREAM_TABLE, on_table=True, footer=4, blocked=_writes),
    Action("resume", "resume", "go on with its schedule", (), command="resume", argument=Argument.STREAM_TABLE,
           blocked=_writes),
    Action("cancel", "cancel refresh", "stop the refresh that runs; its rows stay as they were", ("c",),
           command="cancel", argument=Argument.STREAM_TABLE, on_table=True, blocked=_cancels),
    Action("verify", "verify", "compare its rows with its query", ("v",), command="verify",
           argument=Argument.STREAM_TABLE, on_table=True, footer=9, blocked=_verifies),
    Action("reinitialize", "begin anew", "compute all of it, whatever is known of it; asks first", (),
           command="reinitialize", argument=Argument.STREAM_TABLE, dangerous=True, on_table=True, blocked=_refreshes),
    Action("maintain", "look after", "put its files in order: small ones together, old ones away", (),
           command="maintain", argument=Argument.STREAM_TABLE, on_table=True, blocked=_refreshes),
    Action("rename", "rename", "give the selected one another name; its rows stay where they are", (),
           command="rename", argument=Argument.TEXT, on_table=True, blocked=_renames),
    Action("drop", "drop", "remove it and its rows; asks first and names what reads it", (), command="drop",
           argument=Argument.STREAM_TABLE, dangerous=True, on_table=True, blocked=_writes),
    Action("copy", "copy command", "copy the command line that refreshes it, or the SQL in view", ("y",),
           on_table=True, blocked=_needs_table),
    Action("menu", "actions", "all that can be done with it, and why some cannot", ("x",), footer=5,
           blocked=_needs_table),
    Action("mark", "mark", "mark it; actions then take all marked ones", ("space",), screens=_HERE, footer=8),
    Action("filter", "filter", "show only some: words, state:failed, mode:full, stale:>5m, name~ord", ("slash",),
           "/", screens=_HERE, command="filter", argument=Argument.TEXT, footer=6),
    Action("sort", "sort", "the next order of the list", ("s",), screens=_HERE, footer=10),
    Action("reverse", "reverse", "turn the order round", ("S",), screens=_HERE),
    Action("events", "events", "hide or show the events", ("E",), screens=_HERE),
    Action("command", "command", "type a command; tab completes", ("colon",), ":", footer=7),
    Action("sql", "sql", "run one SQL statement and show its rows", (), command="sql", argument=Argument.TEXT,
           blocked=_runs_sql),
    Action("theme", "theme", "the next theme, or the one named", ("T",), command="theme", argument=Argument.THEME),
    Action("back", "back", "leave: a popup, a filter, marks, a page", ("escape",), "esc", footer=11),
    Action("help", "help", "keys and signs of what is in front", ("question_mark",), "?", command="help"),
    Action("quit", "quit", "leave at once; running refreshes are dropped safely", ("q", "ctrl+q"), command="quit"),
)  # fmt: skip

BY_ID = {action.id: action for action in ACTIONS}
BY_COMMAND = {action.command: action for action in ACTIONS if action.command}


def is_here(action: Action, context: Context) -> bool:
    """Does it belong to what is in front?"""
    return context.screen in action.screens and action.tab in ("", context.tab)


def for_context(context: Context) -> tuple[Action, ...]:
    return tuple(action for action in ACTIONS if is_here(action, context))


def for_menu(context: Context) -> tuple[tuple[Action, str | None], ...]:
    """What can be done with the selected one, each with the reason why not."""
    return tuple((action, action.blocked(context)) for action in for_context(context) if action.on_table)


def for_footer(context: Context) -> tuple[Action, ...]:
    """In their order; help is not among them, it has its own place."""
    shown = [action for action in for_context(context) if action.footer]
    if context.screen == OVERVIEW:
        shown = [action for action in shown if action.id != "back"]
    return tuple(sorted(shown, key=lambda action: action.footer))
