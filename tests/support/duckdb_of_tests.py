"""DuckDB as all tests have it: what it gets wrong is switched off, what only Spark has is there."""

from __future__ import annotations

import duckdb

#: of two joins of one table with itself, which differ in their columns only, DuckDB 1.5 computes one for both; and the
#: first row of no rows is a row of NULLs to it; and what a join looks for is asked below an ORDER BY … LIMIT; and of a
#: table whose rows were all deleted it keeps in mind what they were, so that ANTI JOIN by an inequality finds them
WRONG = ("common_subplan", "top_n_window_elimination", "join_filter_pushdown", "statistics_propagation")

#: a query that needs more is a failure, and not the end of the machine
MEMORY_MAX = "3GB"


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": MEMORY_MAX})
    connection.execute(f"SET disabled_optimizers = '{','.join(WRONG)}'")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("CREATE MACRO raise_error(message) AS error(message)")
    return connection
