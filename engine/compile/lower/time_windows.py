"""Windows of time: window(at, '10 minutes', '5 minutes') and session_window(at, '5 minutes').

Spark gives each row the windows that its moment falls into, as a struct of two moments. Here both are columns:
computed from the row's moment, in as many rows as there are windows; and of a session, whose end other rows decide, by
functions over the rows of the group in the order of time. Nothing above knows of windows of time any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.nodes import Filter, Output, Project, keep
from engine.algebra.scalars import Scalar, add, cast, col, field, gt, lit, neg, not_null, struct, subtract
from engine.compile import functions
from engine.compile.lower.context import Context, Source
from engine.compile.lower.expressions import over, own, parts_of, resolved
from engine.compile.lower.generators import exploded
from engine.compile.lower.grouping import spelled_key
from engine.compile.lower.windows import windowed
from engine.compile.scope import Scope

_WINDOW, _SESSION, _LAST_MOMENT = "window", "session_window", "window_time"
#: what may speak of the windows: what is evaluated before them may not
_CLAUSES = ("expressions", "group", "having", "qualify", "order", "windows")

_SECOND = 1_000_000
_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": 86400 * _SECOND,
    "week": 7 * 86400 * _SECOND,
}
_LENGTH = re.compile(rf"([+-]?\d+)\s+({'|'.join(_MICROS)})s?", re.IGNORECASE)

_ALL_EARLIER = exp.WindowSpec(
    kind="RANGE", start="UNBOUNDED", start_side="PRECEDING", end=exp.Literal.number(1), end_side="PRECEDING"
)
_ALL_TO_HERE = exp.WindowSpec(kind="RANGE", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")


@dataclass(frozen=True)
class _Bounds:
    """The two moments of the windows that each row is in."""

    source: Source
    start: Scalar
    end: Scalar


def time_windowed(context: Context, select: exp.Select, source: Source) -> tuple[exp.Select, Source]:
    """The rows beside the windows of time that the SELECT asks for, and the SELECT in terms of their columns."""
    if not any(_is(node, _WINDOW, _SESSION, _LAST_MOMENT) for node in _parts(select)):
        return select, source
    select = _with_names_spelled(select, source.scope)
    calls = [node for node in _parts(select) if _is(node, _WINDOW, _SESSION)]
    if not calls:
        return select, source
    if len({_resolved(context, each, source.scope) for each in calls}) > 1:
        raise context.unsupported(calls[1], "a second window of time in one SELECT")
    bounds = (
        _sessions(context, select, source, calls[0]) if _is(calls[0], _SESSION) else _even(context, source, calls[0])
    )
    for call in calls:
        _replace(call, bounds)
    return select, bounds.source


def _resolved(context: Context, call: exp.Expr, scope: Scope) -> tuple[exp.Expr, ...]:
    return exp.Literal.string(functions.name_of(call)), *(resolved(context, each, scope) for each in call.expressions)


# ------------------------------------------------------------------ what stands for them


def _is(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and functions.name_of(node) in names


def _parts(select: exp.Select) -> Iterator[exp.Expr]:
    for name in _CLAUSES:
        clause = select.args.get(name) or ()
        for each in clause if isinstance(clause, list | tuple) else (clause,):
            yield from parts_of(each)


def _with_names_spelled(select: exp.Select, scope: Scope) -> exp.Select:
    """A copy in which the name `window` is the call that it stands for, and window_time(w) is w's last moment."""
    select = select.copy()
    for node in list(_parts(select)):
        if _is(node, _LAST_MOMENT) and len(node.expressions) == 1:
            node.replace(_last_moment(Scalar(node.expressions[0])).tree)
    calls = [node for node in _parts(select) if _is(node, _WINDOW, _SESSION)]
    by_name = {functions.name_of(call): call.copy() for call in calls}
    for node in list(_parts(select)):
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            continue
        first, *fields = (part.name for part in node.parts)
        call = by_name.get(first.lower())
        if call is None or scope.has_table(first) or scope.find(first, None):
            continue
        value = Scalar(call.copy())
        for name in fields:
            value = field(value, name)
        node.replace(value.tree)
    return select


