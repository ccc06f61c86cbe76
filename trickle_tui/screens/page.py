"""What all pages share: facts and views on top, the message row, the prompt and the keys at the bottom."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from engine.records import StreamTableStatus
from trickle_tui.actions import ACTIONS, Context, for_context
from trickle_tui.paint import EMPTY, Line
from trickle_tui.views import header, keys
from trickle_tui.widgets.canvas import Canvas
from trickle_tui.widgets.popups import Place
from trickle_tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from trickle_tui.app import DashboardApp


def bindings_of(screen: str) -> list[BindingType]:
    """One binding for each key that means something on a screen; which action it is, the moment decides.

    They have priority so that keys are taken in the order they come: over a slow line several come at once, and
    what follows a `:` must land in the prompt.
    """
    pressed = {key for action in ACTIONS if screen in action.screens for key in action.keys}
    return [Binding(key, f"press('{key}')", show=False, priority=True) for key in sorted(pressed)]


class Page(Screen[None]):
    """A full screen of the dashboard. Subclasses say what is in the middle and draw it."""

    #: as in the registry of actions
    page_name: ClassVar[str] = ""
    #: the numbered view it belongs to
    view: ClassVar[str] = "1"

    def __init__(self) -> None:
        super().__init__()
        self._is_composed = False

    @property
    def dashboard(self) -> DashboardApp:
        return cast("DashboardApp", self.app)

    @property
    def area(self) -> Size:
        """A page fills the terminal, whose size is known before the page's own."""
        return self.app.size

    # What subclasses provide

    @abstractmethod
    def middle(self) -> ComposeResult:
        """The widgets between header and footer."""

    @abstractmethod
    def draw(self) -> None:
        """Show the app's present snapshot."""

    @abstractmethod
    def selected(self) -> StreamTableStatus | None:
        """The stream table that actions are meant for, if there is one."""

    def trail(self) -> Line:
        """What stands at the right of the views."""
        return header.clock(self.dashboard.now())

    def targets(self) -> tuple[str, ...]:
        """The stream tables an action is meant for."""
        table = self.selected()
        return (table.name,) if table else ()

    def active_tab(self) -> str:
        return ""

    def marked_count(self) -> int:
        return 0

    def copy_text(self) -> str | None:
        """What `y` copies here, if it is not the command line of the selected one."""
        return None

    def popup_place(self) -> Place | None:
        return None

    # What all have

    def compose(self) -> ComposeResult:
        yield Canvas(id="facts")
        yield Canvas(id="views", on_line=self._view_clicked)
        yield from self.middle()
        yield Canvas(id="message")
        candidates = Canvas(id="candidates", ground="raised")
        yield candidates
        yield Prompt(candidates)
        yield Canvas(id="footer")

    def on_mount(self) -> None:
        # before the first layout, so that it need not be made twice
        self._is_composed = True
        self.draw_all()

    def on_resize(self) -> None:
        self.draw_all()

    def on_screen_resume(self) -> None:
        self.draw_all()

    @property
    def is_whole(self) -> bool:
        """A picture may come before its parts are there, and while the app is taken down, when they are gone."""
        return self._is_composed and self.dashboard.is_running

    def draw_all(self) -> None:
        if not self.is_whole:
            return
        self.draw_frame()
        self.draw()

    def draw_frame(self) -> None:
        """Header, message and footer."""
        app, room = self.dashboard, self.area.width
        self.canvas("facts").show([header.facts(app.snapshot.overview, app.now(), room, app.turn)])
        self.canvas("views").show([header.views(self.view, self.trail(), room)])
        self.canvas("footer").show([keys.footer(self.context(), room)])
        self.draw_message()

    def draw_message(self) -> None:
        said = self.dashboard.said
        message = self.canvas("message")
        message.set_class(said is not None, "-said")
        message.show([said.painted(self.area.width) if said is not None else EMPTY])

    def draw_turn(self) -> None:
        """Only what turns while something runs."""
        app = self.dashboard
        self.canvas("facts").show([header.facts(app.snapshot.overview, app.now(), self.area.width, app.turn)])

    def canvas(self, name: str) -> Canvas:
        return self.query_one(f"#{name}", Canvas)

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    def context(self) -> Context:
        app = self.dashboard
        return Context(
            screen=self.page_name,
            table=self.selected(),
            read_only=app.read_only,
            marked=self.marked_count(),
            spark=app.snapshot.overview.spark.phase,
            tab=self.active_tab(),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, keys are letters."""
        return not (action == "press" and self._is_composed and self.prompt.is_open)

    def action_press(self, key: str) -> None:
        action = next((each for each in for_context(self.context()) if key in each.keys), None)
        if action is not None:
            self.dashboard.act(action.id)

    def main_widget(self) -> Widget | None:
        """Where the focus belongs when nothing is typed."""
        return None

    def leave_prompt(self) -> None:
        """Back to what had the keyboard."""
        self.prompt.close()
        self.set_focus(self.main_widget())

    def _view_clicked(self, x: int, y: int) -> None:
        if header.view_at(x, self.view, self.area.width) == "1":
            self.dashboard.home()
