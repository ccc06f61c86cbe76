"""Rows that came and rows that went cancel each other; copies stay rows of their own.

Not for speed alone: an expression may fail on a value that was there between two refreshes only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.comparable import comparable_sql
from engine.algebra.nodes import WEIGHT
from engine.algebra.types import has_float, is_orderable
from engine.lake import quoting, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def of_rows(rows: pa.Table) -> pa.Table:
    """Where `is_possible`."""
    import pyarrow as pa

    if not rows.num_rows:
        return rows  # without a column but the weight, the sum of nothing would be one row
    names = rows.column_names
    weights = names.index(WEIGHT)
    by_position = rows.rename_columns([f"c{index}" for index in range(len(names))])
    keys = [f"c{index}" for index in range(len(names)) if index != weights]
    summed = by_position.group_by(keys).aggregate([(f"c{weights}", "sum")])
    there = {**{f"c{index}": name for index, name in enumerate(names)}, f"c{weights}_sum": WEIGHT}
    summed = summed.rename_columns([there[name] for name in summed.column_names])
    weights_left = summed[WEIGHT].to_pylist()
    copies = [row for row, weight in enumerate(weights_left) for _ in range(abs(weight))]
    signs = [1 if weights_left[row] > 0 else -1 for row in copies]
    left = summed.take(pa.array(copies, pa.int64())).select(names)
    return left.set_column(weights, WEIGHT, pa.array(signs, pa.int32()))


def is_possible(rows: pa.Table) -> bool:
    """Arrow does not group by arrays, structs and maps."""
    import pyarrow as pa

    return not any(pa.types.is_nested(field.type) for field in rows.schema)


def weighted(rows: DataFrame, weight: int) -> DataFrame:
    return rows.selectExpr(*map(quoting.name, rows.columns), f"{weight} AS {WEIGHT}")


def of_frame(feed: DataFrame) -> DataFrame:
    """The last column is the weight.

    Spark groups 0.0 with -0.0, which a column tells apart, and so do their texts; and it groups by maps, but forgets
    which of their values are NULL.
    """
    from pyspark.sql import functions

    keys: list[str] = []
    firsts: list[str] = []
    names = [quoting.name(name) for name in feed.columns[:-1]]
    for position, (name, field) in enumerate(zip(names, feed.schema.fields, strict=False)):
        type_ = tables.spelled_by_spark(field.dataType)
        if has_float(type_) or not is_orderable(type_):
            same = comparable_sql(feed.columns[position], type_)
            keys += [f"{same} AS k{position}", f"CAST({same} AS STRING) AS t{position}"]
            firsts.append(f"first({name}) AS c{position}")
        else:
            keys.append(f"{name} AS c{position}")
    weight = functions.sum(WEIGHT).alias("weight")
    summed = feed.groupBy(*map(functions.expr, keys)).agg(weight, *map(functions.expr, firsts))
    copies = f"explode(array_repeat(IF(weight > 0, 1, -1), CAST(abs(weight) AS INT))) AS {WEIGHT}"
    return summed.selectExpr(*(f"c{position} AS {name}" for position, name in enumerate(names)), copies)
