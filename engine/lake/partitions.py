"""Tables whose files lie in folders by the values of some columns: which values cannot, and which folders are touched.

A folder's name has to say the value, and some texts it cannot: what Hive once called a missing value is read as NULL by
everybody, and an empty text is NULL to Spark's writer while delta-rs keeps it (both seen). Rows with such values are
refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.lake import failures, log, queries, quoting, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

#: texts that no folder can be named after
UNFIT = ("", "__HIVE_DEFAULT_PARTITION__")

#: a change that touches more values of a column names none of them: the predicate would cost more than it saves
MOST_VALUES = 1_000


def texts_of(path: str) -> tuple[str, ...]:
    """The columns of text by which a table is partitioned."""
    definition = log.definition(path)
    types = {column.name: column.type for column in tables.columns_of(definition.schema)}
    return tuple(name for name in definition.partition_columns if types[name] == "string")


def refuse_unfit(path: str, rows: pa.Table) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in texts_of(path):
        found = pc.any(pc.is_in(rows[name].cast(pa.string()), value_set=pa.array(UNFIT))).as_py()
        if found:
            raise failures.unfit(name)


def refusing_unfit(path: str, frame: DataFrame, besides: Sequence[str] = ()) -> DataFrame:
    """The same rows, computed only if all of them fit. `besides` are text columns that it will be partitioned by."""
    from pyspark.sql import functions

    unfit = ", ".join(quoting.text(value) for value in UNFIT)
    for name in dict.fromkeys((*texts_of(path), *besides)):
        quoted = quoting.name(name)
        # in two parts: whoever shows the statement in an error does not show the marker
        said = f"concat('{failures.UNFIT[:8]}', {quoting.text(f'{failures.UNFIT[8:]}|{name}|')})"
        checked = f"CASE WHEN {quoted} IN ({unfit}) THEN CAST(raise_error({said}) AS STRING) ELSE {quoted} END"
        frame = frame.withColumn(name, functions.expr(checked))
    return frame


def touched(frame: DataFrame, within: Sequence[str]) -> str:
    """A condition on the table `t` alone that holds for every row which the change set can be about.

    Spark leaves out files by such conditions only, not by the equality with columns of the change set.
    """
    conditions = []
    for name in within:
        found = queries.collect(frame.select(quoting.name(name)).distinct().limit(MOST_VALUES + 1), "its partitions")
        values = found.column(0).to_pylist()
        if len(values) <= MOST_VALUES:
            conditions.append(_among(f"t.{quoting.name(name)}", values))
    return " AND ".join(conditions)


def _among(column: str, values: Sequence[Any]) -> str:
    listed = ", ".join(_literal(value) for value in values if value is not None)
    parts = [f"{column} IN ({listed})"] if listed else []
    if None in values:
        parts.append(f"{column} IS NULL")
    return f"({' OR '.join(parts)})" if parts else "false"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case date():
            return f"DATE {quoting.text(value.isoformat())}"
        case int():
            return str(value)
        case _:
            return quoting.text(str(value))
