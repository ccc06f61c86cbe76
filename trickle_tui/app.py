"""The dashboard's wiring: theme, pages, the threads behind them, and one way in for every action."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from engine.errors import TrickleError
from engine.results import StreamTableExplanation
from trickle_tui import locations, themes
from trickle_tui.actions import BY_ID
from trickle_tui.bridge import Bridge
from trickle_tui.command_line import Candidate, Misread, Words, complete, parse
from trickle_tui.filtering import Problem
from trickle_tui.handlers import Handlers, Said
from trickle_tui.messages import RequestFinished, SnapshotFailed, SnapshotReady, ThemesChanged
from trickle_tui.screens.overview import OverviewPage
from trickle_tui.screens.page import Page
from trickle_tui.snapshot import Request, RunSql, Snapshot
from trickle_tui.updates import Updates
from trickle_tui.views.header import is_spark_on_its_way
from trickle_tui.widgets.prompt import Prompt

_TURN_S = 0.25
#: pictures come once a second; after this long the clock is drawn without one
_PATIENCE_S = 1.2


class _WholeCells(ScrollBarRender):
    """A thumb of whole cells: block characters are missing in some fonts and are no ASCII."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


ScrollBar.renderer = _WholeCells


class DashboardApp(App[None]):
    """Draws the newest snapshot; sends every wish through the registry of actions."""

    CSS_PATH = locations.stylesheet()
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    TITLE = "trickle"

    def __init__(
        self,
        bridge: Bridge,
        theme_folders: tuple[Path, ...] | None = None,
        startup_sql: Sequence[str] = (),
        on_first_picture: Callable[[], None] = lambda: None,
    ) -> None:
        settings = bridge.settings
        # the terminal's own colours only, as https://no-color.org asks
        super().__init__(ansi_color=settings.no_color)
        if settings.no_color:
            self._filters[:] = [each for each in self._filters if not isinstance(each, Monochrome)]
            self._filters.append(NoColor())
        self.bridge = bridge
        self._startup_sql = tuple(startup_sql)
        self._on_first_picture = on_first_picture
        self.ascii_only = settings.ascii
        self.no_color_wanted = settings.no_color
        folders = theme_folders or (locations.shipped_themes(), locations.user_themes())
        self.updates = Updates(bridge, self.post_message, folders)
        self.handlers = Handlers(self)
        self.turn = 0
        self._drawn_s = 0.0
        #: what the engine said about definitions, by name
        self.explanations: dict[str, StreamTableExplanation] = {}
        self.said: Said | None = None
        self.snapshot: Snapshot = self.updates.snapshot()
        self.library = themes.load(folders)
        self._use_theme(self.library.get(settings.theme) or self.library.themes[0])
        if self.library.problems:
            self.said = Said.problem(self.library.problems[0])

    @property
    def read_only(self) -> bool:
        return self.bridge.read_only

    def now(self) -> datetime:
        return self.bridge.now()

    @property
    def page(self) -> Page:
        """The page in front, below whatever popup is open."""
        return next(screen for screen in reversed(self.screen_stack) if isinstance(screen, Page))

    def get_default_screen(self) -> Screen[None]:
        return OverviewPage()

    # Themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {f"t-{token}": "#808080" for token in themes.TOKENS}

    def _use_theme(self, theme: themes.Theme) -> None:
        self.palette = themes.Palette(theme, self.no_color_wanted)
        self.register_theme(theme.for_textual())
        if self.theme == theme.name and self.is_running:
            # the same name with other colours: the stylesheet does not notice by itself
            self.refresh_css(animate=False)
        self.theme = theme.name

    def use_theme(self, name: str) -> None:
        """The one named, or the next."""
        theme = self.library.get(name) if name else self.library.after(self.palette.theme.name)
        if theme is not None:
            self._use_theme(theme)
            self._repaint()

    def _repaint(self) -> None:
        for screen in self.screen_stack:
            for widget in screen.query("*"):
                widget.refresh()

    def on_themes_changed(self, message: ThemesChanged) -> None:
        self.library = message.library
        theme = self.library.get(self.palette.theme.name)
        if theme is not None and theme.colors != self.palette.theme.colors:
            self._use_theme(theme)
            self._repaint()
        if self.library.problems:
            self.say(Said.problem(self.library.problems[0]))

    # Time

    def on_mount(self) -> None:
        if self.ascii_only:
            self.add_class("-ascii")
        self.set_interval(0.5, self._tick)
        self._turning = self.set_interval(_TURN_S, self._turn, pause=True)
        self._follow_running()
        self.call_after_refresh(self._start_engine)

    def _start_engine(self) -> None:
        """Only when the first picture stands: its history, Spark and the scheduler load heavy libraries."""
        self._on_first_picture()
        self.updates.start()
        threading.Thread(target=self._start_bridge, name="dashboard start", daemon=True).start()

    def _start_bridge(self) -> None:
        try:
            self.bridge.start()
        except TrickleError as error:
            self.post_message(SnapshotFailed(error))
        self.updates.wake()
        for statement in self._startup_sql:
            # what goes well shows as stream tables and events
            self.updates.perform(RunSql(statement), only_errors=True)

    def _tick(self) -> None:
        """The clock goes on also when no picture comes, because the catalog is busy or the engine at work."""
        if time.monotonic() - self._drawn_s > _PATIENCE_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        if self.said is not None and self.said.is_over(self.now()):
            self.said = None
        self.page.draw_all()

    def _turn(self) -> None:
        self.turn += 1
        if self.page.is_whole:
            self.page.draw_turn()

    def _follow_running(self) -> None:
        """Signs turn only while something runs, so that a calm screen costs nothing."""
        overview = self.snapshot.overview
        if any(table.running for table in overview.tables) or is_spark_on_its_way(overview.spark):
            self._turning.resume()
        else:
            self._turning.pause()

    # What other threads say

    def on_snapshot_ready(self, message: SnapshotReady) -> None:
        self.snapshot = message.snapshot
        self._follow_running()
        self._draw()

    def on_snapshot_failed(self, message: SnapshotFailed) -> None:
        self.say(Said.error(message.error))

    def on_request_finished(self, message: RequestFinished) -> None:
        self.handlers.finished(message)

    # Actions

    def act(self, name: str, argument: str = "") -> None:
        """Do what the registry calls by this name, or say why not."""
        action = BY_ID[name]
        context = self.page.context()
        # an argument names its own stream table: whether it may be done, the engine says
        reason = action.blocked(context) if not argument or context.read_only else None
        if reason is not None:
            self.say(Said.problem(f"{action.label_for(context)}: {reason}"))
            return
        if self.said is not None and self.said.is_error:
            self.say(None)
        for owner in (self.page, self.handlers):
            method = getattr(owner, f"do_{name}", None)
            if method is not None:
                method(argument)
                return

    def submit(self, request: Request) -> None:
        self.updates.submit(request)

    def watch_table(self, name: str | None) -> None:
        self.updates.watch(name)

    def say(self, said: Said | None) -> None:
        """One line above the keys; errors stay until the next action or escape."""
        self.said = said
        if self.is_running:
            self.page.draw_all()

    def home(self) -> None:
        """Back to the numbered view."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_help_quit(self) -> None:
        """ctrl+c: people mean it."""
        self.exit()

    # The prompt

    def words(self) -> Words:
        return Words(
            tuple(table.name for table in self.snapshot.overview.tables),
            tuple(theme.name for theme in self.library.themes),
        )

    def complete(self, text: str) -> tuple[Candidate, ...]:
        return complete(text, self.words())

    def check(self, text: str) -> tuple[Problem, ...]:
        """Underlines nothing while a word is being typed that may still become a command."""
        if not text.strip() or self.complete(text):
            return ()
        read = parse(text, self.words())
        return (Problem(0, len(text), read.text),) if isinstance(read, Misread) else ()

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        if message.purpose == "filter" and isinstance(self.page, OverviewPage):
            self.page.set_filter(message.text)

    def on_prompt_entered(self, message: Prompt.Entered) -> None:
        page = self.page
        page.leave_prompt()
        if message.purpose == "filter":
            if isinstance(page, OverviewPage):
                page.set_filter(message.text)
            return
        if not message.text.strip():
            return
        read = parse(message.text, self.words())
        if isinstance(read, Misread):
            self.say(Said.problem(read.text, read.hint))
        else:
            self.act(read.action.id, read.argument)

    def on_prompt_left(self, message: Prompt.Left) -> None:
        page = self.page
        page.leave_prompt()
        if message.purpose == "filter" and isinstance(page, OverviewPage):
            page.set_filter(message.text)
