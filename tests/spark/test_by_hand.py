"""What the driver does by hand, Spark does alike; and Spark reads its rows as it reads its own."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from engine.lake import queries
from tests.support.plain_conditions import PLAIN, ROWS, TYPES, chosen, condition

pytestmark = pytest.mark.spark


def test_plain_conditions_hold_where_spark_says_so(spark: SparkSession) -> None:
    shown = queries.collect(spark.sql(f"SELECT * FROM VALUES {', '.join(ROWS)} AS rows({', '.join(TYPES)})"), "a test")
    spark.createDataFrame(shown).createOrReplaceTempView("judged")
    judged = spark.sql(f"SELECT id, {', '.join(condition(text).sql() for text in PLAIN)} FROM judged").collect()
    for place, text in enumerate(PLAIN, start=1):
        assert chosen(text, shown) == sorted(row[0] for row in judged if row[place]), text
