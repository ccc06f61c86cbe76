"""The generator's types: Spark's, and a few words of its own for what may be done with a number.

`double` holds sums of halves and quarters, which add up to the same in every order; `ratio` is a double whose sum may
differ in its last digit; `real` is one that may differ itself, so nothing is compared, grouped or ordered by it;
`wide` is a decimal of any width.
"""

from __future__ import annotations

MOMENT = "timestamp_ntz"
INTEGERS = ("int", "bigint")
#: what a column of a table can be, and what the arms of a set operation can give
PLAIN = ("int", "bigint", "decimal(8,2)", "double", "string", "date", "timestamp_ntz", "boolean")
NUMBERS = ("int", "bigint", "decimal(8,2)", "wide", "double", "ratio")
#: what can be added up
SUMMED = ("int", "int", "bigint", "decimal(8,2)", "double", "ratio")
#: what an answer may depend on: equal in every order of computation
EXACT = (*PLAIN, "wide", "ratio")

_SPARK = {"ratio": "double", "real": "double", "wide": "decimal(8,2)"}


def spark_type(type_: str) -> str:
    return _SPARK.get(type_, type_)


def is_comparable(type_: str) -> bool:
    return type_ in EXACT


def sum_type(type_: str) -> str:
    match type_:
        case "int" | "bigint":
            return "bigint"
        case "double":
            return "double"
        case "ratio" | "real":
            return "real"
        case _:
            return "wide"


def avg_type(type_: str) -> str:
    return "ratio" if type_ in ("int", "bigint", "double") else "real"
