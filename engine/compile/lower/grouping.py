"""GROUP BY in all its forms, and the aggregate functions of a SELECT.

Keys and arguments become plain columns of a projection below the Aggregate. Grouping sets are one GROUP BY over each
row repeated for each set, with NULLs for the keys that the set leaves out and the number of the set as one more key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from engine.algebra.aggregates import count_rows
from engine.algebra.comparable import comparable, restored
from engine.algebra.nodes import Aggregate, Aggregation, Node, OuterJoin, Output, Project, UnionAll, keep
from engine.algebra.scalars import Scalar, case, cast, coalesce, col, eq, lit, null, null_safe_eq
from engine.algebra.types import is_orderable
from engine.compile.lower.aggregates import canonical_call, empty_value
from engine.compile.lower.alike import alike
from engine.compile.lower.below import Below
from engine.compile.lower.context import Context, Environment, Source
from engine.compile.lower.correlation import seen_from
from engine.compile.lower.expressions import aggregates_in, over, parts_of, resolved, with_aliases
from engine.compile.positions import clause_position, fragment, placed_as
from engine.compile.scope import Scope
from engine.errors import UnsupportedOperator

_HIVES_NAME = "grouping__id"
#: keys by their place in the list of all
Set = tuple[int, ...]
Named = Sequence[tuple[str, exp.Expr]]
#: makes an expression one of the keys
Place = Callable[[exp.Expr], int]
#: aggregates as they stand in the query, and what they are where there is no row at all
Empties = Mapping[exp.Expr, Scalar]


@dataclass(frozen=True)
class Keys:
    trees: tuple[exp.Expr, ...]
    #: None for a plain GROUP BY
    sets: tuple[Set, ...] | None = None


def grouped(
    context: Context,
    select: exp.Select,
    source: Source,
    items: Named,
    parts: Sequence[exp.Expr],
    environment: Environment,
    *,
    may_miss: bool,
) -> tuple[Source, Empties]:
    """The groups of a source, with every aggregate that `parts` ask for.

    Without keys there is one group, also of nothing. Of a subquery that may mean: for rows of the query around that
    have nothing here; with `may_miss` these are left to the caller, who is told what the aggregates are for them.
    """
    keys = _keys(context, select, items, source)
    below = Below(context, source.node)
    values = [over(context, tree, source) for tree in keys.trees]
    key_columns: dict[exp.Expr, str] = {}
    for value in values:
        key_columns.setdefault(alike(value.tree), below.column(value, "key"))
    calls: dict[exp.Expr, Aggregation] = {}
    for part in parts:
        for call in aggregates_in(part):
            tree = alike(resolved(context, call, source.scope))
            if tree not in calls:
                made = canonical_call(context, call, lambda each: over(context, each, source), below)
                name = context.names.fresh(call.key, made.hint)
                context.names.known_as[name] = fragment(call, context.query.text) or call.sql()
                placed_as(made.call.tree, call)
                calls[tree] = Aggregation(name, made.call, "")
    below.passing(source.domain)
    inner, compared = _with_comparable_keys(context, select, below.node(), list(key_columns.values()))
    key_columns = {tree: compared[name] for tree, name in key_columns.items()}
    types = {new: below.type_of(name) for name, new in compared.items() if new != name}
    known: dict[exp.Expr, Scalar] = {}
    names = list(dict.fromkeys(key_columns.values()))
    if keys.sets is None:
        known.update((tree, col(name)) for tree, name in key_columns.items())
    else:
        order = [key_columns[alike(value.tree)] for value in values]
        inner, renamed, number = _expanded(context, inner, order, keys.sets)
        known.update((tree, col(renamed[name])) for tree, name in key_columns.items())
        types = {renamed[name]: type_ for name, type_ in types.items()}
        known.update(_grouping_calls(context, parts, source, key_columns, order, keys.sets, number))
        names = [*(renamed[name] for name in names), *([number] if keys.trees or len(keys.sets) > 1 else ())]
    names += source.domain
    if not names and not calls:
        # HAVING alone makes one group of all rows, of which nothing need be asked
        calls[exp.Star()] = Aggregation(context.names.fresh("", "rows"), count_rows(), "")
    aggregate = context.typed_aggregate(
        Aggregate(inner, tuple(Output(name, col(name), "") for name in dict.fromkeys(names)), tuple(calls.values()))
    )
    made_columns = {each.name: each.type for each in aggregate.aggregations}
    known.update((tree, col(each.name)) for tree, each in calls.items())
    node, back = _with_values_back(context, aggregate, types)
    known = {tree: back.get(value, value) for tree, value in known.items()}
    result = Source(node, source.scope, source.domain, known, grouped=True)
    if not source.domain or keys.trees or keys.sets is not None:
        return result, {}
    empties = {tree: empty_value(tree, made_columns[each.name]) for tree, each in calls.items()}
    if may_miss:
        return result, empties
    return _for_all(context, select, result, aggregate, empties, environment), {}


def _with_comparable_keys(
    context: Context, select: exp.Select, below: Node, keys: Sequence[str]
) -> tuple[Node, dict[str, str]]:
    """What groups are told apart by, for each key: itself, or what stands for a map where maps are compared."""
    names = {key: key for key in keys}
    made: list[Output] = []
    for key in names:
        type_ = below.types[key]
        if is_orderable(type_):
            continue
        found = comparable(col(key), type_)
        if found is None:
            raise context.unsupported(select.args.get("group") or select, f"GROUP BY of a {type_}")
        names[key] = context.names.fresh("", key)
        made.append(Output(names[key], *found))
        # Spark's own groups forget which values are NULL
        context.made_unique.append(f"GROUP BY of a {type_} goes by its entries, in the order of their keys")
    return (Project(below, (*keep(below.columns), *made)) if made else below), names


def _with_values_back(context: Context, groups: Node, types: Mapping[str, str]) -> tuple[Node, dict[Scalar, Scalar]]:
    """Keys as the values that they stand for."""
    made = {
        name: Output(context.names.fresh("", name), restored(col(name), type_), type_) for name, type_ in types.items()
    }
    node = Project(groups, (*keep(groups.columns), *made.values())) if made else groups
    return node, {col(name): col(output.name) for name, output in made.items()}


def _for_all(
    context: Context,
    select: exp.Select,
    result: Source,
    aggregate: Aggregate,
    empties: Empties,
    environment: Environment,
) -> Source:
    """One group for each row of the domain, also where there is nothing to group."""
    if environment.outer is None:
        return result
    instance = environment.outer.instance(context)
    same = tuple(null_safe_eq(col(one), col(other)) for one, other in zip(instance.domain, result.domain, strict=True))
    joined = OuterJoin(instance.node, aggregate, same)
    values: dict[exp.Expr, Scalar] = {}
    outputs = list(keep(instance.node.columns))
    for tree, known in result.known.items():
        name = known.as_column or ""
        empty = empties.get(tree)
        if empty is None or empty.tree.find(exp.Null):
            values[tree] = known
            outputs.append(Output(name, known, aggregate.types[name]))
        else:
            filled = context.names.fresh("", name)
            outputs.append(Output(filled, coalesce(known, empty), aggregate.types[name]))
            values[tree] = col(filled)
    # names of the query around are looked up among the instance's columns from here on
    filled_up = Source(Project(joined, tuple(outputs)), result.scope, instance.domain, values, grouped=True)
    return seen_from(filled_up, select, environment)


def with_grouping_id(select: exp.Select, scope: Scope) -> exp.Select:
    """Hive's name for GROUPING_ID() is that function."""
    if (
        select.args.get("group") is None
        or scope.find_here(_HIVES_NAME)
        or not any(_is_hives(each) for each in parts_of(select))
    ):
        return select
    select = select.copy()
    for node in [each for each in parts_of(select) if _is_hives(each)]:
        is_output = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        node.replace(exp.alias_(exp.GroupingId(), _HIVES_NAME) if is_output else exp.GroupingId())
    return select


