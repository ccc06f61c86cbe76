"""The `:` line: reading and completing."""

from __future__ import annotations

import pytest

from trickle_tui.command_line import Command, Misread, Words, complete, parse

WORDS = Words(("customer_ltv", "orders_enriched", "top_products"), ("night", "day"))


@pytest.mark.parametrize(
    ("text", "action", "argument"),
    [
        ("refresh customer_ltv", "refresh", "customer_ltv"),
        ("REFRESH Customer_LTV", "refresh", "customer_ltv"),
        ("refresh", "refresh", ""),
        ("drop top_products", "drop", "top_products"),
        ("theme day", "theme", "day"),
        ("filter state:failed fx", "filter", "state:failed fx"),
        ("sql select 1", "sql", "select 1"),
        ("quit", "quit", ""),
    ],
)
def test_commands_are_read(text: str, action: str, argument: str) -> None:
    read = parse(text, WORDS)
    assert isinstance(read, Command)
    assert (read.action.id, read.argument) == (action, argument)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("refesh x", "no command 'refesh'", "did you mean refresh?"),
        ("refresh custmer_ltv", "no stream table 'custmer_ltv'", "did you mean customer_ltv?"),
        ("theme pink", "no theme 'pink'", ""),
        ("quit now", "quit takes nothing more", ""),
        ("sql", "sql wants a statement", "sql select * from orders limit 5"),
    ],
)
def test_what_is_no_command_says_what_is_near(text: str, problem: str, hint: str) -> None:
    read = parse(text, WORDS)
    assert isinstance(read, Misread)
    assert (read.text, read.hint) == (problem, hint)


def test_commands_complete_by_their_beginning() -> None:
    assert [each.shown for each in complete("re", WORDS)] == [
        "refresh NAME", "refresh-full NAME", "reinitialize NAME", "rename TEXT", "resume NAME"
    ]  # fmt: skip
    assert [each.line for each in complete("qu", WORDS)] == ["quit"]


def test_names_complete_by_beginning_then_by_what_they_hold() -> None:
    found = [each.line for each in complete("open o", WORDS)]
    assert found == ["open orders_enriched", "open customer_ltv", "open top_products"]
    assert [each.line for each in complete("theme ", WORDS)] == ["theme night", "theme day"]
    assert complete("sql sel", WORDS) == ()
    assert complete("nonsense x", WORDS) == ()
