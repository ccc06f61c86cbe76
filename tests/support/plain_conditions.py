"""Conditions that the driver may judge by itself, and rows to judge: for DuckDB and Spark to agree with it."""

from __future__ import annotations

import pyarrow as pa
import sqlglot

from engine.algebra.nodes import Filter, Leaf, Role, Scan
from engine.algebra.scalars import Scalar
from engine.lake.by_hand import by_hand, rows

TYPES = {
    "id": "int",
    "i": "int",
    "t": "tinyint",
    "b": "bigint",
    "b2": "bigint",
    "n": "decimal(6,2)",
    "s": "string",
    "s2": "string",
    "d": "date",
    "d2": "date",
    "y": "boolean",
    "y2": "boolean",
}
#: as Spark and DuckDB write them
ROWS = (
    "(1, 1, CAST(1 AS TINYINT), CAST(1 AS BIGINT), CAST(2 AS BIGINT), CAST(1.50 AS DECIMAL(6,2)), 'a', 'b',"
    " DATE '2024-02-29', DATE '2024-02-28', true, false)",
    "(2, -1, CAST(-128 AS TINYINT), CAST(9223372036854775807 AS BIGINT), CAST(9223372036854775807 AS BIGINT),"
    " CAST(-1.50 AS DECIMAL(6,2)), 'B', 'b', DATE '2024-01-31', DATE '2024-01-31', false, false)",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(4, 2147483647, CAST(127 AS TINYINT), NULL, CAST(0 AS BIGINT), CAST(9999.99 AS DECIMAL(6,2)), '', NULL,"
    " DATE '0101-01-01', NULL, NULL, true)",
    "(5, 0, CAST(0 AS TINYINT), CAST(0 AS BIGINT), NULL, CAST(0 AS DECIMAL(6,2)), 'ä', 'a', DATE '9999-12-31',"
    " DATE '2024-03-01', true, true)",
    "(6, 3, CAST(3 AS TINYINT), CAST(3 AS BIGINT), CAST(-3 AS BIGINT), CAST(1.00 AS DECIMAL(6,2)), 'a ', 'a',"
    " NULL, DATE '2023-02-28', NULL, NULL)",
)
PLAIN = (
    "i = 1",
    "1 < i",
    "-1 >= i",
    "i <> 0",
    "NOT (i = 1)",
    "t > 100",
    "t < 1000",
    "t = -128",
    "b = 9223372036854775807",
    "b >= b2",
    "b IS NOT DISTINCT FROM b2",
    "NOT (b IS NOT DISTINCT FROM b2)",
    "n < 1",
    "n = 1.5",
    "n >= -1.50",
    "n BETWEEN 0 AND 1.5",
    "s = 'a'",
    "s > 'Z'",
    "s <= ''",
    "s < s2",
    "s IN ('a', 'B', 'x')",
    "NOT (s IN ('a', 'B'))",
    "i IN (1, 2, 3)",
    "d > DATE '2024-01-01'",
    "d = d2",
    "d < d2",
    "d2 >= DATE '2024-01-31' - INTERVAL '1' DAY",
    "d >= DATE '2024-01-31' + INTERVAL '1' MONTH",
    "d2 <= DATE '2024-02-29' - INTERVAL '1' YEAR",
    "d = DATE '2023-11-29' + INTERVAL '3' MONTH",
    "d2 = DATE '2024-03-31' - INTERVAL '13' MONTH",
    "y = y2",
    "y <> y2",
    "i IS NULL",
    "NOT (s IS NULL)",
    "i = 1 AND s = 'a'",
    "i = 1 OR s IS NULL",
    "NOT (i = 1 AND b = 0)",
    "NOT (i = 1 OR b = 0)",
    "(i > 0 OR n < 0) AND (d IS NULL OR d < DATE '2025-01-01')",
)
#: more than comparing, or more than can be known to compare alike
NOT_PLAIN = (
    "i + 1 = 2",
    "i = b",
    "s = 1",
    "i = '1'",
    "i = 1.5",
    "b = 9223372036854775808",
    "n = 1.555",
    "n < 10000",
    "d = '2024-01-01'",
    "d = DATE '2024-1-1'",
    "d > DATE '2024-01-01' + INTERVAL '1' HOUR",
    "d > DATE '9999-12-31' + INTERVAL '1' DAY",
    "upper(s) = 'A'",
    "s LIKE 'a%'",
    "i IN (1, NULL)",
    "i = NULL",
    "y",
    "i = 1 AND s LIKE 'a%'",
    "(i = 1) = y",
)


def condition(text: str) -> Scalar:
    return Scalar(sqlglot.parse_one(text, dialect="spark"))


def chosen(text: str, shown: pa.Table) -> list[int]:
    """The ids of the rows for which it holds, by hand."""
    scan = Scan(Leaf(Role.DELTA, "rows"), tuple((name, name, type_) for name, type_ in TYPES.items()))
    asked = by_hand(Filter(scan, condition(text)), str)
    assert asked is not None, text
    found = rows(asked, lambda _: shown)
    assert found is not None
    return sorted(found.column("id").to_pylist())
