"""Dates: moved, subtracted, taken apart. See `engine.compile.translate`."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.positions import placed_as
from engine.compile.translate.kinds import NUMBERS, Kind
from engine.compile.translate.translating import SNOWFLAKE, Rule, Translating, number


def _sub(context: Translating, node: exp.Sub) -> exp.Expr:
    """Dates differ by a number of days there, and by an interval in Spark."""
    left, right = context.kind(node.this), context.kind(node.expression)
    if left is right is Kind.DATE:
        return exp.Anonymous(this="DATEDIFF", expressions=[node.this.copy().unnest(), node.expression.copy().unnest()])
    return _moved(context, node)


def _moved(context: Translating, node: exp.Add | exp.Sub) -> exp.Expr:
    left, right = context.kind(node.this), context.kind(node.expression)
    if isinstance(node.this, exp.Interval) or isinstance(node.expression, exp.Interval):
        if not {left, right} & {Kind.DATE, Kind.TIMESTAMP}:
            raise context.refused(node, "what is moved by an interval is not known to be a date or a timestamp")
        return node
    if Kind.DATE in (left, right) and {left, right} == {Kind.DATE, Kind.INTEGER}:
        return node
    if not {left, right} <= {*NUMBERS, Kind.NOTHING}:
        raise context.refused(
            node, f"{'-' if isinstance(node, exp.Sub) else '+'} of what is not known to be numbers", "cast both sides"
        )
    return node


def _interval(context: Translating, node: exp.Interval) -> exp.Expr:
    unit = node.args.get("unit")
    is_plain = isinstance(node.this, exp.Literal) and node.this.name.lstrip("-").isdigit()
    if not is_plain or unit is None or unit.name.upper().rstrip("S") not in _MOVING:
        raise context.refused(node, "an INTERVAL other than a number of one unit", "add one after the other")
    return node


_MOVING = frozenset(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])
_PARTS = frozenset(["YEAR", "QUARTER", "MONTH", "DAY", "DOY", "HOUR", "MINUTE", "DOW"])
_TRUNCATED = frozenset(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])


def spell_parts(tree: exp.Expr) -> None:
    """DATE_PART('dow', x), which sqlglot does not know in every dialect, is EXTRACT(DOW FROM x)."""
    for call in list(tree.find_all(exp.Anonymous)):
        part = call.expressions[0] if call.name.upper() == "DATE_PART" and len(call.expressions) == 2 else None
        if isinstance(part, exp.Literal) and part.is_string:
            made = exp.Extract(this=exp.var(part.name.upper()), expression=call.expressions[1].copy())
            call.replace(placed_as(made, call))


def _extract(context: Translating, node: exp.Extract) -> exp.Expr:
    part = node.this.name.upper()
    if part not in _PARTS:
        raise context.refused(node, f"{part} of a date is counted otherwise in Spark, or not known there")
    return _from_sunday(node) if part == "DOW" else node


def _day_of_week(context: Translating, node: exp.DayOfWeek) -> exp.Expr:
    return _from_sunday(node)


def _from_sunday(node: exp.Expr) -> exp.Expr:
    """Sunday is 0 there and 1 in Spark."""
    day = node.expression if isinstance(node, exp.Extract) else node.this
    return exp.paren(exp.Sub(this=exp.Anonymous(this="DAYOFWEEK", expressions=[day.copy()]), expression=number(1)))


def _truncated(context: Translating, node: exp.TimestampTrunc | exp.DateTrunc) -> exp.Expr:
    """Spark gives a timestamp, of a date too; Snowflake a date."""
    unit, kind = node.args["unit"].name.upper(), context.kind(node.this)
    if unit not in _TRUNCATED or kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise context.refused(node, "DATE_TRUNC to this unit, or of what is not known to be a date or a timestamp")
    made = exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(unit), node.this.copy()])
    if context.dialect is SNOWFLAKE and kind is Kind.DATE:
        return exp.Cast(this=made, to=exp.DataType.build("date"))
    return made


def _date_add(context: Translating, node: exp.DateAdd | exp.DateSub) -> exp.Expr:
    unit = (node.args.get("unit") or exp.var("DAY")).name.upper().rstrip("S")
    if context.kind(node.this) is not Kind.DATE or context.kind(node.expression) is not Kind.INTEGER:
        raise context.refused(node, "DATEADD other than of a date and a whole number")
    by = node.expression.copy()
    if isinstance(node, exp.DateSub):
        by = exp.Neg(this=exp.paren(by))
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
    if unit in months:
        by = by if months[unit] == 1 else exp.Mul(this=exp.paren(by), expression=number(months[unit]))
        return exp.Anonymous(this="ADD_MONTHS", expressions=[node.this.copy(), _as_int(by)])
    days = {"WEEK": 7, "DAY": 1}
    if unit not in days:
        raise context.refused(node, f"DATEADD of {unit} to a date")
    by = by if days[unit] == 1 else exp.Mul(this=exp.paren(by), expression=number(days[unit]))
    return exp.Anonymous(this="DATE_ADD", expressions=[node.this.copy(), _as_int(by)])


def _as_int(value: exp.Expr) -> exp.Expr:
    return value if isinstance(value, exp.Literal) else exp.Cast(this=value, to=exp.DataType.build("int"))


def _date_diff(context: Translating, node: exp.DateDiff) -> exp.Expr:
    """How many boundaries lie between two dates; Spark counts whole units."""
    unit = (node.args.get("unit") or exp.var("DAY")).name.upper().rstrip("S")
    if {context.kind(node.this), context.kind(node.expression)} - {Kind.DATE, Kind.TIMESTAMP}:
        raise context.refused(node, "DATEDIFF of what is not known to be dates or timestamps")
    if unit in ("HOUR", "MINUTE", "SECOND"):
        return _clock_diff(node, unit)
    ends = [exp.Cast(this=each.copy(), to=exp.DataType.build("date")) for each in (node.this, node.expression)]

    def counted(end: exp.Expr) -> exp.Expr:
        year = exp.Anonymous(this="YEAR", expressions=[end.copy()])
        if unit == "YEAR":
            return year
        part = exp.Anonymous(this=unit, expressions=[end.copy()])
        per_year = number(12 if unit == "MONTH" else 4)
        return exp.paren(exp.Add(this=exp.Mul(this=year, expression=per_year), expression=part))

    match unit:
        case "DAY":
            return exp.Anonymous(this="DATEDIFF", expressions=ends)
        case "MONTH" | "QUARTER" | "YEAR":
            return exp.paren(exp.Sub(this=counted(ends[0]), expression=counted(ends[1])))
        case _:
            raise context.refused(node, f"DATEDIFF in {unit}s counts otherwise in Spark")


def _clock_diff(node: exp.DateDiff, unit: str) -> exp.Expr:
    """Between two beginnings of hours, whole hours are the boundaries."""
    begins = [
        exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(unit), each.copy()])
        for each in (node.expression, node.this)
    ]
    return exp.Anonymous(this="TIMESTAMPDIFF", expressions=[exp.var(unit), *begins])


RULES: dict[type[exp.Expr], Rule] = {
    exp.Sub: _sub,
    exp.Add: _moved,
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.DayOfWeek: _day_of_week,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateAdd: _date_add,
    exp.DateSub: _date_add,
    exp.DateDiff: _date_diff,
}
