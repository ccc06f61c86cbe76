"""Spark's result types, spelled out for the expressions that tests use.

DuckDB runs the tests' queries but types them its own way (its SUM of integers is 128 bits wide, its decimals divide
to doubles). The algebra only ever sees Spark's types, so a test without Spark has to know them. That this file tells
the truth is itself tested, on Spark, for every question that the tests ask of it and for a long list of expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.types import Decimal, parse_decimal
from engine.records import Column
from tests.support.spark_functions import ANY_OF, FIXED, SAME, function_name

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
#: the types that a query puts out, where the columns around it can be seen
Queries = Callable[[exp.Query], list[str]]
#: the type of a part of an expression
Of = Callable[[exp.Expr], str]

TRUTHS = (
    exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NullSafeEQ | exp.NullSafeNEQ | exp.And | exp.Or
    | exp.Not | exp.Is | exp.In | exp.Between | exp.Like | exp.ILike | exp.RegexpLike | exp.Boolean | exp.Exists
    | exp.Any | exp.All
)  # fmt: skip
#: functions and signs over which the type is that of the first argument
WRAPPERS = exp.Alias | exp.Paren | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window | exp.WithinGroup

#: give a struct of two moments
TIME_WINDOWS = ("window", "session_window")

#: units of an interval that a date is moved by without becoming a moment
WHOLE_DAYS = frozenset(("YEAR", "MONTH", "WEEK", "DAY", "QUARTER"))


def type_of(tree: exp.Expr, column: Lookup, queries: Queries | None = None) -> str:
    """The type that Spark gives an expression."""
    return _Typing(column, queries or (lambda query: [UNKNOWN])).of(tree)


@dataclass(frozen=True)
class _Typing:
    column: Lookup
    queries: Queries

    def of(self, tree: exp.Expr) -> str:
        match tree:
            case exp.Column() if tree.args.get("db") is not None:
                return field_of(self.column(exp.column(tree.args["table"].copy(), tree.args["db"].copy())), tree.name)
            case exp.Column():
                return self.column(tree)
            case exp.Literal():
                return _literal(tree)
            case exp.Null():
                return "void"
            case exp.Neg(this=inner):
                return "double" if self.of(inner) == "string" else self.of(inner)
            case exp.Subquery() | exp.Query():
                return self.queries(tree.unnest() if isinstance(tree, exp.Subquery) else tree)[0]
            case exp.Interval():
                return _interval(tree)
            case exp.PercentileCont() | exp.PercentileDisc():
                return "double"
            case exp.Cast():  # what TRY_CAST is, too
                return _cast(tree)
            case exp.Date() | exp.TsOrDsToDate():
                return "date"
            case exp.Distinct() | exp.Ordered():
                return self.of(tree.expressions[0] if tree.expressions else tree.this)
            case exp.Case():
                values = [branch.args["true"] for branch in tree.args["ifs"]] + [tree.args.get("default")]
                return self.widest_of(values)
            case exp.If():
                return self.widest_of([tree.args["true"], tree.args.get("false")])
            case exp.Nvl2():
                return self.widest_of([tree.args["true"], tree.args.get("false")])
            case exp.IntDiv():
                return "bigint"
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self.arithmetic(tree)
            case exp.SafeAdd() | exp.SafeSubtract() | exp.SafeMultiply() | exp.SafeDivide():
                return self.arithmetic(_UNSAFE[type(tree)](this=tree.this.copy(), expression=tree.expression.copy()))
            case exp.BitwiseAnd() | exp.BitwiseOr() | exp.BitwiseXor():
                return widest([self.of(tree.this), self.of(tree.expression)])
            case exp.BitwiseLeftShift() | exp.BitwiseRightShift() | exp.BitwiseNot():
                return self.of(tree.this)
            case exp.DPipe():
                return "string"
            case exp.GenerateSeries():
                return f"array<{self.of(tree.args['start'])}>"
            case exp.Bracket() | exp.Explode() | exp.Unnest():
                return self.of(tree.this).removeprefix("array<").removesuffix(">")
            case exp.Struct(expressions=fields) if all(isinstance(each, exp.PropertyEQ) for each in fields):
                made = (f"{each.this.name}:{self.of(each.expression)}" for each in fields)
                return f"struct<{','.join(made)}>"
            case exp.VarMap():
                keys, values = (self.widest_of(tree.args[part].expressions) for part in ("keys", "values"))
                return f"map<{keys},{values}>"
            case exp.Dot(this=struct):
                return field_of(self.of(struct), tree.name)
            case _ if isinstance(tree, TRUTHS):
                return "boolean"
            case _ if isinstance(tree, WRAPPERS):
                return self.of(tree.this)
            case exp.Func():
                return self.function(tree)
            case _:
                return UNKNOWN

    def function(self, tree: exp.Func) -> str:
        name = function_name(tree)
        if isinstance(tree, exp.TimestampAdd):
            return "timestamp_ntz" if self.of(tree.this) == "timestamp_ntz" else "timestamp"
        if isinstance(tree, exp.DateDiff) and tree.args.get("unit") is not None:
            return "bigint"
        if name in FIXED:
            return FIXED[name]
        arguments = tree.expressions if isinstance(tree, exp.Anonymous) else [tree.this, *tree.expressions]
        types = [self.of(each) for each in arguments if isinstance(each, exp.Expr)]
        if not types:
            return UNKNOWN
        if isinstance(tree, exp.ArgMax | exp.ArgMin) and tree.args.get("count") is not None:
            return f"array<{types[0]}>"
        if name in SAME:
            return types[0]
        if name in ANY_OF:
            return widest(types)
        match name:
            case _ if name in TIME_WINDOWS:
                moment = field_of(types[0], "end") if types[0].startswith("struct<") else types[0]
                moment = moment if moment == "timestamp_ntz" else "timestamp"
                return f"struct<start:{moment},end:{moment}>"
            case "zeroifnull":
                return widest([types[0], "int"])
            case "sum" | "try_sum":
                return sum_type(types[0])
            case "avg" | "mean" | "try_avg" | "regr_avgy":
                return avg_type(types[0])
            case "regr_avgx":
                return avg_type(self.of(tree.args["expression"]))
            case "abs" | "negative" | "positive":
                return "double" if types[0] == "string" else types[0]
            case "round" | "bround":
                digits = tree.args.get("decimals") or (arguments[1] if len(arguments) > 1 else None)
                return _rounded(types[0], _number(digits))
            case "ceil" | "ceiling" | "floor":
                digits = tree.args.get("decimals")
                return _rounded(types[0], _number(digits)) if digits is not None else _whole(types[0])
            case "pmod" | "mod":
                return self.arithmetic(exp.Mod(this=arguments[0].copy(), expression=arguments[1].copy()))
            case "array_agg" | "array_unique_agg" | "collect_list" | "collect_set":
                return f"array<{types[0]}>"
            case "array":
                return f"array<{widest(types)}>"
            case "extract" | "date_part":
                seconds = arguments[0].name.upper() in ("SECOND", "SECONDS", "S")
                return "decimal(8,6)" if seconds else "int"
            case "concat" if types[0].startswith("array<"):
                return types[0]
            case "concat":
                return "string"
            case "raise_error":
                return "void"
            case _:
                return UNKNOWN

    def widest_of(self, parts: list[exp.Expr | None]) -> str:
        return widest([self.of(part) for part in parts if part is not None])

    def arithmetic(self, tree: exp.Binary) -> str:
        left, right = self.of(tree.left), self.of(tree.right)
        moved = _moved(tree, left, right)
        if moved is not None:
            return moved
        if "void" in (left, right):
            # NULL takes the type of what it stands beside.
            left = right = right if left == "void" else left
        if "string" in (left, right):
            # Strings become the kind of number that stands beside them.
            other = right if left == "string" else left
            left = right = "bigint" if other in INTEGERS and not isinstance(tree, exp.Div) else "double"
        if "double" in (left, right):
            return "double"
        if "float" in (left, right):
            only_floats = left == right and not isinstance(tree, exp.Div)
            return "float" if only_floats else "double"
        if left in INTEGERS and right in INTEGERS:
            return "double" if isinstance(tree, exp.Div) else max(left, right, key=INTEGERS.index)
        one, other = _operand(tree.left, left), _operand(tree.right, right)
        if one is None or other is None:
            return UNKNOWN
        return str(_decimal_arithmetic(tree, one, other))


_UNSAFE: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.SafeAdd: exp.Add,
    exp.SafeSubtract: exp.Sub,
    exp.SafeMultiply: exp.Mul,
    exp.SafeDivide: exp.Div,
}


def sum_type(argument: str) -> str:
    decimal = parse_decimal(argument)
    if decimal is not None:
        return str(_bounded(decimal.precision + 10, decimal.scale))
    return "bigint" if argument in INTEGERS else "double"


def avg_type(argument: str) -> str:
    decimal = parse_decimal(argument)
    return "double" if decimal is None else str(_bounded(decimal.precision + 4, decimal.scale + 4))


def widest(types: list[str]) -> str:
    """The type that all branches of a CASE or COALESCE, and the columns of a UNION, are cast to."""
    known = [each for each in types if each != "void"]
    if not known:
        return "void"
    if len(set(known)) == 1:
        return known[0]
    if UNKNOWN in known:
        return UNKNOWN
    if set(known) == {"date", "timestamp"}:
        return "timestamp"
    if "string" in known:
        # A string is read as what stands beside it; whole numbers and decimals in their widest form.
        others = {_beside_a_string(each) for each in known if each != "string"}
        return others.pop() if len(others) == 1 else UNKNOWN
    if all(each in INTEGERS for each in known):
        return max(known, key=INTEGERS.index)
    if any(each in FLOATS for each in known):
        return "double" if all(each in FLOATS or _as_decimal(each) for each in known) else UNKNOWN
    decimals = [_as_decimal(each) for each in known]
    exact = [each for each in decimals if each is not None]
    if len(exact) < len(known):
        return UNKNOWN
    scale = max(each.scale for each in exact)
    return str(_bounded(max(each.precision - each.scale for each in exact) + scale, scale))


def _beside_a_string(type_: str) -> str:
    if type_ in INTEGERS:
        return "bigint"
    return "double" if type_ == "float" or parse_decimal(type_) else type_


def fields_of(struct: str) -> list[Column]:
    if not struct.startswith("struct<"):
        return []
    fields = exp.DataType.build(struct, dialect="spark").expressions
    return [Column(each.name, _spelled(each.args["kind"])) for each in fields]


def field_of(struct: str, name: str) -> str:
    """The type of a field of a struct."""
    return next((each.type for each in fields_of(struct) if each.name.casefold() == name.casefold()), UNKNOWN)


def _literal(tree: exp.Literal) -> str:
    if tree.is_string:
        return "string"
    whole, point, fraction = tree.name.partition(".")
    if "e" in tree.name.lower():
        return "double"
    if not point:
        if abs(int(whole)) < 2**31:
            return "int"
        return "bigint" if abs(int(whole)) < 2**63 else str(Decimal(len(whole), 0))
    digits = len((whole.lstrip("0") + fraction).lstrip("0"))
    return str(Decimal(max(digits, len(fraction), 1), len(fraction)))


#: other words for the same type
SPELLED = {"null": "void", "decimal": "decimal(10,0)", "timestamp_ltz": "timestamp", "timestampltz": "timestamp"}


def _cast(tree: exp.Cast) -> str:
    return _spelled(tree.to)


def _spelled(type_: exp.DataType) -> str:
    name = type_.sql("spark").lower().replace(", ", ",").replace(": ", ":")
    if name.startswith("decimal(") and "," not in name:
        return name.replace(")", ",0)")
    return "string" if name.startswith(("varchar", "char")) else SPELLED.get(name, name)


def _interval(tree: exp.Interval) -> str:
    """Only as much as moves dates; a result of this type is not asked for."""
    return "interval days" if _unit(tree) in WHOLE_DAYS else "interval"


def _unit(tree: exp.Interval) -> str:
    unit = tree.args.get("unit")
    return unit.name.upper().removesuffix("S") if unit is not None else ""


def _moved(tree: exp.Binary, left: str, right: str) -> str | None:
    """Dates and moments, moved or subtracted; None for anything else."""
    kinds = {left, right}
    if isinstance(tree, exp.Sub) and kinds <= {"date", "timestamp"} and kinds:
        return "interval day" if kinds == {"date"} else "interval day to second"
    for moment in ("timestamp", "timestamp_ntz"):
        if moment in kinds and kinds & {"interval", "interval days"}:
            return moment
    if "date" in kinds:
        return "timestamp" if "interval" in kinds else "date"
    return None


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
    if isinstance(literal, exp.Neg):
        literal = literal.this
    if isinstance(literal, exp.Literal) and type_ in INTEGERS:
        return Decimal(len(literal.name), 0)
    return _as_decimal(type_)


def _rounded(type_: str, digits: int) -> str:
    """ROUND may carry into one more digit before the point."""
    decimal = parse_decimal(type_)
    if decimal is None:
        return "double" if type_ == "string" else type_
    whole = decimal.precision - decimal.scale + 1
    if digits < 0:
        return str(_bounded(max(whole, -digits + 1), 0))
    scale = min(decimal.scale, digits)
    return str(_bounded(whole + scale, scale))


def _whole(type_: str) -> str:
    """CEIL and FLOOR without digits."""
    decimal = parse_decimal(type_)
    return "bigint" if decimal is None else str(_bounded(decimal.precision - decimal.scale + 1, 0))


def _number(tree: exp.Expr | None) -> int:
    if tree is None:
        return 0
    return -int(tree.this.name) if isinstance(tree, exp.Neg) else int(tree.name)


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
