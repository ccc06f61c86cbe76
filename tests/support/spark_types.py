"""Spark's result types, spelled out for the expressions that tests use.

DuckDB runs the tests' queries but types them its own way (its SUM of integers is 128 bits wide, its decimals divide
to doubles). The algebra only ever sees Spark's types, so a test without Spark has to know them. That this file tells
the truth is itself tested, on Spark, for every question that the tests ask of it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from engine.algebra.types import Decimal, parse_decimal

#: a type that nobody here knows; no maintained query may have one
UNKNOWN = "unknown"
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
#: how many digits an integer has when it meets a decimal
INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
PRECISION_MAX = 38
#: digits after the point that division keeps when 38 are not enough
SCALE_KEPT = 6

#: the type of a column, by the column as it stands in the query
Lookup = Callable[[exp.Column], str]

STRINGS = exp.Concat | exp.DPipe | exp.Upper | exp.Lower | exp.Substring | exp.Trim | exp.Left | exp.Right | exp.Replace
NUMBERS_INT = exp.Length | exp.Year | exp.Month | exp.Day | exp.StrPosition | exp.DateDiff
TRUTHS = (
    exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NullSafeEQ | exp.And | exp.Or | exp.Not | exp.Is
    | exp.In | exp.Between | exp.Like | exp.ILike | exp.RegexpLike | exp.Boolean | exp.Exists | exp.StartsWith
)  # fmt: skip


def type_of(tree: exp.Expr, column: Lookup) -> str:
    """The type that Spark gives an expression."""

    def of(part: exp.Expr) -> str:
        return type_of(part, column)

    match tree:
        case exp.Column():
            return column(tree)
        case exp.Alias() | exp.Paren() | exp.Neg() | exp.Abs():
            return of(tree.this)
        case exp.Literal():
            return _literal(tree)
        case exp.Null():
            return "void"
        case exp.Cast():
            return tree.to.sql("spark").lower().replace(", ", ",")
        case exp.Count():
            return "bigint"
        case exp.Sum():
            return sum_type(of(tree.this))
        case exp.Avg():
            return avg_type(of(tree.this))
        case exp.Max() | exp.Min() | exp.Nullif():
            return of(tree.this)
        case exp.IntDiv():
            return "bigint"
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(tree, of)
        case exp.Case():
            values = [branch.args["true"] for branch in tree.args["ifs"]] + [tree.args.get("default")]
            return widest([of(value) for value in values if value is not None])
        case exp.If():
            return widest([of(each) for each in (tree.args["true"], tree.args.get("false")) if each is not None])
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return widest([of(each) for each in (tree.this, *tree.expressions)])
        case exp.Date() | exp.TsOrDsToDate() | exp.TsOrDsAdd() | exp.DateAdd() | exp.DateSub():
            return "date"
        case _ if isinstance(tree, TRUTHS):
            return "boolean"
        case _ if isinstance(tree, STRINGS):
            return "string"
        case _ if isinstance(tree, NUMBERS_INT):
            return "int"
        case _:
            return _of_functions(tree, of)


def sum_type(argument: str) -> str:
    decimal = parse_decimal(argument)
    if decimal is not None:
        return str(_bounded(decimal.precision + 10, decimal.scale))
    return "bigint" if argument in INTEGERS else "double"


def avg_type(argument: str) -> str:
    decimal = parse_decimal(argument)
    return "double" if decimal is None else str(_bounded(decimal.precision + 4, decimal.scale + 4))


def widest(types: list[str]) -> str:
    """The type that all branches of a CASE or COALESCE are cast to."""
    known = [each for each in types if each != "void"]
    if not known:
        return "void"
    if len(set(known)) == 1:
        return known[0]
    if all(each in INTEGERS for each in known):
        return max(known, key=INTEGERS.index)
    if any(each in FLOATS for each in known):
        return "double"
    decimals = [_as_decimal(each) for each in known]
    exact = [each for each in decimals if each is not None]
    if len(exact) < len(known):
        return UNKNOWN
    scale = max(each.scale for each in exact)
    return str(_bounded(max(each.precision - each.scale for each in exact) + scale, scale))


def _literal(tree: exp.Literal) -> str:
    if tree.is_string:
        return "string"
    whole, point, fraction = tree.name.partition(".")
    if "e" in tree.name.lower():
        return "double"
    if not point:
        return "int" if abs(int(whole)) < 2**31 else "bigint"
    digits = len((whole.lstrip("0") + fraction).lstrip("0"))
    return str(Decimal(max(digits, len(fraction), 1), len(fraction)))


def _arithmetic(tree: exp.Binary, of: Callable[[exp.Expr], str]) -> str:
    left, right = of(tree.left), of(tree.right)
    if "timestamp_ntz" in (left, right):
        return "timestamp_ntz"
    if "date" in (left, right):
        return "date"
    if any(each in FLOATS or each == "string" for each in (left, right)):
        return "double"
    if left in INTEGERS and right in INTEGERS:
        return "double" if isinstance(tree, exp.Div) else max(left, right, key=INTEGERS.index)
    one, other = _operand(tree.left, left), _operand(tree.right, right)
    if one is None or other is None:
        return UNKNOWN
    return str(_decimal_arithmetic(tree, one, other))


def _decimal_arithmetic(tree: exp.Binary, one: Decimal, other: Decimal) -> Decimal:
    match tree:
        case exp.Mul():
            return _adjusted(one.precision + other.precision + 1, one.scale + other.scale)
        case exp.Div():
            scale = max(SCALE_KEPT, one.scale + other.precision + 1)
            return _adjusted(one.precision - one.scale + other.scale + scale, scale)
        case exp.Mod():
            scale = max(one.scale, other.scale)
            return _adjusted(min(one.precision - one.scale, other.precision - other.scale) + scale, scale)
        case _:
            scale = max(one.scale, other.scale)
            return _adjusted(max(one.precision - one.scale, other.precision - other.scale) + scale + 1, scale)


def _operand(tree: exp.Expr, type_: str) -> Decimal | None:
    """An integer literal beside a decimal has only the digits that are written."""
    literal = tree.unnest()
    if isinstance(literal, exp.Literal) and type_ in INTEGERS:
        return Decimal(len(literal.name), 0)
    return _as_decimal(type_)


def _as_decimal(type_: str) -> Decimal | None:
    return Decimal(INTEGER_DIGITS[type_], 0) if type_ in INTEGERS else parse_decimal(type_)


def _bounded(precision: int, scale: int) -> Decimal:
    return Decimal(min(precision, PRECISION_MAX), min(scale, PRECISION_MAX))


def _adjusted(precision: int, scale: int) -> Decimal:
    """What is too wide gives up digits after the point, but not the last six."""
    if precision <= PRECISION_MAX:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(PRECISION_MAX, max(PRECISION_MAX - whole, min(scale, SCALE_KEPT)))


#: what the functions of windows, groups and arrays give, whatever they are given
FIXED_TYPES: dict[str, tuple[type[exp.Expr], ...]] = {
    "int": (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Hour, exp.ArraySize, exp.DayOfWeek, exp.Quarter),
    "bigint": (exp.CountIf, exp.GroupingId),
    "tinyint": (exp.Grouping,),
    "double": (
        exp.PercentRank, exp.CumeDist, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
        exp.CovarPop, exp.CovarSamp, exp.Corr,
    ),
    "boolean": (exp.LogicalAnd, exp.LogicalOr, exp.NullSafeNEQ),
    "string": (exp.GroupConcat, exp.ArrayToString, exp.Pad, exp.Reverse, exp.ConcatWs),
    "date": (exp.LastDay,),
    "array<int>": (exp.GenerateSeries,),
    "array<string>": (exp.RegexpSplit, exp.Split),
}  # fmt: skip
FIXED = {kind: name for name, kinds in FIXED_TYPES.items() for kind in kinds}
#: functions that the parser leaves as they are written
CALLED = {"instr": "int", "to_date": "date", "date_sub": "date"}
#: what gives a value of its argument
PASSED_ON = (
    exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup | exp.Lag | exp.Lead
    | exp.FirstValue | exp.LastValue | exp.NthValue | exp.First | exp.Last | exp.ArgMax | exp.ArgMin | exp.Order
    | exp.ArraySort | exp.AnyValue
)  # fmt: skip


def _of_functions(tree: exp.Expr, of: Callable[[exp.Expr], str]) -> str:
    """Functions of windows, groups, arrays and structs."""
    fixed = FIXED.get(type(tree))
    if fixed is not None:
        return fixed
    match tree:
        case exp.Anonymous():
            return CALLED.get(tree.name.lower(), UNKNOWN)
        case exp.Distinct():
            return of(tree.expressions[0])
        case exp.Array():
            return f"array<{widest([of(each) for each in tree.expressions])}>"
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return f"array<{of(tree.this)}>"
        case exp.Bracket() | exp.Explode() | exp.Unnest():
            return of(tree.this).removeprefix("array<").removesuffix(">")
        case exp.Dot(this=exp.Struct() as struct):
            fields = [each for each in struct.expressions if each.this.name.casefold() == tree.name.casefold()]
            return of(fields[0].expression) if fields else UNKNOWN
        case _ if isinstance(tree, PASSED_ON):
            return of(tree.this)
        case _:
            return UNKNOWN
