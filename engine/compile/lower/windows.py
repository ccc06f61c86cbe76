"""Window functions: named windows spelled out, arguments as plain columns, and one answer where rows tie.

A function whose answer depends on the order among equals (row_number, lag, first_value, everything over a frame of
ROWS) gets further keys to order by: all columns that the SELECT uses of its rows. Rows that agree in all of them are
the same row to the query. Functions that treat equals alike (rank, sums over a frame of RANGE) stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from engine.algebra.nodes import Node, Window, Windowed
from engine.algebra.scalars import Scalar, col
from engine.compile import functions
from engine.compile.lower.alike import alike
from engine.compile.lower.below import Below
from engine.compile.lower.context import Context, Source
from engine.compile.lower.expressions import over, windows_in, without_null_words
from engine.compile.lower.ordering import nulls_first, ordered, ties_broken, told_apart_by

_PLACES = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
_VALUES = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last, exp.AnyValue)
_WHOLE = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING")


def with_windows_spelled(select: exp.Select, tree: exp.Expr) -> exp.Expr:
    """OVER w with what WINDOW w AS (…) says, and NTH_VALUE over the whole part, where its frame reaches that far."""
    if isinstance(tree, exp.Query) or not any(windows_in(tree)):
        return tree  # a query inside has windows of its own
    named = {window.name.casefold(): window for window in select.args.get("windows") or ()}
    spelled = tree.copy()
    for window in list(windows_in(spelled)):
        made = _with_its_definition(named, window)
        if _is_nth_up_to_here(made):
            made = _nth_up_to_here(made)
        if window is spelled:
            return made
        window.replace(made)
    return spelled


def _is_nth_up_to_here(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Window) or not node.args.get("order"):
        return False
    spec = node.args.get("spec")
    return isinstance(without_null_words(node.this), exp.NthValue) and _is_range(spec) and _ends_here(spec)


def _nth_up_to_here(window: exp.Expr) -> exp.Expr:
    """The frame goes on to all equals of the current row, so it has the n-th row of the part or ends before that."""
    nth = without_null_words(window.this)
    counted = nth.this.copy() if isinstance(window.this, exp.IgnoreNulls) else exp.Star()
    reached, whole = window.copy(), window.copy()
    reached.set("this", exp.Count(this=counted, big_int=True))
    whole.set("spec", _WHOLE.copy())
    condition = exp.GTE(this=reached, expression=nth.args["offset"].copy())
    return exp.Case(ifs=[exp.If(this=condition, true=whole)])


def _with_its_definition(named: Mapping[str, exp.Window], window: exp.Window) -> exp.Expr:
    definition = _defined(named, window.alias) if window.args.get("alias") is not None else None
    if definition is None:
        return window
    spelled = window.copy()
    spelled.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        if not spelled.args.get(part) and definition.args.get(part):
            value = definition.args[part]
            spelled.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
    return spelled


def _defined(named: Mapping[str, exp.Window], name: str) -> exp.Window | None:
    """What a name stands for, which may be another name: WINDOW w1 AS w2."""
    definition = named.get(name.casefold())
    if definition is not None and definition.alias:
        return _defined({each: named[each] for each in named if each != name.casefold()}, definition.alias)
    return definition


def windowed(context: Context, source: Source, trees: Sequence[exp.Expr]) -> Source:
    """The source with a column for each window function that `trees` ask for."""
    calls = {over(context, window, source).tree: window for tree in trees for window in windows_in(tree)}
    if not calls:
        return source
    used = _used(context, source, trees)
    below = Below(context, source.node, used)
    found, above = _Found(context), _Found(context)
    known = {alike(tree): _canonical(context, tree, below, source.domain, found, above) for tree in calls}
    node: Node = below.node()
    for partition, made in (*found.by_partition.items(), *above.by_partition.items()):
        node = context.typed_window(Window(node, partition, tuple(made.values())))
    return replace(source, node=node, known={**source.known, **known})


@dataclass
class _Found:
    """Functions over windows, each once; those of one partition share an operator."""

    context: Context
    by_partition: dict[tuple[str, ...], dict[Scalar, Windowed]] = field(default_factory=dict)

    def column(
        self, function: exp.Expr, partition: Sequence[exp.Expr], keys: Sequence[exp.Ordered], spec: exp.Expr | None
    ) -> Scalar:
        made = exp.Window(
            this=function.copy(),
            partition_by=[each.copy() for each in partition] or None,
            order=exp.Order(expressions=list(keys)) if keys else None,
            spec=spec.copy() if spec else None,
            over="OVER",
        )
        names = tuple(dict.fromkeys(each.name for each in partition))
        same, call = self.by_partition.setdefault(names, {}), Scalar(made)
        if call not in same:
            same[call] = Windowed(self.context.names.fresh("", function.key), call, "")
        return col(same[call].name)


def _used(context: Context, source: Source, trees: Sequence[exp.Expr]) -> tuple[str, ...]:
    """The columns of its rows that the SELECT makes something of."""
    found: dict[str, None] = dict.fromkeys(source.domain)
    for tree in trees:
        parts = tree.expressions if isinstance(tree, exp.Order) else [tree]
        for part in parts:
            inner = part.this if isinstance(part, exp.Ordered) else part
            found.update(dict.fromkeys(_columns_of(context, inner, source)))
    return tuple(name for name in found if name in source.node.names)


def _columns_of(context: Context, tree: exp.Expr, source: Source) -> list[str]:
    if isinstance(tree, exp.Aliases):
        tree = tree.this
    if isinstance(tree, exp.Column | exp.Literal) or not list(tree.iter_expressions()):
        visible = source.scope.find(tree.name, tree.table or None) if isinstance(tree, exp.Column) else []
        if isinstance(tree, exp.Column) and not visible and not tree.this.meta.get("own"):
            return []  # the name of an output
    if tree.find(exp.Query) is not None:
        # what its subqueries speak of is among the names in them
        named = [source.scope.find(each.name, each.table or None) for each in tree.find_all(exp.Column)]
        return sorted({visible.own for found in named for visible in found})
    return sorted(over(context, tree, source).columns)


def _canonical(
    context: Context,
    window: exp.Expr,
    below: Below,
    domain: tuple[str, ...],
    found: _Found,
    above: _Found,
) -> Scalar:
    """`above`: what is made of those that are found."""
    if window.alias:
        raise context.misread(window, f"this SELECT has no window named {window.alias}")
    tree = window.copy()
    function = tree.this
    _order_texts(function)
    for inner in list(_arguments(function)):
        if inner.find(exp.Column) is not None:
            inner.replace(col(below.column(Scalar(inner), function.key)).tree)
    partition = [col(below.column(Scalar(each), "part")).tree for each in tree.args.get("partition_by") or ()]
    partition += [col(name).tree for name in domain]
    order = tree.args.get("order")
    keys = [
        exp.Ordered(
            this=col(below.column(Scalar(each.this), "order")).tree,
            desc=each.args.get("desc"),
            nulls_first=nulls_first(each),
        )
        for each in (order.expressions if order else ())
    ]
    spec = tree.args.get("spec")
    if _is_of_the_last_equal(function, keys, spec):
        # row by row it is at the last of its equals what it is for all of them
        ties = _ties(context, function, partition, keys, below)
        there = found.column(function, partition, [*keys, *ties], _up_to_here())
        equals = [*partition, *(key.this for key in keys)]
        return above.column(exp.LastValue(this=there.tree.copy()), equals, [tie.copy() for tie in ties], _WHOLE)
    return found.column(*_untied(context, window, function, partition, keys, spec, below))


def _is_of_the_last_equal(function: exp.Expr, keys: Sequence[exp.Ordered], spec: exp.Expr | None) -> bool:
    """Is it asked of all rows up to the equals of the current one, and no other where one of these comes twice?"""
    inner = without_null_words(function)
    skips = isinstance(function, exp.IgnoreNulls) and isinstance(inner, exp.LastValue | exp.Last)
    is_one = skips or isinstance(inner, exp.ArgMax | exp.ArgMin)
    return is_one and bool(keys) and _is_range(spec) and _ends_here(spec) and not inner.args.get("count")


def _arguments(function: exp.Expr) -> list[exp.Expr]:
    """What it is computed from, also behind FILTER and WITHIN GROUP."""
    inner = function
    while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls | exp.Distinct):
        inner = inner.this
    if isinstance(inner, exp.Filter):
        return [*_arguments(inner.this), inner.expression.this]
    if isinstance(inner, exp.WithinGroup):
        return [*_arguments(inner.this), *_arguments(inner.expression)]
    return [
        part
        for each in inner.iter_expressions()
        if not isinstance(each, exp.Star)
        for part in (_arguments(each) if isinstance(each, exp.Distinct | exp.Order | exp.Ordered) else [each])
    ]


def _order_texts(function: exp.Expr) -> None:
    """Texts that are joined in an order go by themselves where it leaves them open."""
    joined = function.find(exp.GroupConcat)
    order = joined.this if joined is not None else None
    if isinstance(order, exp.Order) and not any(each.this == order.this for each in order.expressions):
        order.append("expressions", ordered(Scalar(order.this)))


def _untied(
    context: Context,
    window: exp.Expr,
    function: exp.Expr,
    partition: list[exp.Expr],
    keys: list[exp.Ordered],
    spec: exp.Expr | None,
    below: Below,
) -> tuple[exp.Expr, list[exp.Expr], list[exp.Ordered], exp.Expr | None]:
    """The same function with one answer: its partition, order and frame."""
    inner = without_null_words(function)
    is_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
    is_value = isinstance(inner, _VALUES) or _depends_on_order(inner)
    whole = not keys or (spec is not None and _is_whole(spec))
    if not (isinstance(inner, _PLACES) or is_rows or is_value):
        return function, partition, keys, spec
    ties = _ties(context, function, partition, keys, below)
    if isinstance(inner, _PLACES) or is_rows:
        return function, partition, [*keys, *ties], spec
    if whole:
        return function, partition, [*keys, *ties], _WHOLE
    if isinstance(inner, exp.FirstValue | exp.First | exp.AnyValue) and _starts_at_the_beginning(spec):
        return function, partition, [*keys, *ties], _up_to_here()
    if isinstance(inner, exp.LastValue | exp.Last) and _ends_here(spec) and inner is function:
        # the last of its equals, which are a partition of their own
        return function, [*partition, *(key.this for key in keys)], ties, _WHOLE
    raise context.unsupported(
        window,
        f"{functions.name_of(inner) or inner.key} over a frame of RANGE",
        detail="which of several equals it means is not determined",
    )


def _ties(
    context: Context,
    function: exp.Expr,
    partition: Sequence[exp.Expr],
    keys: Sequence[exp.Ordered],
    below: Below,
) -> list[exp.Ordered]:
    """Further keys to order by."""
    partition_names = [each.name for each in partition]
    names = [name for name in below.passed if name not in partition_names]
    ties = list(ties_broken(below.input, names, keys))
    if ties:
        name = functions.name_of(without_null_words(function))
        context.made_unique.append(f"where rows tie, {name} tells them apart by {told_apart_by(context, tuple(ties))}")
    return ties


def _depends_on_order(function: exp.Expr) -> bool:
    """Lists, and whatever takes the first of several rows with equal claims."""
    inner = function.this if isinstance(function, exp.Filter) else function
    if isinstance(inner.this, exp.Order):
        return False  # it says which order
    known = functions.AGGREGATES.get(functions.name_of(inner))
    return known is not None and known.order is functions.Order.ROWS


def _is_range(spec: exp.Expr | None) -> bool:
    return spec is None or str(spec.args.get("kind")).upper() == "RANGE"


def _is_whole(spec: exp.Expr) -> bool:
    return str(spec.args.get("start")).upper() == "UNBOUNDED" and str(spec.args.get("end")).upper() == "UNBOUNDED"


def _starts_at_the_beginning(spec: exp.Expr | None) -> bool:
    return spec is None or str(spec.args.get("start")).upper() == "UNBOUNDED"


def _ends_here(spec: exp.Expr | None) -> bool:
    return spec is None or (
        str(spec.args.get("start")).upper() == "UNBOUNDED" and str(spec.args.get("end")).upper() == "CURRENT ROW"
    )


def _up_to_here() -> exp.WindowSpec:
    return exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW", end_side=None)
