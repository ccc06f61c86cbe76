"""Brings a copy up to date by the rows that differ, in one commit. They have no key: a row is all of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.nodes import WEIGHT
from engine.algebra.types import has_float, is_float, is_orderable
from engine.lake import quoting, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: of more than this share of the rows a rewrite is cheaper
_SHARE = 0.5

_OPERATION, _GONE, _NUMBER = "__trickle_operation", "__trickle_gone", "__trickle_number"
#: views of the session for as long as a merge runs
_WAS, _CHANGED = "__trickle_polled_was", "__trickle_polled_changed"


def fits(was: DataFrame, differing: int, rows: int) -> bool:
    """Are they few, and can Spark tell whether two values are the same?"""
    types = [tables.spelled_by_spark(field.dataType) for field in was.schema.fields]
    comparable = all(is_orderable(type_) and (is_float(type_) or not has_float(type_)) for type_ in types)
    return comparable and differing <= rows * _SHARE


def run(session: SparkSession, copy: str, was: DataFrame, changed: DataFrame) -> None:
    """All copies of a row go of which some went; those that stay come again."""
    was.createOrReplaceTempView(_WAS)
    changed.createOrReplaceTempView(_CHANGED)
    try:
        session.sql(_statement(quoting.table(copy), was))
    finally:
        for view in (_WAS, _CHANGED):
            session.catalog.dropTempView(view)


def _statement(copy: str, was: DataFrame) -> str:
    names = [quoting.name(name) for name in was.columns]
    floats = {
        quoting.name(field.name) for field in was.schema.fields if is_float(tables.spelled_by_spark(field.dataType))
    }

    def keys(alias: str) -> list[str]:
        """0.0 and -0.0 are the same to Spark, and their texts are not."""
        texts = [f"CAST({alias}.{name} AS STRING)" for name in names if name in floats]
        return [f"{alias}.{name}" for name in names] + texts

    def same(one: str, other: str) -> str:
        return " AND ".join(f"{a} <=> {b}" for a, b in zip(keys(one), keys(other), strict=True))

    def listed(alias: str) -> str:
        return ", ".join(f"{alias}.{name}" for name in names)

    firsts = ", ".join(f"first(c.{name}) AS {name}" for name in names)
    went = f"""
        SELECT {firsts}, count(*) AS {_GONE} FROM {_CHANGED} c WHERE c.{WEIGHT} < 0 GROUP BY {", ".join(keys("c"))}
    """  # noqa: S608  all quoted
    stay = f"""
        SELECT {listed("w")}, g.{_GONE},
            row_number() OVER (PARTITION BY {", ".join(keys("w"))} ORDER BY g.{_GONE}) AS {_NUMBER}
        FROM {_WAS} w JOIN went g ON {same("w", "g")}
    """  # noqa: S608  all quoted
    return f"""
        WITH went AS ({went}), stay AS ({stay})
        MERGE INTO {copy} t USING (
            SELECT {listed("g")}, 'D' AS {_OPERATION} FROM went g
            UNION ALL SELECT {listed("c")}, 'I' FROM {_CHANGED} c WHERE c.{WEIGHT} > 0
            UNION ALL SELECT {listed("s")}, 'I' FROM stay s WHERE s.{_NUMBER} > s.{_GONE}
        ) s ON s.{_OPERATION} = 'D' AND {same("t", "s")}
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED AND s.{_OPERATION} = 'I' THEN INSERT ({", ".join(names)}) VALUES ({listed("s")})
    """  # noqa: S608  all quoted
