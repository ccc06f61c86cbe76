"""Spark's SQL as Spark 4 reads it, where sqlglot reads or writes it otherwise.

Spark has the last word anyway: a text whose rendering does not mean the same to it is not maintained. Each
difference that is taken away here is a query less that is recomputed for no reason of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from itertools import zip_longest
from typing import Any, ClassVar

import sqlglot.parsers.spark
from sqlglot import exp, transforms
from sqlglot.dialects.dialect import groupconcat_sql
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

# what is left out is told by Spark, which compares the texts; sqlglot would tell it to the terminal
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def refuse_compiled(parser_file: str) -> None:
    """Says at once what would be a TypeError in the first query: compiled parsers cannot be extended."""
    if not parser_file.endswith(".py"):
        raise ImportError("Trickle extends sqlglot's parser, which its compiled build forbids: pip uninstall sqlglotc")


refuse_compiled(sqlglot.parsers.spark.__file__)

#: functions that sqlglot rewrites into something that Spark does not find equal
KEPT_AS_WRITTEN = frozenset(
    """
    COLLATE DATE_FORMAT DATE_SUB DATE_TRUNC FROM_UTC_TIMESTAMP INSTR LOG LOG10 LOG2 PARSE_JSON SPACE TO_CHAR TO_DATE
    TO_UNIX_TIMESTAMP TO_UTC_TIMESTAMP TRUNC UNIX_DATE
    """.split()  # noqa: SIM905  a list of them is one long column
)

#: where a node keeps the name of the function that it was called by, in lower case: sqlglot gives many functions
#: another name, gives several the same (ceil and ceiling), and makes some of parts (dayofweek takes a date of its own)
WRITTEN = "written"

#: calls whose first word is a unit of time
_WITH_UNIT = (exp.TimestampAdd, exp.TimestampDiff, exp.DateDiff)

#: `x LIKE ANY (…)` is no call of the aggregate function any
_QUANTIFIED = (TokenType.LIKE, TokenType.ILIKE)


#: functions that sqlglot reads and writes without parentheses: their tokens, and what they become
_LITERAL_FUNCTIONS = frozenset(Spark.Parser.NO_PAREN_FUNCTIONS)
_CALLED_WITHOUT = frozenset(Spark.Parser.NO_PAREN_FUNCTIONS.values())

#: where a cast keeps the text of the literal that it was written as, DATE '2020-01-01' or 2L: Spark reads literal and
#: cast alike, but finds them equal only where it folds constants, which it does not inside of subqueries
_LITERAL = "literal"
#: where the alias of a recursive WITH keeps how many rounds it may take
MAX_LEVEL = "max_level"
#: marks a NOT that was written as a part of IS NOT
_IS_NOT = "is_not"
#: what a join may have beside its relation
_PARTS_OF_JOIN = ("on", "using", "method", "side", "kind")
#: TIMESTAMP is TIMESTAMPTZ to sqlglot
_TYPES_OF_LITERALS = (
    exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ,
)  # fmt: skip


def _typed_literal(parser: SparkParser, literal: exp.Expr, type_: exp.DataType) -> exp.Cast:
    cast = exp.Cast(this=literal, to=type_)
    if isinstance(literal, exp.Literal):
        cast.meta[_LITERAL] = f"{type_.sql(parser.dialect)} {literal.sql(parser.dialect)}"
    return cast


class Spark4(Spark):
    class Tokenizer(Spark.Tokenizer):
        #: 'it''s' is one string with a quote in it, not two strings that are joined
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'"]

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{name: build for name, build in SparkParser.FUNCTIONS.items() if name not in KEPT_AS_WRITTEN},
            # of an array and a condition; with a query it is no function
            "EXISTS": lambda arguments: exp.Anonymous(this="exists", expressions=arguments),
            # aggregates, which sqlglot takes for scalars
            "ANY": exp.LogicalOr.from_arg_list,
            "SOME": exp.LogicalOr.from_arg_list,
            "EVERY": exp.LogicalAnd.from_arg_list,
            "MEAN": exp.Avg.from_arg_list,
            "STD": exp.Stddev.from_arg_list,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name != "ANY"
        }

        #: Spark tells a join without ON from one ON TRUE
        ADD_JOIN_ON_TRUE = False

        TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Any]] = {
            **SparkParser.TYPE_LITERAL_PARSERS,
            **dict.fromkeys(_TYPES_OF_LITERALS, _typed_literal),
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            """In GROUP BY window(at, '5 minutes') the word begins no WINDOW clause. And current_date is a call only
            where there is no column of that name, which whoever resolves names knows.
            """
            for token, following in zip_longest(raw_tokens, raw_tokens[1:]):
                is_call = following is not None and following.token_type is TokenType.L_PAREN
                if token.token_type is TokenType.WINDOW if is_call else token.token_type in _LITERAL_FUNCTIONS:
                    token.token_type = TokenType.VAR
            return super().parse(raw_tokens, sql)

        def _parse_types(self, check_func: bool = False, *options: Any, **others: Any) -> exp.Expr | None:
            """`void`, where nothing but a type can stand: sqlglot has no word for it."""
            if not check_func and self._curr and self._curr.text.upper() == "VOID":
                self._advance()
                return exp.DataType(this=exp.DType.NULL)
            return super()._parse_types(check_func, *options, **others)

        def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
            """The tokenizer makes 2 :: BIGINT of 2L: three tokens in the place of one."""
            number, cast = self._prev, self._curr
            suffixed = number and cast and cast.token_type is TokenType.DCOLON and cast.start == number.start
            column = super()._parse_column_ops(this)
            if suffixed and isinstance(column, exp.Cast) and self._prev.start == number.start:
                column.meta[_LITERAL] = self.sql[number.start : number.end + 1]
            return column

        def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
            alias = super()._parse_table_alias(alias_tokens)
            if alias is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
                number = self._parse_number()
                if number is None:
                    self.raise_error("Expecting a number of levels")
                else:
                    alias.meta[MAX_LEVEL] = number.name
            return alias

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            """Spark tells IS NOT from NOT … IS, and finds them equal only where it simplifies conditions."""
            found = super()._parse_is(this)
            if isinstance(found, exp.Not):
                found.meta[_IS_NOT] = True
            return found

        def _parse_function_call(
            self,
            functions: dict[str, Any] | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            """Remembers the name and the place, which sqlglot does for some functions only."""
            before, token, at = self._prev, self._curr, self._index
            call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
            is_name = token is not None and not (before and before.token_type in (TokenType.DOT, *_QUANTIFIED))
            if call is not None and is_name:
                inner = _called(call)
                if inner is not None:
                    inner.meta[WRITTEN] = token.text.lower()
                    inner.update_positions(token)
                    self._keep_unit(inner, at)
            return call

        def _keep_unit(self, call: exp.Expr, at: int) -> None:
            """datediff(month, …) is another call to Spark than datediff(MONTH, …)."""
            unit = call.args.get("unit")
            if isinstance(call, _WITH_UNIT) and isinstance(unit, exp.Var):
                written = self._tokens[at + 2].text if at + 2 < len(self._tokens) else ""
                if written.upper() == unit.name:
                    unit.set("this", written)

        def _parse_join(
            self,
            skip_join_token: bool = False,
            parse_bracket: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
        ) -> exp.Join | None:
            """FROM a, b is no CROSS JOIN to Spark, although it gives the same rows."""
            is_comma = self._curr is not None and self._curr.token_type is TokenType.COMMA
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if is_comma and join is not None:
                join.set("kind", None)
                join.meta["comma"] = True
            elif join is not None and not any(join.args.get(part) for part in _PARTS_OF_JOIN):
                join.set("kind", "INNER")  # with no word at all it would be written as a comma
            return join

    class Generator(SparkGenerator):
        #: sqlglot would lift a WITH out of a derived table, where its names can clash; Spark needs no such help
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.NULL: "VOID"}
        #: QUALIFY and exact percentiles are Spark's own by now, and need no other words
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: made for kind, made in SparkGenerator.TRANSFORMS.items() if kind is not exp.WithinGroup},
            exp.Select: transforms.preprocess([transforms.unnest_to_explode]),
            exp.ArgMax: lambda self, each: self.func("MAX_BY", each.this, each.expression, each.args.get("count")),
            exp.ArgMin: lambda self, each: self.func("MIN_BY", each.this, each.expression, each.args.get("count")),
            # without parentheses it may be a column
            **{call: lambda self, each: self.func(each.sql_name()) for call in _CALLED_WITHOUT},
            # without a separator there is none, and no comma
            exp.GroupConcat: lambda self, each: groupconcat_sql(
                self, each, func_name=each.meta.get(WRITTEN, "listagg").upper(), sep=None
            ),
        }

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            level = expression.meta.get(MAX_LEVEL)
            return super().tablealias_sql(expression) + (f" MAX RECURSION LEVEL {level}" if level else "")

        def not_sql(self, expression: exp.Not) -> str:
            inner = expression.this
            if expression.meta.get(_IS_NOT) and isinstance(inner, exp.Is):
                return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
            return super().not_sql(expression)

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            literal = expression.meta.get(_LITERAL)
            return str(literal) if literal else super().cast_sql(expression, safe_prefix)


def _called(call: exp.Expr) -> exp.Expr | None:
    """The function itself, of a call with OVER, FILTER, WITHIN GROUP or IGNORE NULLS around it."""
    while isinstance(call, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Paren):
        call = call.this
    return call if isinstance(call, exp.Expr) else None
