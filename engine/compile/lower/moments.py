"""Variance, covariance and their kin over integers and decimals, spelled out by sums, which are exact.

Spark adds them up in DOUBLE, row by row, and what comes out depends on the order of the rows. From exact sums there is
one answer, and the sums can be stored and added to. With q the mean, rounded to the unit of the numbers, and r what the
sum has beyond n·q,

    Σ(a − mean a)(b − mean b)  =  Σ(a − qa)(b − qb) − ra·rb/n  =  (Σab − qa·Σb − qb·ra) − ra·rb/n

where all in the parentheses is exact in 38 digits, and of what is left only few digits can cancel, because |r| ≤ n/2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from engine.algebra.aggregates import count_of, sum_of
from engine.algebra.nodes import Aggregate, Aggregation, Node, Output, Project, keep
from engine.algebra.scalars import Scalar, case, cast, col, divide, eq, gt, lit, multiply, ne, not_null, null, subtract
from engine.algebra.trees import rewrite
from engine.algebra.types import Decimal, parse_decimal
from engine.compile.functions import AGGREGATES, name_of

#: the widest numbers of which everything above fits into 38 digits: 2·12 + 14
MAX_DIGITS = 12
#: below this, DuckDB computes products in 64 bits, whatever comes out
WIDE = 19
_INTEGERS = {"tinyint": Decimal(3, 0), "smallint": Decimal(5, 0), "int": Decimal(10, 0)}


def exact_moments(root: Node) -> tuple[Node, tuple[str, ...]]:
    """The tree with sums in place of what can be told from them, and what to say of it."""
    numbers, told = count(1), dict[str, None]()

    def spell_out(node: Node) -> Node:
        if not isinstance(node, Aggregate):
            return node
        found = {each.name: pair for each in node.aggregations if (pair := _columns_of(node, each)) is not None}
        if not found:
            return node
        told.update(dict.fromkeys(name_of(each.call.tree) for each in node.aggregations if each.name in found))
        return _Sums(node, numbers).spelled_out(found)

    rewritten = rewrite(root, spell_out)
    return rewritten, tuple(f"{name} goes by exact sums, which Spark rounds at every row" for name in told)


@dataclass(frozen=True)
class _Number:
    """A column of exact numbers that are not too wide."""

    scalar: Scalar
    type: str
    digits: Decimal


@dataclass(frozen=True)
class _Sum:
    """Over the rows of a group, under the names of columns."""

    number: _Number
    total: str
    #: the mean rounded, and what the total has beyond it
    middle: str
    beyond: str


def _columns_of(aggregate: Aggregate, made: Aggregation) -> tuple[_Number, ...] | None:
    tree = made.call.tree
    known = AGGREGATES.get(name_of(tree))
    if known is None or known.same_as not in {**_OF_ONE, **_OF_TWO}:
        return None
    arguments = (tree.this, tree.args.get("expression"))
    columns = [each for each in arguments if isinstance(each, exp.Column)]
    if len(columns) != (1 if known.same_as in _OF_ONE else 2):
        return None
    numbers = []
    for each in columns:
        type_ = aggregate.input.types[each.name]
        digits = _INTEGERS.get(type_) or parse_decimal(type_)
        if digits is None or digits.precision > MAX_DIGITS:
            return None
        numbers.append(_Number(col(each.name), type_, digits))
    return tuple(numbers)


@dataclass
class _Sums:
    """One aggregate, and above it one projection for each step of the formula."""

    aggregate: Aggregate
    numbers: Iterator[int]
    paired: dict[Scalar, Output] = field(default_factory=dict)
    products: dict[Scalar, Output] = field(default_factory=dict)
    sums: dict[Scalar, Aggregation] = field(default_factory=dict)
    steps: tuple[dict[Scalar, Output], ...] = field(default_factory=lambda: ({}, {}, {}))

    def spelled_out(self, found: Mapping[str, tuple[_Number, ...]]) -> Node:
        finals = {each.name: self._value(each, found[each.name]) for each in self._asked(found)}
        others = tuple(each for each in self.aggregate.aggregations if each.name not in finals)
        source = self.aggregate.input
        for more in (self.paired, self.products):
            source = Project(source, (*keep(source.columns), *more.values())) if more else source
        made: Node = Aggregate(source, self.aggregate.keys, (*others, *self.sums.values()))
        for step in self.steps:
            made = Project(made, (*keep(made.columns), *step.values()))
        outputs = (Output(c.name, finals.get(c.name, col(c.name)), c.type) for c in self.aggregate.columns)
        return Project(made, tuple(outputs))

    def _asked(self, found: Mapping[str, object]) -> Iterator[Aggregation]:
        return (each for each in self.aggregate.aggregations if each.name in found)

    def _value(self, made: Aggregation, numbers: tuple[_Number, ...]) -> Scalar:
        name = AGGREGATES[name_of(made.call.tree)].same_as
        if len(numbers) == 1:
            (number,) = numbers
            rows = self._sum("count", count_of(number.scalar), "bigint")
            total = self._total(number, rows)
            return _OF_ONE[name](_One(rows, self._moment(total, total, rows)))
        y, x = (self._beside(mine, other) for mine, other in (numbers, numbers[::-1]))
        rows = self._sum("count", count_of(x.scalar), "bigint")
        return _OF_TWO[name](self, self._total(y, rows), self._total(x, rows), rows)

    def _beside(self, mine: _Number, other: _Number) -> _Number:
        """Only rows that have both."""
        both = case((not_null(other.scalar), mine.scalar))
        return _Number(col(self._once(self.paired, "paired", both, mine.type)), mine.type, mine.digits)

    def _total(self, number: _Number, rows: Scalar) -> _Sum:
        digits = number.digits
        type_ = "bigint" if number.type in _INTEGERS else str(Decimal(digits.precision + 10, digits.scale))
        total = self._sum("sum", sum_of(number.scalar), type_)
        exact, many = cast(total, _sum_type(digits)), cast(rows, "decimal(20,0)")
        nearest = str(Decimal(digits.precision + 1, digits.scale))
        middle = self._step(0, case((gt(rows, lit(0)), cast(divide(exact, many), nearest))), nearest)
        rest = str(Decimal(max(digits.precision + 11, WIDE), digits.scale))
        beyond = self._step(1, cast(subtract(exact, multiply(many, middle)), rest), rest)
        return _Sum(number, str(total.as_column), str(middle.as_column), str(beyond.as_column))

    def _average(self, total: _Sum) -> Scalar:
        """AVG itself, which keeps decimals."""
        digits = total.number.digits
        type_ = "double" if total.number.type in _INTEGERS else str(Decimal(digits.precision + 4, digits.scale + 4))
        return self._sum("avg", Scalar(exp.Avg(this=total.number.scalar.tree.copy())), type_)

    def _moment(self, a: _Sum, b: _Sum, rows: Scalar) -> Scalar:
        """Σ(a − mean a)(b − mean b), as DOUBLE."""
        one, other = a.number.digits, b.number.digits
        digits, scale = one.precision + other.precision, one.scale + other.scale
        product = multiply(cast(a.number.scalar, str(Decimal(WIDE, one.scale))), cast(b.number.scalar, str(other)))
        narrow = str(Decimal(digits, scale))
        together = sum_of(col(self._once(self.products, "product", cast(product, narrow), narrow)))
        summed = self._sum("sum", together, str(Decimal(digits + 10, scale)))
        total_b = cast(col(b.total), _sum_type(other))
        around = subtract(subtract(summed, multiply(col(a.middle), total_b)), multiply(col(b.middle), col(a.beyond)))
        off = divide(multiply(_double(col(a.beyond)), _double(col(b.beyond))), _double(rows))
        return self._step(2, case((gt(rows, lit(0)), subtract(_double(around), off))), "double")

    # ------------------------------------------------------------ columns, each once

    def _once(self, made: dict[Scalar, Output], word: str, scalar: Scalar, type_: str) -> str:
        if scalar not in made:
            made[scalar] = Output(self._name(word), scalar, type_)
        return made[scalar].name

    def _sum(self, word: str, call: Scalar, type_: str) -> Scalar:
        if call not in self.sums:
            self.sums[call] = Aggregation(self._name(word), call, type_)
        return col(self.sums[call].name)

    def _step(self, number: int, scalar: Scalar, type_: str) -> Scalar:
        word = ("middle", "beyond", "moment")[number]
        return col(self._once(self.steps[number], word, scalar, type_))

    def _name(self, word: str) -> str:
        return f"__{word}_{next(self.numbers)}"


def _sum_type(digits: Decimal) -> str:
    return str(Decimal(max(digits.precision + 10, WIDE), digits.scale))


@dataclass(frozen=True)
class _One:
    rows: Scalar
    squares: Scalar

    @property
    def of_all(self) -> Scalar:
        return _of_all(self.squares, self.rows)

    @property
    def of_a_sample(self) -> Scalar:
        return _of_a_sample(self.squares, self.rows)


def _of_all(moment: Scalar, rows: Scalar) -> Scalar:
    return case((gt(rows, lit(0)), divide(moment, _double(rows))))


def _of_a_sample(moment: Scalar, rows: Scalar) -> Scalar:
    return case((gt(rows, lit(1)), divide(moment, _double(subtract(rows, lit(1))))))


def _double(value: Scalar) -> Scalar:
    return cast(value, "double")


def _root(value: Scalar) -> Scalar:
    return Scalar(exp.Sqrt(this=value.tree.copy()))


def _mean(sums: _Sums, number: _Sum, rows: Scalar) -> Scalar:
    return _of_all(_double(col(number.total)), rows)


def _slope(sums: _Sums, y: _Sum, x: _Sum, rows: Scalar) -> Scalar:
    across = sums._moment(x, x, rows)
    return case((ne(across, lit(0)), divide(sums._moment(y, x, rows), across)))


def _intercept(sums: _Sums, y: _Sum, x: _Sum, rows: Scalar) -> Scalar:
    return subtract(_mean(sums, y, rows), multiply(_slope(sums, y, x, rows), _mean(sums, x, rows)))


def _explained(sums: _Sums, y: _Sum, x: _Sum, rows: Scalar) -> Scalar:
    across, up, both = sums._moment(x, x, rows), sums._moment(y, y, rows), sums._moment(y, x, rows)
    share = divide(multiply(both, both), multiply(across, up))
    return case((eq(across, lit(0)), null()), (eq(up, lit(0)), cast(lit(1), "double")), otherwise=share)


_OF_ONE: dict[str, Callable[[_One], Scalar]] = {
    "var_pop": lambda one: one.of_all,
    "var_samp": lambda one: one.of_a_sample,
    "stddev_pop": lambda one: _root(one.of_all),
    "stddev_samp": lambda one: _root(one.of_a_sample),
}
#: CORR is not among them: of numbers that do not vary it is an error in Spark, which a stored sum would not repeat
_OF_TWO: dict[str, Callable[[_Sums, _Sum, _Sum, Scalar], Scalar]] = {
    "covar_pop": lambda sums, y, x, rows: _of_all(sums._moment(y, x, rows), rows),
    "covar_samp": lambda sums, y, x, rows: _of_a_sample(sums._moment(y, x, rows), rows),
    "regr_count": lambda sums, y, x, rows: rows,
    "regr_avgx": lambda sums, y, x, rows: sums._average(x),
    "regr_avgy": lambda sums, y, x, rows: sums._average(y),
    "regr_sxx": lambda sums, y, x, rows: sums._moment(x, x, rows),
    "regr_syy": lambda sums, y, x, rows: sums._moment(y, y, rows),
    "regr_sxy": lambda sums, y, x, rows: sums._moment(y, x, rows),
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _explained,
}
