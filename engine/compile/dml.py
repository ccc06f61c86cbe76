"""DML on a source, sent through Trickle: the target's name becomes the table it stands for, all else stays verbatim."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.errors import QueryParseError


def target_of(text: str) -> tuple[str, int, int]:
    """The target's name and where it stands in the text (start, end)."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise QueryParseError("this statement is not understood", detail=str(error).splitlines()[0]) from None
    table = tree.this if isinstance(tree, exp.Insert | exp.Update | exp.Merge | exp.Delete) else None
    if isinstance(table, exp.Schema):
        table = table.this
    if not isinstance(table, exp.Table) or "start" not in table.this.meta:
        raise QueryParseError("only INSERT, UPDATE, DELETE and MERGE change a source", hint="name the source directly")
    return table.name, table.this.meta["start"], table.this.meta["end"] + 1


def relations_of(text: str) -> tuple[str, ...]:
    """Every plain name that stands where a table can stand."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return ()  # Spark will say what is wrong with it
    return tuple(dict.fromkeys(table.name for table in tree.find_all(exp.Table) if table.name and not table.db))


def retargeted(text: str, place: str) -> str:
    _, start, end = target_of(text)
    return text[:start] + place + text[end:]
