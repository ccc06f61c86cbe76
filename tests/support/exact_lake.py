"""The lake of the tests, dividing as Spark does.

DuckDB divides decimals as floating point, and AVG of decimals is floating point too. Where a view and its query are
computed in different ways their last digits then differ, although both are right; and a rank, a LIMIT or a comparison
can fall otherwise than in Spark. Here each quotient and average of decimals is exact, rounded half up to Spark's scale.
And ROLLUP over nothing gives nothing, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import sqlglot
from sqlglot import exp

from engine.algebra.nodes import Node
from engine.algebra.types import parse_decimal
from engine.records import Column
from tests.support.duck_analyzer import visit_selects
from tests.support.fake_lake import FakeLake, Row
from tests.support.spark_types import INTEGERS, avg_type, sum_type

#: a is divided by b in whole numbers of 128 bits; up and down bring the quotient to its scale, which `ten` splits off.
#: Lists of one hold what is needed more than once: a macro would compute it as often as it is named.
MACROS = """
CREATE OR REPLACE MACRO main.unscaled(a) AS replace(a::VARCHAR, '.', '')::HUGEINT;
CREATE OR REPLACE MACRO main.exact_quotient(a, b, up, down, ten, digits) AS
    list_transform(
        list_transform(
            [[main.unscaled(a) * up, main.unscaled(b) * down]],
            lambda parts: CASE WHEN parts[2] <> 0 THEN
                (CASE WHEN (parts[1] < 0) <> (parts[2] < 0) THEN -1 ELSE 1 END)
                * ((2 * abs(parts[1]) + abs(parts[2])) // (2 * abs(parts[2])))
            END
        ),
        lambda q: (CASE WHEN q < 0 THEN '-' ELSE '' END) || (abs(q) // ten)::VARCHAR || '.'
            || lpad((abs(q) % ten)::VARCHAR, digits, '0')
    )[1]
"""


class ExactLake(FakeLake):
    def __init__(self, tables: Mapping[str, tuple[Column, ...]]) -> None:
        super().__init__(tables)
        install(self.db)
        self._exact: dict[str, str] = {}

    def sql(self, tree: Node) -> str:
        return self._divided_exactly(super().sql(tree))

    def recompute(self, query: str, columns: Sequence[Column]) -> list[Row]:
        return self.rows(self._divided_exactly(self.recomputation(query, columns)))

    def _divided_exactly(self, sql: str) -> str:
        if sql not in self._exact:
            self._exact[sql] = exactly(sql, self._relations())
        return self._exact[sql]

    def _relations(self) -> dict[str, tuple[Column, ...]]:
        """Every table of the lake, with what is stored and what changed."""
        found: dict[str, list[Column]] = {}
        for table, column, type_ in self.rows(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'lake'"
            " ORDER BY table_name, column_index"
        ):
            spark = exp.DataType.build(str(type_), dialect="duckdb").sql("spark").lower().replace(", ", ",")
            found.setdefault(str(table), []).append(Column(str(column), spark))
        return {name.casefold(): tuple(columns) for name, columns in found.items()}


def install(db: duckdb.DuckDBPyConnection) -> None:
    """Makes known what queries written by `exactly` call."""
    db.execute(MACROS)


@dataclass(frozen=True)
class Types:
    """Of a division: Spark's."""

    made: str
    dividend: str
    divisor: str

    @property
    def are_exact(self) -> bool:
        parts = (self.dividend, self.divisor)
        return parse_decimal(self.made) is not None and all(each in INTEGERS or parse_decimal(each) for each in parts)


def exactly(sql: str, relations: Mapping[str, tuple[Column, ...]]) -> str:
    """A query of DuckDB, dividing decimals exactly."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    guarded = [node for node in tree.find_all(exp.Div) if _is_guard(node.right)]
    for node in guarded:
        # The parser guards divisors for DuckDB; a guarded 3 is no literal to the rules of Spark's types.
        # Nothing is copied here: other guarded divisions may stand inside.
        node.set("expression", exp.Paren(this=node.right.this))
    _without_totals_of_nothing(tree)
    types: dict[int, Types] = {}

    def remember(select: exp.Expr, type_of: Callable[[exp.Expr], str]) -> None:
        for node in select.walk(prune=lambda part: isinstance(part, exp.Query) and part is not select):
            match node:
                case exp.Div():
                    types[id(node)] = Types(type_of(node), type_of(node.left), type_of(node.right))
                case exp.Avg():
                    argument = type_of(node.this)
                    types[id(node)] = Types(avg_type(argument), sum_type(argument), "bigint")

    visit_selects(tree, relations, remember)
    divisions = [node for node in tree.find_all(exp.Div, exp.Avg) if id(node) in types and types[id(node)].are_exact]
    for node in guarded:
        if all(node is not each for each in divisions):
            node.set("expression", exp.Nullif(this=node.right, expression=exp.Literal.number(0)))
    for node in reversed(divisions):  # what is inside first
        whole, dividend, divisor = _parts(node)
        whole.replace(_quotient(dividend, divisor, types[id(node)]))
    return tree.sql("duckdb")


def _is_guard(divisor: exp.Expr) -> bool:
    return isinstance(divisor, exp.Nullif) and divisor.expression == exp.Literal.number(0)


def _without_totals_of_nothing(tree: exp.Expr) -> None:
    """ROLLUP and the like over no row give no row in Spark, and a total in DuckDB."""
    for group in tree.find_all(exp.Group):
        special = [group.args.get(each) for each in ("rollup", "cube", "grouping_sets")]
        if any(special) or any(isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets) for key in group.expressions):
            assert isinstance(group.parent, exp.Select)
            group.parent.having("COUNT(*) > 0", copy=False)


def _parts(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """What is replaced, and what by what is divided in its place. An average may stand over a window or a filter."""
    if isinstance(node, exp.Div):
        return node, node.left.copy(), node.right.copy()
    whole = node
    while isinstance(whole.parent, exp.Window | exp.Filter) and whole.parent.this is whole:
        whole = whole.parent
    return whole, _with_aggregate(whole, exp.Sum), _with_aggregate(whole, exp.Count)


def _with_aggregate(average: exp.Expr, kind: type[exp.AggFunc]) -> exp.Expr:
    if isinstance(average, exp.Avg):
        return kind(this=average.this.copy())
    copy = average.copy()
    copy.set("this", _with_aggregate(average.this, kind))
    return copy


def _quotient(dividend: exp.Expr, divisor: exp.Expr, types: Types) -> exp.Expr:
    result = parse_decimal(types.made)
    assert result is not None
    move = result.scale + _scale(types.divisor) - _scale(types.dividend)
    numbers = (10 ** max(move, 0), 10 ** max(-move, 0), 10**result.scale)
    factors = [exp.cast(exp.Literal.number(number), "INT128") for number in numbers]
    digits = exp.cast(exp.Literal.number(result.scale), "INT")
    parts = [_typed(dividend, types.dividend), _typed(divisor, types.divisor), *factors, digits]
    return _typed(exp.Anonymous(this="main.exact_quotient", expressions=parts), types.made)


def _typed(tree: exp.Expr, type_: str) -> exp.Expr:
    """With Spark's digits after the point; sums of integers are wider in DuckDB, and may be."""
    return tree if type_ in INTEGERS else exp.cast(tree, exp.DataType.build(type_, dialect="spark"))


def _scale(type_: str) -> int:
    decimal = parse_decimal(type_)
    return decimal.scale if decimal is not None else 0
