"""Messages that other threads post to the app; only their handlers touch widgets."""

from __future__ import annotations

from textual.message import Message

from engine.errors import TrickleError
from trickle_tui.snapshot import Answer, Request, Snapshot
from trickle_tui.themes import ThemeLibrary


class SnapshotReady(Message, bubble=False):
    """A newer picture; one that was not drawn yet is simply replaced."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SnapshotReady)


class SnapshotFailed(Message, bubble=False):
    """The catalog could not be read this time; the last picture stays."""

    def __init__(self, error: TrickleError) -> None:
        super().__init__()
        self.error = error


class RequestFinished(Message, bubble=False):
    """Exactly one of `answer` and `error` is set."""

    def __init__(self, request: Request, answer: Answer | None, error: TrickleError | None) -> None:
        super().__init__()
        self.request = request
        self.answer = answer
        self.error = error


class ThemesChanged(Message, bubble=False):
    def __init__(self, library: ThemeLibrary) -> None:
        super().__init__()
        self.library = library
