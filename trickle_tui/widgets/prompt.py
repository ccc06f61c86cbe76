"""The line one types commands and filters into, with what it could become above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.widgets import Input, Label

from trickle_tui.command_line import Candidate
from trickle_tui.filtering import Problem
from trickle_tui.paint import Line, Span, cut, line, span, width
from trickle_tui.widgets.canvas import Canvas

Complete = Callable[[str], tuple[Candidate, ...]]
Check = Callable[[str], tuple[Problem, ...]]

_HELP_ROOM = 52


class _Underline(Highlighter):
    """Draws a line below what means nothing."""

    def __init__(self, check: Check) -> None:
        self.check = check

    def highlight(self, text: Text) -> None:
        for problem in self.check(text.plain):
            text.stylize("underline bold", problem.start, problem.end)


class _Field(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", show=False),
        Binding("up", "choose(-1)", show=False),
        Binding("down", "choose(1)", show=False),
        Binding("escape", "leave", show=False),
    ]

    def action_complete(self) -> None:
        self._prompt.complete()

    def action_choose(self, step: int) -> None:
        self._prompt.choose(step)

    def action_leave(self) -> None:
        self._prompt.leave()

    @property
    def _prompt(self) -> Prompt:
        prompt = self.parent
        if not isinstance(prompt, Prompt):
            raise TypeError("the field lives in a prompt")
        return prompt


class Prompt(Container):
    """Hidden until `ask`; says what was typed, each change of it, or that one left.

    The list of candidates is a widget beside it, so that nothing of the page is covered that need not be.
    """

    class Changed(Message):
        def __init__(self, purpose: str, text: str) -> None:
            super().__init__()
            self.purpose = purpose
            self.text = text

    class Entered(Changed):
        pass

    class Left(Changed):
        """Escape; `text` is what stood there before."""

    def __init__(self, candidates: Canvas) -> None:
        super().__init__(id="prompt")
        self._list = candidates
        self._purpose = ""
        self._before = ""
        self._complete: Complete = lambda text: ()
        self._check: Check = lambda text: ()
        self._candidates: tuple[Candidate, ...] = ()
        self._chosen = 0

    def compose(self) -> ComposeResult:
        yield Label("", id="prompt-sign")
        field = _Field(id="prompt-field", compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield field
        yield Label("", id="prompt-problem")

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def ask(self, purpose: str, sign: str, text: str, complete: Complete, check: Check) -> None:
        self._purpose, self._before = purpose, text
        self._complete, self._check = complete, check
        self.query_one("#prompt-sign", Label).update(sign)
        field = self.query_one(_Field)
        field.highlighter = _Underline(check)
        field.value = text
        field.cursor_position = len(text)
        self.add_class("-open")
        # at once, not when the queue comes to it: the next key may already be there
        self.screen.set_focus(field)
        self._offer(text)

    def close(self) -> None:
        self.remove_class("-open")
        self._list.display = False

    def complete(self) -> None:
        """Take the chosen candidate; where it is already typed, the next one."""
        if not self._candidates:
            return
        field = self.query_one(_Field)
        field.value = self._candidates[self._chosen].line
        field.cursor_position = len(field.value)

    def choose(self, step: int) -> None:
        if self._candidates:
            self._chosen = (self._chosen + step) % len(self._candidates)
            self._draw()

    def leave(self) -> None:
        self.close()
        self.post_message(self.Left(self._purpose, self._before))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self._offer(event.value)
            self.post_message(self.Changed(self._purpose, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close()
        self.post_message(self.Entered(self._purpose, event.value))

    def _offer(self, text: str) -> None:
        self._candidates = self._complete(text)
        self._chosen = 0
        problems = self._check(text)
        self.query_one("#prompt-problem", Label).update(problems[0].text if problems else "")
        self._draw()

    def _draw(self) -> None:
        self._list.display = bool(self._candidates)
        self._list.show([self._row(index, each) for index, each in enumerate(self._candidates)])

    def _row(self, index: int, candidate: Candidate) -> Line:
        ground = "select" if index == self._chosen else "raised"
        role = f"text bold on {ground}" if index == self._chosen else f"text on {ground}"
        shown = Span(candidate.shown.ljust(24), role)
        help_text = cut(span(candidate.help, f"dim on {ground}"), _HELP_ROOM)
        rest = Span(" " * (_HELP_ROOM - width(help_text)), f"dim on {ground}")
        return line(Span("▌" if index == self._chosen else " ", f"accent on {ground}"), shown, help_text, rest)