def _replace(call: exp.Expr, bounds: _Bounds) -> None:
    """A field of the window is a column of its own; the window itself is a struct under its name."""
    around = call.parent
    if isinstance(around, exp.Dot) and around.name.lower() in ("start", "end"):
        made = (bounds.start if around.name.lower() == "start" else bounds.end).tree.copy()
        named = exp.alias_(made, around.name) if isinstance(around.parent, exp.Select) else made
        around.replace(named)
        return
    window = struct({"start": bounds.start, "end": bounds.end}).tree
    is_output = isinstance(around, exp.Select) and call.arg_key == "expressions"
    call.replace(exp.alias_(window, functions.name_of(call)) if is_output else window)


# ------------------------------------------------------------------ windows of one length


def _even(context: Context, source: Source, call: exp.Expr) -> _Bounds:
    time, *lengths = call.expressions
    micros = [_micros(context, each) for each in lengths]
    length = micros[0]
    slide = micros[1] if len(micros) > 1 else length
    offset = micros[2] if len(micros) > 2 else 0
    at, type_ = _moment(context, time, source)
    source = replace(source, node=Filter(source.node, not_null(at)))
    # how far the newest window that has the moment began before it
    counted = _counted(at, type_)
    behind = _remainder(subtract(counted, _number(offset)) if offset else counted, slide)
    source, newest = _with_column(context, source, _moved(at, neg(behind)), "start")
    if length == slide:
        return _Bounds(source, newest, _moved(newest, _number(length)))
    shifts = exp.GenerateSeries(
        start=_number(0).tree, end=_number(-(-length // slide) * slide - slide).tree, step=_number(slide).tree
    )
    source, (shift,) = exploded(context, source, exp.Explode(this=shifts), ["shift"], "", outer=False)
    source, start = _with_column(context, source, _moved(newest, neg(col(shift.own))), "start")
    end = _moved(start, _number(length))
    if length % slide:
        source = replace(source, node=Filter(source.node, gt(end, at)))
    return _Bounds(source, start, end)


def _micros(context: Context, length: exp.Expr) -> int:
    sign, tree = (-1, length.this) if isinstance(length, exp.Neg) else (1, length)
    if isinstance(tree, exp.Literal):
        text = tree.name.strip()
        if text.isdecimal():
            return sign * int(text)
        text = re.sub(r"^interval\s+", "", text, flags=re.IGNORECASE)
        found = list(_LENGTH.finditer(text))
        if found and not _LENGTH.sub("", text).strip():
            return sign * sum(int(each[1]) * _MICROS[each[2].lower()] for each in found)
    raise context.unsupported(length, f"a window of time whose length is spelled {length.sql('spark')}")


# ------------------------------------------------------------------ sessions


def _sessions(context: Context, select: exp.Select, source: Source, call: exp.Expr) -> _Bounds:
    """Rows of one group are in one session as long as none is later than all before it end."""
    time, gap = call.expressions
    at, type_ = _moment(context, time, source)
    pause = over(context, gap, source)
    if not _type(context, pause, source).startswith("interval"):
        pause = cast(pause, "interval")
    source, start = _with_column(context, source, at, "start")
    source, end = _with_column(context, source, add(at, pause), "end")
    source = replace(source, node=Filter(source.node, gt(end, start)))
    if select.args.get("group") is None:
        return _Bounds(source, start, end)  # nothing is put together, so each row is one of its own
    keys = _other_keys(context, select, source, call)
    source, begins = _with_column(context, source, _counted(start, type_), "begins")
    source, ends = _with_column(context, source, _counted(end, type_), "ends")
    source, before = _with_window(context, source, exp.Max(this=_own(ends)), keys, begins, _ALL_EARLIER)
    is_first = exp.or_(
        exp.Is(this=_own(before), expression=exp.null()), exp.GT(this=_own(begins), expression=_own(before))
    )
    first = exp.Max(this=exp.Case(ifs=[exp.If(this=is_first, true=_own(start))]))
    source, start = _with_window(context, source, first, keys, begins, _ALL_TO_HERE)
    source, end = _with_window(context, source, exp.Max(this=_own(end)), [*keys, _own(start)], None, None)
    return _Bounds(source, start, end)


def _other_keys(context: Context, select: exp.Select, source: Source, call: exp.Expr) -> list[exp.Expr]:
    items = [(each.alias_or_name, each.unalias()) for each in select.expressions]
    group = select.args["group"]
    keys = [spelled_key(context, each, items, source) for each in group.expressions]
    same = _resolved(context, call, source.scope)
    sessions = [each for each in keys if _is(each, _SESSION) and _resolved(context, each, source.scope) == same]
    others = [each for each in keys if each not in sessions]
    is_plain = all(not value for name, value in group.args.items() if name != "expressions")
    if not sessions or not is_plain or any(_is_more_than_a_key(each) for each in others):
        raise context.unsupported(call, "session_window that is no plain key of its GROUP BY")
    return others


def _is_more_than_a_key(tree: exp.Expr) -> bool:
    is_set = isinstance(tree, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple)
    return is_set or any(_is(node, _SESSION) for node in parts_of(tree))


def _with_window(
    context: Context,
    source: Source,
    function: exp.Expr,
    partition: list[exp.Expr],
    order: Scalar | None,
    frame: exp.Expr | None,
) -> tuple[Source, Scalar]:
    tree = exp.Window(
        this=function,
        partition_by=[each.copy() for each in partition] or None,
        order=exp.Order(expressions=[exp.Ordered(this=_own(order), nulls_first=True)]) if order else None,
        spec=frame.copy() if frame else None,
        over="OVER",
    )
    made = windowed(context, source, [tree, *(own(each.name) for each in source.node.columns)])
    return replace(made, known={}), Scalar(_own(over(context, tree, made)))


def _own(column: Scalar) -> exp.Expr:
    return own(column.as_column or "")


# ------------------------------------------------------------------ moments


def _moment(context: Context, time: exp.Expr, source: Source) -> tuple[Scalar, str]:
    """What is in the window, and whether it is a moment with a zone or without. A window's is its last one."""
    value = over(context, time, source)
    type_ = _type(context, value, source)
    if type_.startswith("struct"):
        value = _last_moment(value)
        type_ = _type(context, value, source)
    return (value, type_) if type_.startswith("timestamp") else (cast(value, "timestamp"), "timestamp")


def _last_moment(window: Scalar) -> Scalar:
    return _moved(field(window, "end"), lit(-1))


def _type(context: Context, value: Scalar, source: Source) -> str:
    return context.project(source.node, [("", value)]).node.columns[0].type


def _with_column(context: Context, source: Source, value: Scalar, hint: str) -> tuple[Source, Scalar]:
    name = context.names.fresh("", hint)
    outputs = (*keep(source.node.columns), Output(name, value, ""))
    return replace(source, node=context.typed(Project(source.node, outputs))), Scalar(own(name))


def _number(value: int) -> Scalar:
    return cast(lit(value) if value >= 0 else neg(lit(-value)), "bigint")


def _counted(moment: Scalar, type_: str) -> Scalar:
    """Microseconds since 1970; for a moment without a zone, on its own clock."""
    if type_ != "timestamp_ntz":
        return Scalar(exp.UnixMicros(this=moment.tree.copy()))
    epoch = cast(lit("1970-01-01 00:00:00"), "timestamp_ntz")
    return Scalar(exp.TimestampDiff(this=moment.tree.copy(), expression=epoch.tree, unit=exp.var("MICROSECOND")))


def _moved(moment: Scalar, micros: Scalar) -> Scalar:
    return Scalar(exp.TimestampAdd(this=moment.tree.copy(), expression=micros.tree.copy(), unit=exp.var("MICROSECOND")))


def _remainder(value: Scalar, divisor: int) -> Scalar:
    """Never negative, also of what is."""
    by = _number(divisor).tree

    def modulo(tree: exp.Expr) -> exp.Expr:
        return exp.Mod(this=exp.paren(tree), expression=by.copy())

    return Scalar(modulo(exp.Add(this=modulo(value.tree.copy()), expression=by.copy())))
