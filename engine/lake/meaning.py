"""What outside of its text decides what a query means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lake import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: settings under which the same query gives other rows
_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.groupByOrdinal",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.orderByOrdinal",
    "spark.sql.session.timeZone",
    "spark.sql.timestampType",
)
#: how Spark begins the line that names where one of its own functions is made
_OWN = "Class: org.apache.spark.sql.catalyst."


def of(session: SparkSession, functions: tuple[str, ...]) -> str:
    settings = [f"{key}={session.conf.get(key)}" for key in _SETTINGS]
    return "\n".join([*settings, *filter(None, (_body(session, name) for name in functions))])


def _body(session: SparkSession, name: str) -> str:
    """Empty for Spark's own functions, which stay what they are."""
    try:
        rows = session.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()
    except Exception as error:
        raise failures.typed(error, f"Looking up the function {name}") from error
    lines = [str(row[0]) for row in rows]
    # when it was made, and by whom, makes no difference
    said = [line for line in lines if not line.startswith(("Owner:", "Create Time:"))]
    return "" if any(line.startswith(_OWN) for line in lines) else "\n".join(said)