def _is_hives(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == _HIVES_NAME


# ------------------------------------------------------------------ keys


def keys_of(context: Context, select: exp.Select, items: Named, source: Source) -> tuple[exp.Expr, ...]:
    """What stands behind GROUP BY, with names and places spelled out."""
    return _keys(context, select, items, source).trees


def _keys(context: Context, select: exp.Select, items: Named, source: Source) -> Keys:
    group = select.args.get("group")
    if group is None:
        return Keys(())
    if group.args.get("totals"):
        raise context.unsupported(group, "WITH TOTALS")
    if _is_all(group, source):
        return Keys(tuple(tree for _, tree in items if not any(aggregates_in(tree))))
    trees: list[exp.Expr] = []

    def place(tree: exp.Expr) -> int:
        spelled = spelled_key(context, tree, items, source)
        trees.append(spelled)
        return len(trees) - 1

    parts: list[list[Set]] = []
    is_plain = True
    if group.args.get("all"):
        return Keys((exp.column("all"), *(spelled_key(context, each, items, source) for each in group.expressions)))
    if group.args.get("grouping_sets"):
        # GROUP BY a, b GROUPING SETS (…): the list before only names the keys
        for tree in group.expressions:
            place(tree)
        parts += [_sets_of(each, trees, place, context, items, source) for each in group.args["grouping_sets"]]
        return Keys(tuple(trees), _checked(context, group, parts))
    for tree in group.expressions:
        if isinstance(tree, exp.Cube | exp.Rollup | exp.GroupingSets):
            is_plain = False
            parts.append(_sets_of(tree, trees, place, context, items, source))
        elif isinstance(tree, exp.Tuple):
            is_plain = is_plain and bool(tree.expressions)
            parts.append([tuple(place(each) for each in tree.expressions)])
        else:
            parts.append([(place(tree),)])
    for word in ("cube", "rollup"):
        for each in group.args.get(word) or ():
            # GROUP BY a, b WITH ROLLUP: all that stands before
            is_plain = False
            every = [index for part in parts for index in part[0]]
            kind = exp.Cube if word == "cube" else exp.Rollup
            inner = [place(tree) for tree in each.expressions] or every
            parts = [_combinations(kind, [(index,) for index in inner])]
    if is_plain:
        return Keys(tuple(field for tree in trees for field in _fields(tree)))
    return Keys(tuple(trees), _checked(context, group, parts))


def _is_all(group: exp.Group, source: Source) -> bool:
    only = group.expressions[0] if len(group.expressions) == 1 else None
    is_word = bool(group.args.get("all")) or (isinstance(only, exp.Column) and only.name.lower() == "all")
    return is_word and not source.scope.find_here("all")


def spelled_key(context: Context, key: exp.Expr, items: Named, source: Source) -> exp.Expr:
    """A key by its place in the SELECT list, by the name of an output, or as it is."""
    if isinstance(key, exp.Literal) and key.is_int:
        if not 1 <= int(key.name) <= len(items):
            raise context.misread(key, f"GROUP BY {key.name} names no output: there are {len(items)}")
        return items[int(key.name) - 1][1]
    if isinstance(key, exp.Column) and not key.table and not source.scope.find_here(key.name):
        named = [tree for name, tree in items if name.casefold() == key.name.casefold()]
        return named[0] if named else key
    return with_aliases(key, {name.casefold(): tree for name, tree in reversed(items) if name}, source.scope)


def _fields(key: exp.Expr) -> tuple[exp.Expr, ...]:
    """A struct is told from another by its fields, of which those need not be asked that the others decide."""
    if not isinstance(key, exp.Struct) or not all(isinstance(each, exp.PropertyEQ) for each in key.expressions):
        return (key,)
    values = [each.expression for each in key.expressions]
    plain = [each for each in values if isinstance(each, exp.Column)]
    return tuple(each for each in values if each in plain or not set(each.find_all(exp.Column)) <= set(plain))


def _sets_of(
    tree: exp.Expr, trees: Sequence[exp.Expr], place: Place, context: Context, items: Named, source: Source
) -> list[Set]:
    if isinstance(tree, exp.Cube | exp.Rollup):
        units = [_unit(each, place) for each in tree.expressions]
        return _combinations(type(tree), units)
    known = {alike(spelled_key(context, each, items, source)): index for index, each in enumerate(trees)}

    def named(each: exp.Expr) -> int:
        spelled = alike(spelled_key(context, each, items, source))
        if spelled not in known:
            known[spelled] = place(each)
        return known[spelled]

    def sets_in(each: exp.Expr) -> list[Set]:
        match each:
            case exp.Cube() | exp.Rollup():
                return _combinations(type(each), [_unit(unit, named) for unit in each.expressions])
            case exp.GroupingSets():
                return [found for inner in each.expressions for found in sets_in(inner)]
            case _:
                return [_unit(each, named)]

    return sets_in(tree)


def _unit(tree: exp.Expr, place: Place) -> Set:
    if isinstance(tree, exp.Tuple):
        return tuple(place(each) for each in tree.expressions)
    return (place(tree.unnest()),)


def _combinations(kind: type[exp.Expr], units: Sequence[Set]) -> list[Set]:
    if kind is exp.Rollup:
        return [tuple(i for unit in units[:count] for i in unit) for count in range(len(units), -1, -1)]
    return [
        tuple(i for unit, taken in zip(units, mask, strict=True) if taken for i in unit)
        for mask in product((True, False), repeat=len(units))
    ]


def _checked(context: Context, group: exp.Group, parts: Sequence[Sequence[Set]]) -> tuple[Set, ...]:
    count = 1
    for part in parts:
        count *= len(part)
    if count > context.max_grouping_sets:
        clause = group.find(exp.Cube, exp.Rollup, exp.GroupingSets) or group
        raise UnsupportedOperator(
            f"{count} grouping sets are more than {context.max_grouping_sets}",
            position=clause_position(clause, context.query.text),
            fragment=fragment(clause, context.query.text),
            hint="raise compile.max_grouping_sets, or write fewer",
        )
    return tuple(tuple(index for each in chosen for index in each) for chosen in product(*parts))


# ------------------------------------------------------------------ grouping sets


def _expanded(
    context: Context, inner: Node, keys: Sequence[str], sets: Sequence[Set]
) -> tuple[Node, dict[str, str], str]:
    """Each row once for each set. Keys get new names: as arguments of aggregates they keep their values."""
    renamed = {name: context.names.fresh("", name) for name in dict.fromkeys(keys)}
    number = context.names.fresh("", "grouping_set")
    branches: list[Node] = []
    for index, chosen in enumerate(sets):
        present = {keys[each] for each in chosen}
        made = tuple(
            Output(new, col(name) if name in present else cast(null(), inner.types[name]), inner.types[name])
            for name, new in renamed.items()
        )
        branches.append(Project(inner, (*keep(inner.columns), *made, Output(number, lit(index), "int"))))
    return UnionAll(tuple(branches)) if len(branches) > 1 else branches[0], renamed, number


def _grouping_calls(
    context: Context,
    parts: Sequence[exp.Expr],
    source: Source,
    key_columns: Mapping[exp.Expr, str],
    order: Sequence[str],
    sets: Sequence[Set],
    number: str,
) -> dict[exp.Expr, Scalar]:
    """GROUPING(k) and GROUPING_ID(…) as what they are for each set."""
    present = [{order[index] for index in chosen} for chosen in sets]
    found: dict[exp.Expr, Scalar] = {}
    for part in parts:
        for node in parts_of(part):
            if not isinstance(node, exp.Grouping | exp.GroupingId):
                continue
            asked = [key_columns.get(alike(over(context, each, source).tree)) for each in node.expressions]
            if None in asked:
                raise context.misread(node, f"{node.sql()} is not about a key of this GROUP BY")
            names = [name for name in asked if name is not None] or list(dict.fromkeys(order))
            values = []
            for each in present:
                bits = 0
                for name in names:
                    bits = bits * 2 + (name not in each)
                values.append(bits)
            type_ = "tinyint" if isinstance(node, exp.Grouping) else "bigint"
            chosen = lit(values[0])
            if any(value != values[0] for value in values):
                chosen = case(*((eq(col(number), lit(index)), lit(value)) for index, value in enumerate(values)))
            found[alike(resolved(context, node, source.scope))] = cast(chosen, type_)
    return found
