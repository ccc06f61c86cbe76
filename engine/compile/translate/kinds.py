"""What kind of value an expression has, as far as its text and the sources' columns tell.

Many differences between dialects hang on it (7 / 2 is 3 in PostgreSQL, if both are integers), and Spark cannot be
asked before there is a text that it understands. A kind is told only where every column of that name has it, so a
wrong answer is impossible and no answer is frequent enough to be refused politely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from sqlglot import exp

from engine.records import Column, SqlDialect


class Kind(StrEnum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    #: a number that is of one of these there and of another one in Spark: good for computing, not for rounding
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OTHER = "other"
    #: NULL, which goes with everything
    NOTHING = "nothing"


NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.NUMBER)

_T = exp.DataType.Type
_TYPES: dict[object, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT), Kind.INTEGER),
    **dict.fromkeys((_T.FLOAT, _T.DOUBLE), Kind.DOUBLE),
    **dict.fromkeys((_T.TEXT, _T.VARCHAR), Kind.TEXT),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPNTZ, _T.TIMESTAMPLTZ), Kind.TIMESTAMP),
    _T.DECIMAL: Kind.DECIMAL,
    _T.DATE: Kind.DATE,
    _T.BOOLEAN: Kind.BOOLEAN,
    _T.ARRAY: Kind.ARRAY,
}

_INTEGERS = (
    exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Length, exp.StrPosition,
    exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeek, exp.DayOfMonth, exp.DayOfYear, exp.Hour, exp.Minute,
    exp.IntDiv, exp.DateDiff, exp.ArraySize, exp.Ascii, exp.DatetimeDiff,
)  # fmt: skip
_DOUBLES = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.Ln, exp.Log, exp.Exp, exp.Sqrt, exp.Pow, exp.PercentRank, exp.CumeDist, exp.Median, exp.PercentileCont,
)  # fmt: skip
_TEXTS = (
    exp.Concat, exp.DPipe, exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Replace, exp.Left, exp.Right, exp.Pad,
    exp.Repeat, exp.Reverse, exp.SplitPart, exp.GroupConcat, exp.Chr, exp.MD5,
)  # fmt: skip
_BOOLEANS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.LogicalAnd, exp.LogicalOr)
#: of the kind of what they are about
_ALIKE = (
    exp.Paren, exp.Neg, exp.Min, exp.Max, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Abs,
    exp.Window, exp.Filter, exp.WithinGroup, exp.Alias, exp.IgnoreNulls, exp.RespectNulls, exp.Distinct, exp.Ordered,
    exp.ArgMax, exp.ArgMin, exp.Mode, exp.PercentileDisc,
)  # fmt: skip


def kind_of_type(tree: exp.DataType) -> Kind:
    return _TYPES.get(tree.this, Kind.OTHER)


def decoded(node: exp.DecodeCase) -> list[exp.Expr]:
    """What DECODE(value, search, result, …, otherwise) may give."""
    results = node.expressions[2::2]
    return results if len(node.expressions) % 2 else [*results, node.expressions[-1]]


def agreed(kinds: Iterable[Kind | None]) -> Kind | None:
    """One kind for all, or none. NULL has no say."""
    found = set(kinds)
    some = found - {Kind.NOTHING}
    if not some:
        return Kind.NOTHING if found else None
    return some.pop() if len(some) == 1 else None


class Kinds:
    def __init__(self, tree: exp.Expr, relations: Mapping[str, tuple[Column, ...]], dialect: SqlDialect) -> None:
        self._dialect = dialect
        #: what a name may stand for: columns of the sources, and outputs of any SELECT of the query
        self._columns: dict[str, set[Kind | None]] = {}
        self._outputs: dict[str, list[exp.Expr]] = {}
        self._asking: set[str] = set()
        #: names of columns that are BIGINT somewhere
        self._wide: set[str] = set()
        self._blind = False
        known = {name.casefold(): name for name in relations}
        for table in tree.find_all(exp.Table):
            for column in relations[known[table.name.casefold()]] if table.name.casefold() in known else ():
                parsed = exp.DataType.build(column.type, dialect="spark")
                name = column.name.casefold()
                self._columns.setdefault(name, set()).add(kind_of_type(parsed))
                if parsed.this is _T.BIGINT:
                    self._wide.add(name)
        for alias in tree.find_all(exp.Alias):
            self._outputs.setdefault(alias.alias.casefold(), []).append(alias.this)
        for renamed in tree.find_all(exp.TableAlias):
            named = [each.name.casefold() for each in renamed.args.get("columns") or ()]
            queries = _members(renamed.parent.this) if isinstance(renamed.parent, exp.CTE) else []
            for place, name in enumerate(named):
                told = [each.expressions[place].unalias() for each in queries if _tells(each, len(named))]
                if queries and len(told) == len(queries):
                    self._outputs.setdefault(name, []).extend(told)
                else:
                    self._columns.setdefault(name, set()).add(None)
        for both in tree.find_all(exp.SetOperation):
            self._merge(both)
        #: by identity, for equal parts may stand for different things; the nodes stay alive beside their kinds
        self._found = {id(node): (node, self._of(node)) for node in tree.walk()}

    def _merge(self, both: exp.SetOperation) -> None:
        """An output of a union is what each of its members puts there, under the name that the first one gives it."""
        members = [each for each in _members(both) if isinstance(each, exp.Select)]
        for place, first in enumerate(members[0].expressions if members else ()):
            for member in members:
                name = first.alias_or_name.casefold()
                if any(each.is_star for each in member.expressions) or len(member.expressions) <= place:
                    self._blind = True  # nobody knows which column stands where
                else:
                    self._outputs.setdefault(name, []).append(member.expressions[place].unalias())

    def of(self, node: exp.Expr) -> Kind | None:
        """Of a part of the tree as it was written, or of what has taken its place."""
        known = self._found.get(id(node))
        return known[1] if known is not None else self._of(node)

    def remember(self, node: exp.Expr, kind: Kind | None) -> None:
        self._found[id(node)] = (node, kind)

    def _of(self, node: exp.Expr) -> Kind | None:
        match node:
            case exp.Column():
                return self._named(node.name.casefold())
            case exp.Literal():
                return _literal(node)
            case exp.Null():
                return Kind.NOTHING
            case exp.Cast():
                return kind_of_type(node.to)
            case exp.TsOrDsToDate() | exp.Date() | exp.LastDay() | exp.CurrentDate() | exp.DateFromParts():
                return Kind.DATE
            case exp.DateAdd() | exp.DateSub():
                return self._of(node.this)
            case exp.TimestampTrunc() | exp.DateTrunc() | exp.CurrentTimestamp():
                return Kind.TIMESTAMP
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
                return self._arithmetic(node)
            case exp.Sum():
                return self._sum(node)
            case exp.Avg():
                return Kind.DOUBLE if self._of(node.this) is Kind.DOUBLE else Kind.NUMBER
            case exp.Round() | exp.Ceil() | exp.Floor():
                kind = self._of(node.this)
                is_whole = kind is Kind.INTEGER and self._dialect is not SqlDialect.SNOWFLAKE
                return Kind.NUMBER if is_whole else kind
            case exp.Extract():
                return Kind.NUMBER if self._dialect is SqlDialect.POSTGRES else Kind.INTEGER
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return agreed(self._of(each) for each in (node.this, *node.expressions))
            case exp.Nvl2():
                return agreed(self._of(each) for each in (node.args["true"], node.args["false"]))
            case exp.DecodeCase():
                return agreed(self._of(each) for each in decoded(node))
            case exp.Nullif():
                return self._of(node.this)
            case exp.If():
                return agreed(self._of(each) for each in (node.args["true"], node.args.get("false") or exp.null()))
            case exp.Case():
                values = [branch.args["true"] for branch in node.args["ifs"]]
                return agreed(self._of(each) for each in (*values, node.args.get("default") or exp.null()))
            case exp.Subquery():
                return self._of(node.this) if isinstance(node.this, exp.Select) else None
            case exp.Select():
                return self._of(node.expressions[0]) if len(node.expressions) == 1 else None
            case exp.Array():
                return Kind.ARRAY
        return self._by_class(node)

    def _by_class(self, node: exp.Expr) -> Kind | None:
        for classes, kind in (
            (_INTEGERS, Kind.INTEGER),
            (_DOUBLES, Kind.DOUBLE if self._dialect is SqlDialect.DUCKDB else Kind.NUMBER),
            (_TEXTS, Kind.TEXT),
            (_BOOLEANS, Kind.BOOLEAN),
        ):
            if isinstance(node, classes):
                return kind
        if isinstance(node, _ALIKE) and isinstance(node.this, exp.Expr):
            return self._of(node.this)
        if isinstance(node, exp.Distinct) and len(node.expressions) == 1:
            return self._of(node.expressions[0])
        return None

    def _named(self, name: str) -> Kind | None:
        if self._blind:
            return None
        if name in self._asking:
            return Kind.NOTHING  # `a AS a`: the other one decides
        self._asking.add(name)
        outputs = [self._of(each) for each in self._outputs.get(name, ())]
        self._asking.discard(name)
        found = agreed((*self._columns.get(name, ()), *outputs))
        return found if found is not Kind.NOTHING else None

    def _sum(self, node: exp.Sum) -> Kind | None:
        """PostgreSQL's sum of BIGINT has digits behind the point when it is divided, that of INT has not."""
        kind = self._of(node.this)
        if kind is not Kind.INTEGER or self._dialect is not SqlDialect.POSTGRES:
            return kind
        narrow = isinstance(node.this, exp.Column) and not {node.this.name.casefold()} & (
            self._wide | self._outputs.keys()
        )
        return Kind.INTEGER if narrow else None

    def _arithmetic(self, node: exp.Expr) -> Kind | None:
        left, right = self._of(node.this), self._of(node.expression)
        if isinstance(node.this, exp.Interval) or isinstance(node.expression, exp.Interval):
            moved = {left, right} & {Kind.DATE, Kind.TIMESTAMP}
            return Kind.TIMESTAMP if moved and self._dialect is not SqlDialect.SNOWFLAKE else None
        if Kind.DATE in (left, right) and isinstance(node, exp.Add | exp.Sub):
            if left is right:
                return Kind.INTEGER
            return Kind.DATE if Kind.INTEGER in (left, right) else None
        left, right = (right, right) if left is Kind.NOTHING else (left, left if right is Kind.NOTHING else right)
        if left not in NUMBERS or right not in NUMBERS:
            return None
        if isinstance(node, exp.Div):
            return self._quotient(left, right)
        for kind in (Kind.NUMBER, Kind.DOUBLE, Kind.DECIMAL):
            if kind in (left, right):
                return kind
        return Kind.INTEGER

    def _quotient(self, left: Kind | None, right: Kind | None) -> Kind:
        match self._dialect:
            case SqlDialect.DUCKDB:
                return Kind.DOUBLE
            case SqlDialect.POSTGRES if left is right is Kind.INTEGER:
                return Kind.INTEGER
            case _:
                return Kind.DOUBLE if left is right is Kind.DOUBLE else Kind.NUMBER


def _members(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    if isinstance(tree, exp.SetOperation):
        return [*_members(tree.this), *_members(tree.expression)]
    return [tree]


def _tells(query: exp.Expr, columns: int) -> bool:
    """Does it say which of its outputs stands where?"""
    return (
        isinstance(query, exp.Select)
        and len(query.expressions) == columns
        and not any(each.is_star for each in query.expressions)
    )


def _literal(node: exp.Literal) -> Kind:
    if node.is_string:
        return Kind.TEXT
    if node.is_int:
        return Kind.INTEGER
    return Kind.DOUBLE if "e" in node.name.lower() else Kind.DECIMAL
