"""The format of tests/views: what it reads, what it says of a wrong file, and that a wrong view cannot pass."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from engine.errors import Position
from engine.records import Column
from tests.support.multisets import net_change, same_rows
from tests.support.view_runner import Variant, run_view_test
from tests.support.view_test import ViewTest, ViewTestError, parse_change, parse_row, parse_view_test, write_row

PATH = Path("some.test")
GOOD = """# Sums by customer.
# A second line.

table orders(id bigint, customer string, amount decimal(10,2))
1 | ann | 5.00
2 | 'it''s | me' | NULL

view
SELECT customer, sum(amount) AS total
FROM orders GROUP BY customer

kept by group, stored sums

rows
ann | 5.00
'it''s | me' | NULL

step
INSERT INTO orders VALUES (3, 'ann', 2.00);
DELETE FROM orders WHERE id = 2

change
-1 | ann | 5.00
-1 | 'it''s | me' | NULL
+1 | ann | 7.00

step Nothing
DELETE FROM orders WHERE id = 99

change
"""


def good(**changes: object) -> ViewTest:
    return replace(parse_view_test(GOOD, PATH), **changes)


def test_reading() -> None:
    test = good()
    assert test.about == "Sums by customer. A second line."
    assert test.relations["orders"][2] == Column("amount", "decimal(10,2)")
    assert test.tables[0].rows == ((1, "ann", Decimal("5.00")), (2, "it's | me", None))
    assert test.query.splitlines() == ["SELECT customer, sum(amount) AS total", "FROM orders GROUP BY customer"]
    assert (test.kept, test.refusal) == ("by group, stored sums", None)
    assert [step.title for step in test.steps] == ["INSERT INTO orders VALUES (3, 'ann', 2.00);", "Nothing"]
    assert test.steps[1].change == ()


def test_reading_a_refusal() -> None:
    text = "# x\ntable t(k int)\nview\nSELECT max(k) AS m FROM t\nrefused UnsupportedOperator at line 1, column 8\n"
    refusal = parse_view_test(text + "no\n way\n", PATH).refusal
    assert refusal is not None
    assert (refusal.code, refusal.position, refusal.message) == ("UnsupportedOperator", Position(1, 8), "no way")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table t(k int)\n", "the first line says what the file shows"),
        ("select 1\n# x\n", "some.test:1: a file starts with"),
        ("# x\nview\nSELECT 1\n", "there is no table"),
        ("# x\ntable t(k int)\n", "there is no view"),
        ("# x\ntable t k int\nview\nSELECT 1\nkept by row\n", "some.test:2: not `table name(column type"),
        ("# x\ntable t(k int)\nview\nSELECT 1\n", "say either how the view is kept"),
        (
            "# x\ntable t(k int)\nview\nSELECT 1\nkept by row\nstep\n",
            "some.test:6: a step needs at least one statement",
        ),
        ("# x\ntable t(k int)\nview\nSELECT 1\nkept by row\nchange\n", "some.test:6: `change` belongs after a step"),
        ("# x\ntable t(k int)\n1 | 2\nview\nSELECT 1\n", "some.test:3: 2 values for 1 columns: 1 | 2"),
        ("# x\ntable t(k int)\none\nview\nSELECT 1\n", "some.test:3: 'one' is no int"),
        ("# x\ntable t(k int)\nview\nSELECT 1\nrefused X\nno\nstep\nDELETE FROM t\n", "has no rows and no steps"),
    ],
)
def test_a_wrong_file_is_told_where(text: str, message: str) -> None:
    with pytest.raises(ViewTestError) as caught:
        parse_view_test(text, PATH)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "row", [("a", 1), (None, None), ("", 0), ("NULL", -1), (" a ", 2), ("it's", 3), ("a | b", 4), ("'", 5)]
)
def test_rows_are_read_as_they_are_written(row: tuple[object, ...]) -> None:
    columns = (Column("s", "string"), Column("n", "bigint"))
    assert parse_row(write_row(row), columns, "here") == row


def test_a_change_has_a_weight() -> None:
    assert parse_change(["+2 | 7"], (Column("n", "int"),), "here") == [(2, (7,))]
    for line in ("7", "0 | 7", "x | 7"):
        with pytest.raises(ViewTestError, match="a change starts with"):
            parse_change([line], (Column("n", "int"),), "here")


def test_the_good_one_passes() -> None:
    for variant in Variant:
        run_view_test(good(), variant)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kept": "by row"}, "kept by group, stored sums, not by row"),
        ({"rows": ("ann | 5.01",)}, "the first rows: other rows"),
        ({"steps": (replace(good().steps[0], change=()),)}, "another change"),
        ({"query": "SELECT id FROM orders ORDER BY id LIMIT 1 + 1"}, "refused"),
    ],
)
def test_a_wrong_expectation_fails(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run_view_test(good(**changes), Variant.OPTIMIZED)


def test_multisets() -> None:
    assert same_rows([(1, "a"), (1, "a")], [(1, "a"), (1, "a")])
    assert not same_rows([(1, "a")], [(1, "a"), (1, "a")])
    assert same_rows([("a", 0.1 + 0.2), ("b", None)], [("b", None), ("a", 0.3)])
    assert not same_rows([("a", 0.3)], [("a", 0.300001)])
    nan = float("nan")
    assert same_rows([(-1.6e-17,), (nan,), (nan,)], [(nan,), (-1.5e-17,), (nan,)])
    assert not same_rows([(Decimal("0.1"),)], [(Decimal("0.10000000001"),)])
    assert net_change([(1,), (1,), (2,)], [(1,), (3,)]) == [(-1, (1,)), (-1, (2,)), (1, (3,))]
