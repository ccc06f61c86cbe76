"""What outside of its text decides what a query means."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from engine.lake import failures, sql_functions
from engine.records import Evaluated

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
    if functions:
        # where they are looked for, also by the bodies of others: the same name may be another function elsewhere
        settings.append(f"path={_row(session, 'current_path()')[0]}")
    return "\n".join([*settings, *filter(None, (_body(session, name) for name in functions))])


def evaluates(session: SparkSession, at: datetime) -> Evaluated:
    user, catalog, schema, version = _row(
        session, "current_user()", "current_catalog()", "current_schema()", "version()"
    )
    return Evaluated(at, f"{user} in {catalog}.{schema}", version)


def _row(session: SparkSession, *calls: str) -> tuple[str, ...]:
    """What a session says of itself, without a job."""
    try:
        return tuple(map(str, session.sql(f"SELECT {', '.join(calls)}").collect()[0]))
    except Exception as error:
        raise failures.typed(error, "Asking the session about itself") from error


def _body(session: SparkSession, name: str) -> str:
    """Empty for Spark's own functions, which stay what they are."""
    lines = sql_functions.described(session, name)
    # when it was made, and by whom, makes no difference
    said = [line for line in lines if not line.startswith(("Owner:", "Create Time:"))]
    return "" if any(line.startswith(_OWN) for line in lines) else "\n".join(said)
