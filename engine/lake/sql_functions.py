"""What Spark tells of functions, and of those that somebody wrote in SQL: CREATE FUNCTION … RETURN …."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.lake import failures, quoting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: with how many arguments a function is tried
_MOST_ARGUMENTS = 8


@dataclass(frozen=True)
class SqlFunction:
    #: as Spark lists it, with catalog and schema
    name: str
    #: declared, or what Spark makes of the body: it does not tell which, and takes the clock for deterministic
    deterministic: bool
    #: its answer depends on tables that the query does not name
    reads_tables: bool
    #: a relation rather than a value
    returns_table: bool
    #: an expression, or the query of a table function
    body: str


def described(session: SparkSession, name: str) -> list[str]:
    """All that Spark tells of a function, whoever made it; nothing of what only looks like one, as IDENTIFIER does."""
    from pyspark.errors import ParseException

    try:
        rows = session.sql(f"DESCRIBE FUNCTION EXTENDED {quoting.path(name)}").collect()
    except ParseException:
        return []
    except Exception as error:
        raise failures.typed(error, f"Looking up the function {name}") from error
    return [str(row[0]) for row in rows]


def look_up(session: SparkSession, name: str) -> SqlFunction | None:
    """None for whatever is not written in SQL: Spark's own, and those of Java and Python."""
    facts: dict[str, str] = {}
    for line in described(session, name):
        # a value may go over several lines, and a further setting has a row without a word before it
        word, colon, value = line.partition(":")
        if colon and not word.startswith(" "):
            facts.setdefault(word, value.strip())
    if "Body" not in facts:
        return None
    return SqlFunction(
        name=facts.get("Function", name),
        deterministic=facts.get("Deterministic") == "true",
        reads_tables=facts.get("Data Access") != "CONTAINS SQL",
        returns_table=facts.get("Type") == "TABLE",
        body=facts["Body"],
    )


def aggregates(session: SparkSession, name: str) -> bool | None:
    """Does the function give one value for a group of rows? None where it takes arguments that Spark does not tell."""
    from pyspark.errors import AnalysisException

    for count in range(_MOST_ARGUMENTS + 1):
        call = f"{quoting.path(name)}({', '.join(['NULL'] * count)})"
        try:
            plan = session.sql(f"SELECT {call}")._jdf.queryExecution().analyzed()
        except AnalysisException:
            continue
        except Exception as error:
            raise failures.typed(error, f"Looking up the function {name}") from error
        return str(plan.getClass().getSimpleName()) == "Aggregate"
    return None
