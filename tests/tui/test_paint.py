"""Painted text keeps its width whatever is done to it."""

from __future__ import annotations

import pytest

from trickle_tui.paint import Span, cut, left, line, measured, plain, right, span, spread, width, wrap


@pytest.mark.parametrize("room", [0, 1, 5, 11, 12, 40])
@pytest.mark.parametrize("text", ["", "hello world", "日本語テスト", "a◐b"])
def test_left_and_right_fill_exactly(text: str, room: int) -> None:
    assert width(left(text, room)) == room
    assert width(right(text, room)) == room
    assert width(cut(span(text), room)) <= room


def test_what_is_cut_says_so() -> None:
    assert plain(cut(line("hello ", Span("world", "dim")), 8)) == "hello w…"
    assert plain(cut(span("hello"), 5)) == "hello"


def test_the_start_gives_way_to_the_end() -> None:
    assert plain(spread("a long start", "end", 10)) == "a lon… end"
    assert plain(spread("ab", "cd", 10)) == "ab      cd"


def test_words_are_wrapped_never_lost() -> None:
    text = "column fx_rates.rate was dropped at 11:46 by another_writer_with_a_name_beyond_all_bounds"
    lines = [plain(each) for each in wrap(text, 20)]
    assert all(len(each) <= 20 for each in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_units_are_set_back_only_behind_one_number() -> None:
    assert measured("0.21s") == (Span("0.21", "text"), Span("s", "dim"))
    assert measured("3m12s") == (Span("3m12s", "text"),)
    assert measured("—") == (Span("—", "text"),)
