"""Queries that keep the first rows of an order: how many of them, at the most."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from engine.compile.parse import ParsedQuery
from engine.compile.positions import clause_position
from engine.errors import Position


@dataclass(frozen=True)
class FirstRows:
    count: int
    #: None inside of a view
    position: Position | None


def largest(parsed: ParsedQuery) -> FirstRows | None:
    """Anywhere in its text, or in those of its views."""
    found = [
        FirstRows(int(number.name), clause_position(clause, each.text) if each is parsed else None)
        for each in parsed.texts
        for clause in each.tree.find_all(exp.Limit, exp.Fetch)
        for number in (clause.args.get("expression") or clause.args.get("count"),)
        if isinstance(number, exp.Literal) and number.is_int
    ]
    return max(found, key=lambda rows: rows.count, default=None)
