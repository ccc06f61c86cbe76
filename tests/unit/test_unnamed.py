"""Which columns a text takes by name, and which without naming them."""

from __future__ import annotations

import pytest

from engine.compile.parse import parse
from engine.compile.unnamed import columns_named, joined_by_name, takes_all_columns
from engine.records import Column, View

A = (Column("id", "int"), Column("N", "int"), Column("note", "string"))
B = (Column("id", "int"), Column("label", "string"))
COLUMNS = {"a": A, "b": B}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM a", True),
        ("SELECT a.* FROM a", True),
        ("SELECT n FROM (SELECT * FROM a)", True),
        ("SELECT COUNT(*) AS n FROM a", False),
        ("SELECT id FROM a WHERE n * 2 > 3", False),
        ("SELECT id FROM everything", True),
    ],
)
def test_stars(query: str, expected: bool) -> None:
    views = (View("everything", "SELECT * FROM a"),)
    assert takes_all_columns(parse(query, views=views, relations=("a",))) is expected


@pytest.mark.parametrize(
    ("query", "used"),
    [
        ("SELECT id, rand() AS r FROM a", {"a": ["id"]}),
        ("SELECT `n` FROM a WHERE NOTE IS NULL", {"a": ["N", "note"]}),
        ("SELECT rand() AS r FROM a", {"a": []}),
        ("SELECT *, rand() AS r FROM a", {"a": ["id", "N", "note"]}),
        ("SELECT n, rand() AS r FROM a NATURAL JOIN b", {"a": ["id", "N", "note"], "b": ["id", "label"]}),
        ("SELECT n, rand() AS r FROM a JOIN b USING (id)", {"a": ["id", "N"], "b": ["id"]}),
    ],
)
def test_what_a_recomputed_query_may_use(query: str, used: dict[str, list[str]]) -> None:
    found = columns_named(parse(query, relations=COLUMNS), {name: COLUMNS[name] for name in used})
    assert {name: [column.name for column in columns] for name, columns in found.items()} == used


@pytest.mark.parametrize(
    ("query", "added", "expected"),
    [
        ("SELECT id FROM a NATURAL JOIN b", {"a": ["label"]}, ("a", "label")),
        ("SELECT id FROM a NATURAL JOIN b", {"a": ["LABEL"]}, ("a", "LABEL")),
        ("SELECT id FROM a NATURAL JOIN b", {"a": ["other"]}, None),
        ("SELECT id FROM a NATURAL LEFT JOIN b", {"b": ["fresh", "note"]}, ("b", "note")),
        ("SELECT id FROM a JOIN b USING (id)", {"a": ["label"]}, None),
        ("SELECT id FROM a NATURAL JOIN (SELECT id, label AS fresh FROM b)", {"a": ["fresh"]}, ("a", "fresh")),
        ("SELECT id FROM a NATURAL JOIN a AS again", {"a": ["other"]}, ("a", "other")),
    ],
)
def test_joins_that_would_join_otherwise(
    query: str, added: dict[str, list[str]], expected: tuple[str, str] | None
) -> None:
    now = {name: {column.name for column in columns} for name, columns in COLUMNS.items()}
    for name, names in added.items():
        now[name] |= set(names)
    assert joined_by_name(parse(query, relations=COLUMNS), added, now) == expected
