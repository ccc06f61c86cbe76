"""How a state looks: glyph, word and colour, told apart by shape alone; and the same in plain ASCII."""

from __future__ import annotations

from engine.event_records import Severity
from engine.records import State

_GLYPHS = {
    State.FAILED: "✖",
    State.SUSPENDED: "■",
    State.TAMPERED: "‡",
    State.FUSED: "◆",
    State.DIVERGED: "≠",
    State.STALE: "▲",
    State.LATE: "▲",
    State.RUNNING: "◐",
    State.UNPOPULATED: "◌",
    State.FRESH: "●",
    State.PAUSED: "○",
    State.FROZEN: "○",
}

_TOKENS = {
    State.FAILED: "failed",
    State.SUSPENDED: "failed",
    State.TAMPERED: "failed",
    State.FUSED: "fused",
    State.DIVERGED: "fused",
    State.STALE: "stale",
    State.LATE: "stale",
    State.RUNNING: "running",
    State.UNPOPULATED: "paused",
    State.FRESH: "fresh",
    State.PAUSED: "paused",
    State.FROZEN: "paused",
}

#: most severe first, as the engine lists them
SEVERITY = {state: rank for rank, state in enumerate(State)}

#: states that want something from a person
WANTS_ATTENTION = frozenset(
    {State.FAILED, State.SUSPENDED, State.TAMPERED, State.FUSED, State.DIVERGED, State.STALE, State.LATE}
)

#: states in which nothing moves until somebody acts
HELD = frozenset({State.FAILED, State.SUSPENDED, State.TAMPERED, State.FUSED, State.PAUSED})

#: one turn of a running refresh, four steps a second
TURNING = "◐◓◑◒"

MEANING = {
    State.FAILED: "its last refresh failed; it is tried again",
    State.SUSPENDED: "failed too often; waits for resume",
    State.TAMPERED: "somebody else changed its rows",
    State.FUSED: "the change was too large; waits for a decision",
    State.DIVERGED: "rows are missing by choice, until reinitialized",
    State.STALE: "older than its schedule allows",
    State.LATE: "a change of its sources is not in it, and could not be undone",
    State.RUNNING: "a refresh is at work",
    State.UNPOPULATED: "has no rows yet; its first refresh fills it",
    State.FRESH: "within its schedule",
    State.PAUSED: "not refreshed until resumed",
    State.FROZEN: "kept as it is",
}


def glyph(state: State, turn: int = 0) -> str:
    return TURNING[turn % len(TURNING)] if state is State.RUNNING else _GLYPHS[state]


def token(state: State) -> str:
    """The theme's colour for a state."""
    return _TOKENS[state]


def word_role(state: State) -> str:
    """The word of a fresh table is no news."""
    return "dim" if state is State.FRESH else token(state)


def severity_glyph(severity: Severity) -> tuple[str, str]:
    """For events: glyph and colour."""
    match severity:
        case Severity.ERROR:
            return "✖", "failed"
        case Severity.WARN:
            return "▲", "stale"
        case Severity.OK:
            return "●", "fresh"


#: one ASCII character for each sign we draw, so that widths never change
_ASCII = str.maketrans(
    {
        "✖": "x", "■": "S", "‡": "T", "◆": "#", "≠": "N", "▲": "!", "◐": "/", "◓": "-", "◑": "\\", "◒": "|",
        "◌": ".", "●": "*", "○": "o", "□": "s", "◇": "<", "≋": "~", "▌": ">", "•": "+", "█": "#",
        "━": "=", "╸": "=", "╺": "=", "─": "-", "│": "|", "┤": "|", "└": "`", "├": "|", "┈": ".", "╌": "-",
        "┴": "-", "╰": "`", "╯": "'", "╭": ".", "╮": ".", "▁": ".", "▂": ".", "▃": ":", "▄": "-", "▅": "=",
        "▆": "+", "▇": "*", "…": "~", "—": "-", "–": "-", "−": "-", "·": ".", "≈": "~", "Δ": "d", "×": "x",
        "⋈": "*", "∪": "u", "→": ">", "←": "<", "↓": "v", "↑": "^", "›": ">", "“": '"', "”": '"', "’": "'",
        "⟕": "*", "∘": ".", "±": "~", "≤": "<", "≥": ">", "σ": "s", "μ": "m", "π": "p", "γ": "g", "∅": "0",
        "✓": "v",
    }
)  # fmt: skip

_BRAILLE_FIRST, _BRAILLE_LAST = 0x2800, 0x28FF


def to_ascii(text: str) -> str:
    """The same text in plain signs; letters of people's own names stay as they are."""
    if text.isascii():
        return text
    return "".join(
        _dots(ord(letter)) if _BRAILLE_FIRST <= ord(letter) <= _BRAILLE_LAST else letter
        for letter in text.translate(_ASCII)
    )


def _dots(code: int) -> str:
    """A braille cell as the nearest punctuation: high, low, both or none."""
    bits = code - _BRAILLE_FIRST
    high, low = bits & 0b00011011, bits & 0b11100100
    return {(False, False): " ", (True, False): "'", (False, True): ".", (True, True): ":"}[(bool(high), bool(low))]
