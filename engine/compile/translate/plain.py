"""What means the same in every dialect that is read here, once sqlglot has written it for Spark.

A node of the syntax tree that is in neither this list nor in `rules` is refused: nobody has looked at it.
"""

from __future__ import annotations

from sqlglot import exp

#: clauses, names, conditions, arithmetic; NULL in each of them does what the SQL standard says
_PLAIN = (
    # queries
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.With, exp.CTE, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.Values, exp.Table, exp.TableAlias,
    exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Qualify, exp.Distinct, exp.Exists, exp.Any, exp.All, exp.In,
    exp.Cube, exp.Rollup, exp.GroupingSets, exp.Grouping, exp.Lateral, exp.Unnest, exp.Window, exp.WindowSpec,
    exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Fetch, exp.Tuple, exp.Semicolon,
    # conditions
    exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Like, exp.ILike, exp.Escape, exp.Paren, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
    exp.EqualNull, exp.Nvl2, exp.DecodeCase,
    # values
    exp.Literal, exp.Boolean, exp.Null, exp.DataType, exp.DataTypeParam, exp.Cast, exp.Var, exp.Interval, exp.National,
    # arithmetic
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow, exp.Abs, exp.Sign, exp.Ceil, exp.Floor,
    exp.Round, exp.Trunc, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Greatest, exp.Least,
    # text
    exp.Concat, exp.DPipe, exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring, exp.Left, exp.Right, exp.Replace,
    exp.StrPosition, exp.SplitPart, exp.Reverse, exp.Repeat, exp.Pad, exp.StartsWith, exp.EndsWith, exp.Contains,
    exp.MD5,
    # dates
    exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfYear, exp.DayOfWeek, exp.Hour,
    exp.Minute, exp.TimestampTrunc, exp.DateTrunc, exp.DateAdd, exp.DateSub, exp.DateDiff, exp.LastDay,
    exp.DateFromParts, exp.TsOrDsToDate, exp.Date, exp.CurrentDate, exp.CurrentTimestamp,
    # lists
    exp.Bracket, exp.Explode, exp.Array, exp.ArrayAgg, exp.GenerateSeries, exp.Kwarg, exp.ArrayContains,
    exp.ExplodingGenerateSeries, exp.LimitOptions,
    # aggregates: none of them looks at NULL, and over nothing they are NULL, or 0 where they count
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.LogicalAnd, exp.LogicalOr, exp.GroupConcat, exp.Median,
    exp.PercentileCont, exp.PercentileDisc, exp.ArgMax, exp.ArgMin, exp.AnyValue,
    # windows
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.NthValue,
)  # fmt: skip
PLAIN = frozenset(_PLAIN)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: arguments of clauses that may be there; any other one that is set is refused, for sqlglot forgets some silently
CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: _words(
        "expressions from_ joins laterals where group having qualify windows order limit offset distinct with_"
    ),
    exp.Table: _words("this alias db catalog joins"),
    exp.Join: _words("this on using side kind method"),
    exp.Subquery: _words("this alias with_ order limit offset joins"),
    exp.Group: _words("expressions cube rollup grouping_sets all"),
    exp.Union: _words("this expression distinct with_ order limit offset"),
    exp.Except: _words("this expression distinct with_ order limit offset"),
    exp.Intersect: _words("this expression distinct with_ order limit offset"),
    exp.Star: _words("except_"),
    exp.Lateral: _words("this alias outer view"),
    exp.Unnest: _words("expressions alias"),
    exp.CTE: _words("this alias materialized"),
    exp.With: _words("expressions recursive"),
    exp.Limit: _words("expression"),
    exp.WindowSpec: _words("kind start start_side end end_side"),
}
