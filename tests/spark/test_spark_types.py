"""What tests without Spark believe of its types, held against Spark: a long list of expressions, and whole queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lake.session import SparkHost
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.spark_lake import SparkAnalyzer

pytestmark = pytest.mark.spark

EXPRESSIONS = Path(__file__).with_name("expressions.txt")

COLUMNS = tuple(
    Column(name, type_)
    for name, type_ in (
        ("truth", "boolean"),
        ("tiny", "tinyint"),
        ("small", "smallint"),
        ("number", "int"),
        ("large", "bigint"),
        ("f", "float"),
        ("d", "double"),
        ("price", "decimal(7,2)"),
        ("amount", "decimal(15,2)"),
        ("wide", "decimal(38,10)"),
        ("rate", "decimal(4,4)"),
        ("word", "string"),
        ("name", "string"),
        ("day", "date"),
        ("at", "timestamp"),
        ("list", "array<int>"),
    )
)
RELATIONS = {"things": COLUMNS, "other": COLUMNS}

QUERIES = (
    "SELECT * FROM things",
    "SELECT o.* FROM things CROSS JOIN other o",
    "SELECT * FROM (SELECT number, price FROM things) a JOIN (SELECT number, amount FROM other) b USING (number)",
    "SELECT * FROM (SELECT number, price FROM things) a FULL JOIN (SELECT number AS n, day FROM other) b ON number = n",
    "SELECT a.* FROM (SELECT number FROM things) a LEFT SEMI JOIN other b ON a.number = b.number",
    "SELECT * FROM (SELECT number FROM things) a LEFT ANTI JOIN other b ON a.number = b.number",
    "SELECT price AS a, number AS b, day AS c FROM things UNION ALL SELECT amount, large, at FROM other",
    "SELECT price FROM things UNION SELECT number FROM other",
    "SELECT NULL AS a FROM things UNION ALL SELECT word FROM other",
    "SELECT number FROM things INTERSECT SELECT large FROM other",
    "SELECT price FROM things EXCEPT SELECT wide FROM other",
    "SELECT * FROM VALUES (1, 'a', 1.5), (2, NULL, 22.25) AS v(a, b, c)",
    "SELECT col1, col2 FROM VALUES (1, DATE '2020-01-01')",
    "WITH a AS (SELECT sum(price) AS s FROM things), b(t) AS (SELECT s / 2 FROM a) SELECT a.s, b.t FROM a, b",
    "WITH a AS (SELECT number FROM things) SELECT * FROM (WITH a AS (SELECT price FROM other) SELECT * FROM a) x",
    "SELECT price * 2 AS double_price, double_price + 1 AS more FROM things",
    "SELECT word, (SELECT max(o.amount) FROM other o WHERE o.number = things.number) AS m FROM things",
    "SELECT word, sum(price) AS s FROM things GROUP BY ROLLUP (word) HAVING sum(price) > 1 ORDER BY s LIMIT 3",
    "SELECT element FROM things LATERAL VIEW explode(list) AS element",
    "SELECT t.number, l.m FROM things t, LATERAL (SELECT max(o.amount) AS m FROM other o WHERE o.number = t.number) l",
    "SELECT DISTINCT day + INTERVAL 1 DAY AS tomorrow FROM things",
)


def sections() -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in EXPRESSIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("----"):
            found.append([])
        elif line.strip() and not line.startswith("#"):
            found[-1].append(line)
    return found


def one_select(expressions: list[str], rest: str) -> str:
    return "SELECT " + ", ".join(f"{each} AS c{number}" for number, each in enumerate(expressions)) + rest


@pytest.mark.parametrize(("section", "rest"), [(0, ""), (1, " GROUP BY word WITH CUBE")])
def test_expressions(section: int, rest: str, spark_host: SparkHost) -> None:
    expressions = sections()[section]
    sql = one_select(expressions, f" FROM things{rest}")
    spark = SparkAnalyzer(spark_host, RELATIONS).describe(sql)
    ours = DuckAnalyzer(RELATIONS).describe(sql)
    other = [
        f"{expression}: {mine.type}, for Spark {theirs.type}"
        for expression, mine, theirs in zip(expressions, ours, spark, strict=True)
        if mine.type != theirs.type
    ]
    assert other == []


@pytest.mark.parametrize("sql", QUERIES)
def test_queries(sql: str, spark_host: SparkHost) -> None:
    spark = SparkAnalyzer(spark_host, RELATIONS).describe(sql)
    ours = DuckAnalyzer(RELATIONS).describe(sql)
    assert [(each.name, each.type) for each in ours] == [(each.name, each.type) for each in spark]
