"""Spark's SQL as Spark 4 reads it, where sqlglot reads or writes it otherwise.

Spark has the last word anyway: a text whose rendering does not mean the same to it is not maintained. Each
difference that is taken away here is a query less that is recomputed for no reason of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp, transforms
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

#: functions that sqlglot rewrites into something that Spark does not find equal
KEPT_AS_WRITTEN = frozenset(("DATE_TRUNC", "DATE_SUB", "TO_DATE", "INSTR"))


class Spark4(Spark):
    class Tokenizer(Spark.Tokenizer):
        #: 'it''s' is one string with a quote in it, not two strings that are joined
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'"]

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build for name, build in SparkParser.FUNCTIONS.items() if name not in KEPT_AS_WRITTEN
        }

        def _parse_join(
            self,
            skip_join_token: bool = False,
            parse_bracket: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
        ) -> exp.Join | None:
            """FROM a, b is no CROSS JOIN to Spark, although it gives the same rows; and it binds less than JOIN."""
            is_comma = self._curr is not None and self._curr.token_type is TokenType.COMMA
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if is_comma and join is not None:
                join.set("kind", None)
                join.meta["comma"] = True
            return join

    class Generator(SparkGenerator):
        #: sqlglot would lift a WITH out of a derived table, where its names can clash; Spark needs no such help
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        #: QUALIFY and exact percentiles are Spark's own by now, and need no other words
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: made for kind, made in SparkGenerator.TRANSFORMS.items() if kind is not exp.WithinGroup},
            exp.Select: transforms.preprocess([transforms.unnest_to_explode]),
        }
