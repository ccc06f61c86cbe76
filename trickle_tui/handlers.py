"""What the actions of the registry do: they ask the engine, open popups, or turn something on the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.errors import TrickleError
from engine.records import Overview
from trickle_tui import format
from trickle_tui.actions import for_menu, is_paused
from trickle_tui.messages import RequestFinished
from trickle_tui.paint import EMPTY, Line, Span, cut, line, span
from trickle_tui.snapshot import (
    Cancel,
    Done,
    Drop,
    Explained,
    Maintain,
    Pause,
    Refresh,
    Reinitialize,
    Rename,
    Request,
    Resume,
    Rows,
    RunSql,
    Told,
    Verified,
    Verify,
)
from trickle_tui.views import answers, keys
from trickle_tui.widgets.popups import Menu, Question, Reading

if TYPE_CHECKING:
    from trickle_tui.app import DashboardApp

_SAID_FOR = timedelta(seconds=6)
_MENU_WIDTH = 76


@dataclass(frozen=True)
class Said:
    """One line of the program to the person."""

    glyph: str
    token: str
    text: str
    hint: str = ""
    #: None stays until something else is said
    until: datetime | None = None

    @staticmethod
    def error(error: TrickleError) -> Said:
        return Said("✖", "failed", " ".join(str(error).split()), error.hint or error.detail or "")

    @staticmethod
    def problem(text: str, hint: str = "") -> Said:
        return Said("▲", "stale", text, hint)

    @staticmethod
    def news(text: str, now: datetime) -> Said:
        return Said("●", "fresh", text, until=now + _SAID_FOR)

    @property
    def is_error(self) -> bool:
        return self.until is None

    def is_over(self, now: datetime) -> bool:
        return self.until is not None and now >= self.until

    def painted(self, room: int) -> Line:
        hint = span(f"  {self.hint}", "dim") if self.hint else EMPTY
        whole = line(" ", Span(self.glyph, self.token), " ", Span(self.text, "text"), hint)
        return cut(whole, room)


def downstream(overview: Overview, name: str) -> tuple[str, ...]:
    """Every stream table that reads this one, over any number of steps, nearest first."""
    readers = {table.name: table.dependents for table in overview.tables}
    found: list[str] = []
    waiting = list(readers.get(name, ()))
    while waiting:
        each = waiting.pop(0)
        if each not in found:
            found.append(each)
            waiting.extend(readers.get(each, ()))
    return tuple(found)


class Handlers:
    """One method `do_<id>` for each action that is not a page's own."""

    def __init__(self, app: DashboardApp) -> None:
        self._app = app

    def _names(self, argument: str) -> tuple[str, ...]:
        return (argument,) if argument else self._app.page.targets()

    def _submit_all(self, requests: list[Request], verb: str) -> None:
        for request in requests:
            self._app.submit(request)
        if len(requests) > 1:
            self._say(f"{verb} {format.plural(len(requests), 'stream table')}")

    def _say(self, text: str) -> None:
        self._app.say(Said.news(text, self._app.now()))

    # Verbs of the engine

    def do_refresh(self, argument: str) -> None:
        self._submit_all([Refresh(name) for name in self._names(argument)], "refreshing")

    def do_refresh_full(self, argument: str) -> None:
        names = self._names(argument)

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._submit_all([Refresh(name, full=True) for name in names], "recomputing")

        self._ask(answers.about_refresh_full(self._app.snapshot.overview, names), "recompute", answered)

    def do_pause(self, argument: str) -> None:
        names = self._names(argument)
        tables = [self._app.snapshot.table(name) for name in names]
        # from the line it is what it says; the key turns it round
        if not argument and all(is_paused(table) for table in tables):
            self._submit_all([Resume(name) for name in names], "resuming")
        else:
            self._submit_all(
                [Pause(name) for name, table in zip(names, tables, strict=True) if not is_paused(table)], "pausing"
            )

    def do_resume(self, argument: str) -> None:
        self._submit_all([Resume(name) for name in self._names(argument)], "resuming")

    def do_cancel(self, argument: str) -> None:
        self._submit_all([Cancel(name) for name in self._names(argument)], "cancelling")

    def do_verify(self, argument: str) -> None:
        names = self._names(argument)
        for name in names:
            self._app.submit(Verify(name))
        self._say(f"comparing {names[0]} with its query" if len(names) == 1 else f"comparing {len(names)} tables")

    def do_reinitialize(self, argument: str) -> None:
        names = self._names(argument)

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._submit_all([Reinitialize(name) for name in names], "beginning anew with")

        self._ask(answers.about_reinitialize(names), "begin anew", answered)

    def do_maintain(self, argument: str) -> None:
        names = self._names(argument)
        self._submit_all([Maintain(name) for name in names], "looking after")

    def do_rename(self, argument: str) -> None:
        """The one that is selected; without a name it is asked for."""
        selected = self._app.page.selected()
        if selected is None:
            return
        if argument:
            self._app.submit(Rename(selected.name, argument))
        else:
            self._prompt("rename ")

    def do_drop(self, argument: str) -> None:
        names = self._names(argument)
        overview = self._app.snapshot.overview
        below = tuple(dict.fromkeys(each for name in names for each in downstream(overview, name) if each not in names))

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._submit_all([Drop(name, cascade=bool(downstream(overview, name))) for name in names], "dropping")

        self._ask(answers.about_drop(names, below), "drop", answered)

    def _ask(self, text: tuple[Line, ...], yes: str, answered: Callable[[str | None], None]) -> None:
        self._app.push_screen(Question(text, yes, self._app.page.popup_place()), answered)

    def do_sql(self, argument: str) -> None:
        if not argument:
            self._prompt("sql ")
            return
        self._say("running the statement")
        self._app.submit(RunSql(argument))

    # The screen

    def do_open(self, argument: str) -> None:
        names = (argument,) if argument else self._app.page.targets()
        selected = self._app.page.selected()
        name = argument or (selected.name if selected else names[0])
        from trickle_tui.screens.stream_table import StreamTablePage

        self._app.home()
        self._app.watch_table(name)
        self._app.push_screen(StreamTablePage(name))

    def do_back(self, argument: str) -> None:
        if len(self._app.screen_stack) > 1:
            self._app.pop_screen()

    def do_menu(self, argument: str) -> None:
        page = self._app.page
        context = page.context()
        entries = for_menu(context)
        room = min(_MENU_WIDTH, page.size.width - 4) - 6
        title = self._menu_title(page.targets())

        def chosen(name: str | None) -> None:
            if name is not None:
                self._app.act(name)

        self._app.push_screen(
            Menu(
                title,
                [(each.id, keys.menu_entry(each, reason, context, room), reason is None) for each, reason in entries],
                _MENU_WIDTH,
                page.popup_place(),
                {key: each.id for each, _ in entries for key in each.keys if key != "enter"},
            ),
            chosen,
        )

    def _menu_title(self, names: tuple[str, ...]) -> Line:
        if len(names) == 1:
            return span(names[0], "text bold")
        return line(Span(f"{len(names)} marked", "text bold"), Span(f"  {', '.join(names)}", "dim"))

    def do_command(self, argument: str) -> None:
        self._prompt("")

    def _prompt(self, text: str) -> None:
        self._app.page.prompt.ask("command", ":", text, self._app.complete, self._app.check)

    def do_copy(self, argument: str) -> None:
        page = self._app.page
        text = page.copy_text() or "\n".join(f"trickle refresh {name}" for name in page.targets())
        self._app.copy_to_clipboard(text)
        self._say(f"copied: {text}" if "\n" not in text else f"copied {format.plural(text.count(chr(10)) + 1, 'line')}")

    def do_theme(self, argument: str) -> None:
        self._app.use_theme(argument)
        self._say(f"theme {self._app.palette.theme.name}")

    def do_help(self, argument: str) -> None:
        page = self._app.page
        self._app.push_screen(Reading(keys.help_lines(page.context(), min(100, page.size.width - 4) - 6)))

    def do_quit(self, argument: str) -> None:
        self._app.exit()

    # What came of requests

    def finished(self, message: RequestFinished) -> None:
        if message.error is not None:
            self._app.say(Said.error(message.error))
            return
        match message.answer:
            case Done(text, notices):
                self._say("; ".join((text, *notices)))
            case Verified(result):
                if result.equal:
                    self._say(answers.verified(result))
                else:
                    self._app.push_screen(Reading(answers.difference(result), 90))
            case Explained(explanation):
                self._app.explanations[explanation.table.name] = explanation
                self._app.page.draw_all()
            case Told(text):
                self._app.say(None)
                self._app.push_screen(Reading(tuple(span(each) for each in text.splitlines()), 140))
            case Rows() as rows:
                self._app.say(None)
                self._app.push_screen(Reading(answers.rows(rows), 140))
