"""Syntax tree to algebra, in canonical form.

Canonical means: each column has one name in the whole tree; inner joins are flat; an Aggregate's keys and arguments
are plain columns, computed by a Project below it; names of outputs and all types are Spark's own.
What has no place in the algebra yet ends in `UnsupportedOperator`, with the place in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.nodes import (
    Aggregate,
    AggregateKind,
    Aggregation,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    Output,
    Project,
    Role,
    Scan,
)
from engine.algebra.scalars import Scalar, col, conjuncts
from engine.compile.parse import ParsedQuery
from engine.compile.positions import position
from engine.compile.resolve import Resolver, aggregates_in, own, replace_top_down, with_aliases
from engine.compile.scope import Names, Scope, Visible
from engine.errors import InternalError, Position, QueryParseError
from engine.records import Column

#: gives Spark's names and types for a tree whose outputs have none yet
Typing = Callable[[Node], tuple[Column, ...]]
#: the columns of a source by its folded name
Relations = dict[str, tuple[str, tuple[Column, ...]]]


@dataclass(frozen=True)
class Lowered:
    root: Node
    #: names of outputs as the user wrote them, in order; empty where there was none
    names: tuple[str, ...]
    ignored_order: Position | None = None


def lower(query: ParsedQuery, relations: Relations, typing: Typing) -> Lowered:
    """The canonical tree of a query. Its output columns still have their internal names."""
    return _Lowering(query, relations, typing).run()


@dataclass
class _Lowering(Resolver):
    relations: Relations
    typing: Typing

    def __post_init__(self) -> None:
        self.names = Names()
        self.ignored_order: Position | None = None

    def run(self) -> Lowered:
        root, visible = self.query_of(self.query.tree, {})
        return Lowered(root, tuple(each.name for each in visible), self.ignored_order)

    # ---------------------------------------------------------------- queries

    def query_of(self, tree: exp.Expr, ctes: dict[str, exp.CTE]) -> tuple[Node, list[Visible]]:
        if isinstance(tree, exp.Subquery):
            return self.query_of(tree.this, ctes)
        if not isinstance(tree, exp.Select):
            raise self.unsupported(tree, f"{type(tree).__name__.upper()} of queries")
        with_ = tree.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise self.unsupported(with_, "a recursive WITH")
            ctes = dict(ctes)
            for cte in with_.expressions:
                # A definition sees only those before it: it is bound to them here.
                ctes[cte.alias.casefold()] = _Bound.to(cte, ctes)
        return self.select(tree, ctes)

    def select(self, tree: exp.Select, ctes: dict[str, exp.CTE]) -> tuple[Node, list[Visible]]:
        self.refuse_clauses(tree)
        node, scope = self.from_(tree, ctes)
        where = tree.args.get("where")
        if where is not None:
            node = Filter(node, self.scalar(where.this, scope))
        items = self.select_items(tree, scope)
        group, having = tree.args.get("group"), tree.args.get("having")
        aggregated = any(aggregates_in(item.tree) for item in items) or group is not None or having is not None
        if aggregated:
            return self.aggregate(tree, node, scope, items)
        outputs = [(item.name, self.scalar(item.tree, scope)) for item in items]
        return self.project(node, outputs)

    def refuse_clauses(self, tree: exp.Select) -> None:
        refused = {
            "distinct": "SELECT DISTINCT",
            "limit": "LIMIT",
            "offset": "OFFSET",
            "qualify": "QUALIFY",
            "windows": "WINDOW",
            "laterals": "LATERAL VIEW",
            "connect": "CONNECT BY",
            "sample": "TABLESAMPLE",
            "cluster": "CLUSTER BY",
            "distribute": "DISTRIBUTE BY",
            "sort": "SORT BY",
            "kind": "SELECT AS STRUCT",
        }
        for clause, name in refused.items():
            part = tree.args.get(clause)
            if part:
                node = part[0] if isinstance(part, list) else part
                # DISTINCT has no part that knows its place.
                has_place = isinstance(node, exp.Expr) and position(node, self.query.text) is not None
                raise self.unsupported(node if has_place else tree, name)
        order = tree.args.get("order")
        if order is not None:
            # A stored table has no order, so without LIMIT it changes nothing.
            self.ignored_order = position(order, self.query.text)

    # ---------------------------------------------------------------- FROM

    def from_(self, tree: exp.Select, ctes: dict[str, exp.CTE]) -> tuple[Node, Scope]:
        from_ = tree.args.get("from_")
        if from_ is None:
            raise self.unsupported(tree, "a SELECT without FROM")
        node, visible = self.relation(from_.this, ctes)
        members: list[Node] = [node]
        conditions: list[Scalar] = []
        scope = Scope(visible)
        for join in tree.args.get("joins") or []:
            right, added, on = self.join(join, scope, ctes)
            members.append(right)
            scope = added
            conditions.extend(on)
        if len(members) == 1:
            return members[0], scope
        return InnerJoin(*_flatten(members, conditions)), scope

    def join(self, join: exp.Join, scope: Scope, ctes: dict[str, exp.CTE]) -> tuple[Node, Scope, tuple[Scalar, ...]]:
        side, kind, method = join.side, join.kind, join.method
        if side or kind not in ("", "INNER", "CROSS") or method:
            raise self.unsupported(join, f"{' '.join(filter(None, (method, side, kind)))} JOIN")
        node, visible = self.relation(join.this, ctes)
        using = join.args.get("using")
        if using:
            return self.join_using(node, visible, [each.name for each in using], scope, join)
        both = scope.beside(visible)
        on = join.args.get("on")
        return node, both, conjuncts(self.scalar(on, both)) if on is not None else ()

    def join_using(
        self, node: Node, visible: list[Visible], shared: list[str], scope: Scope, join: exp.Join
    ) -> tuple[Node, Scope, tuple[Scalar, ...]]:
        right = Scope(visible)
        conditions = []
        for name in shared:
            mine = self.resolve(scope, name, None, join)
            other = self.resolve(right, name, None, join)
            conditions.append(Scalar(exp.EQ(this=mine.tree.copy(), expression=other.tree.copy())))
        return node, scope.beside_using(visible, shared), tuple(conditions)

    def relation(self, tree: exp.Expr, ctes: dict[str, exp.CTE]) -> tuple[Node, list[Visible]]:
        if tree.args.get("joins") or tree.args.get("laterals") or tree.args.get("pivots"):
            raise self.unsupported(tree, "a nested join, LATERAL VIEW or PIVOT")
        match tree:
            case exp.Table():
                return self.table(tree, ctes)
            case exp.Subquery():
                node, visible = self.query_of(tree.this, ctes)
                return node, _aliased(visible, tree)
            case _:
                raise self.unsupported(tree, f"{type(tree).__name__.upper()} in FROM")

    def table(self, tree: exp.Table, ctes: dict[str, exp.CTE]) -> tuple[Node, list[Visible]]:
        for clause in ("version", "when", "sample", "hints"):
            if tree.args.get(clause):
                raise self.unsupported(tree, "a table with time travel, sample or hints")
        folded = tree.name.casefold()
        if not tree.db and folded in ctes:
            bound = ctes[folded]
            node, visible = self.query_of(bound.this, bound.meta["ctes"])
            return node, _aliased(_aliased(visible, bound), tree)
        if tree.db or folded not in self.relations:
            raise self.unsupported(tree, f"the relation {tree.sql()}")
        name, columns = self.relations[folded]
        alias = tree.alias or tree.name
        fields = tuple((self.names.fresh(alias, each.name), each.name, each.type) for each in columns)
        visible = [Visible(alias, column.name, own) for column, (own, _, _) in zip(columns, fields, strict=True)]
        return Scan(Leaf(Role.NEW, name), fields), _aliased(visible, tree)

    # ---------------------------------------------------------------- SELECT list

    def select_items(self, tree: exp.Select, scope: Scope) -> list[_Item]:
        items: list[_Item] = []
        for expression in tree.expressions:
            if isinstance(expression, exp.Star) or (
                isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
            ):
                star = expression if isinstance(expression, exp.Star) else expression.this
                if star.args.get("except_") or star.args.get("replace") or star.args.get("rename"):
                    raise self.unsupported(expression, "* with EXCEPT, REPLACE or RENAME")
                table = expression.table if isinstance(expression, exp.Column) else None
                columns = scope.all_of(table or None)
                if not columns:
                    raise QueryParseError(
                        f"{table}.* names no relation of this SELECT",
                        position=position(expression, self.query.text),
                    )
                items.extend(_Item(each.name, own(each)) for each in columns)
            elif isinstance(expression, exp.Alias):
                items.append(_Item(expression.alias, expression.this))
            elif isinstance(expression, exp.Aliases):
                raise self.unsupported(expression, "one expression with several aliases")
            else:
                name = expression.name if isinstance(expression, exp.Column | exp.Dot) else ""
                items.append(_Item(name, expression))
        return items

    def project(self, node: Node, outputs: Sequence[tuple[str, Scalar]]) -> tuple[Node, list[Visible]]:
        """A Project with fresh names, or the input itself when it would only pass on."""
        made = [
            Output(scalar.as_column if scalar.as_column else self.names.fresh("", name or "expr"), scalar, "")
            for name, scalar in outputs
        ]
        seen: set[str] = set()
        for index, output in enumerate(made):
            if output.name in seen:  # the same column twice
                made[index] = replace(output, name=self.names.fresh("", output.name))
            seen.add(made[index].name)
        projected = self.typed(Project(node, tuple(made)))
        visible = [Visible("", name, output.name) for (name, _), output in zip(outputs, made, strict=True)]
        return projected, visible

    # ---------------------------------------------------------------- GROUP BY

    def aggregate(self, tree: exp.Select, node: Node, scope: Scope, items: list[_Item]) -> tuple[Node, list[Visible]]:
        keys = [self.scalar(key, scope) for key in self.group_keys(tree, items, scope)]
        having = tree.args.get("having")
        aliases = {item.name.casefold(): item.tree for item in items if item.name}
        having_tree = with_aliases(having.this, aliases, scope) if having is not None else None

        calls: dict[exp.Expr, Aggregation] = {}
        below: dict[Scalar, Output] = {}

        def computed(scalar: Scalar, hint: str) -> str:
            """The column below the Aggregate that holds this value."""
            if scalar not in below:
                name = scalar.as_column or self.names.fresh("", hint)
                below[scalar] = Output(name, scalar, "")
            return below[scalar].name

        key_columns = {key: computed(key, "key") for key in keys}
        for part in [item.tree for item in items] + ([having_tree] if having_tree is not None else []):
            for call in aggregates_in(part):
                resolved = self.resolved(call, scope)
                if resolved not in calls:
                    calls[resolved] = self.aggregation(call, scope, computed)

        inner: Node = Project(node, tuple(below.values()))
        types = {}
        if any(output.scalar.as_column != output.name for output in below.values()):
            inner = self.typed(inner)
        else:
            inner = Project(node, tuple(replace(each, type=_type_in(node, each.name)) for each in below.values()))
        types = {column.name: column.type for column in inner.columns}
        if not inner.columns:
            inner = node  # count(*) over everything reads no column
        aggregate = self.typed(
            Aggregate(
                inner,
                tuple(Output(name, col(name), types[name]) for name in dict.fromkeys(key_columns.values())),
                tuple(replace(call, argument_type=_argument_type(call, types)) for call in calls.values()),
            )
        )

        def above(part: exp.Expr) -> Scalar:
            return self.over_groups(part, scope, key_columns, {tree: made.name for tree, made in calls.items()})

        result: Node = aggregate
        if having_tree is not None:
            result = Filter(result, above(having_tree))
        return self.project(result, [(item.name, above(item.tree)) for item in items])

    def group_keys(self, tree: exp.Select, items: list[_Item], scope: Scope) -> list[exp.Expr]:
        group = tree.args.get("group")
        if group is None:
            return []
        for special in ("grouping_sets", "cube", "rollup", "totals"):
            if group.args.get(special):
                raise self.unsupported(group, special.upper().replace("_", " "))
        if group.args.get("all"):
            return [item.tree for item in items if not aggregates_in(item.tree)]
        keys: list[exp.Expr] = []
        for key in group.expressions:
            if isinstance(key, exp.Literal) and key.is_int:
                if not 1 <= int(key.name) <= len(items):
                    raise QueryParseError(
                        f"GROUP BY {key.name} names no output: there are {len(items)}",
                        position=position(key, self.query.text),
                    )
                keys.append(items[int(key.name) - 1].tree)
            elif isinstance(key, exp.Column) and not key.table and not scope.find(key.name, None):
                named = [item.tree for item in items if item.name.casefold() == key.name.casefold()]
                keys.append(named[0] if named else key)
            elif isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets):
                words = {exp.Cube: "CUBE", exp.Rollup: "ROLLUP", exp.GroupingSets: "GROUPING SETS"}
                raise self.unsupported(key, f"GROUP BY {words[type(key)]}")
            elif isinstance(key, exp.Tuple):
                raise self.unsupported(key, "a composite grouping")
            else:
                keys.append(key)
        return keys

    def aggregation(self, call: exp.AggFunc, scope: Scope, computed: Callable[[Scalar, str], str]) -> Aggregation:
        if isinstance(call.parent, exp.Filter | exp.Window):
            raise self.unsupported(call, f"{call.key.upper()} with {type(call.parent).__name__.upper()}")
        kinds: dict[type[exp.Expr], AggregateKind] = {
            exp.Count: AggregateKind.COUNT,
            exp.Sum: AggregateKind.SUM,
            exp.Avg: AggregateKind.AVG,
        }
        kind = kinds.get(type(call))
        if kind is None:
            raise self.unsupported(call, f"the aggregate {self.written_name(call)}")
        argument = call.this
        if isinstance(argument, exp.Distinct):
            raise self.unsupported(call, f"{self.written_name(call)}(DISTINCT …)")
        if call.args.get("expressions"):
            raise self.unsupported(call, "COUNT of several columns")
        if isinstance(argument, exp.Star) or (kind is AggregateKind.COUNT and isinstance(argument, exp.Literal)):
            return Aggregation(self.names.fresh("", "count"), AggregateKind.COUNT_ROWS, None, "", "")
        column = computed(self.scalar(argument, scope), call.key)
        return Aggregation(self.names.fresh(call.key, column), kind, col(column), "", "")

    def over_groups(
        self,
        part: exp.Expr,
        scope: Scope,
        keys: dict[Scalar, str],
        calls: dict[exp.Expr, str],
    ) -> Scalar:
        """An expression of the SELECT list or HAVING, in terms of the Aggregate's outputs."""
        resolved = self.resolved(part, scope)

        def replace_known(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.AggFunc) and node in calls:
                return col(calls[node]).tree
            key = keys.get(Scalar(node))
            return col(key).tree if key is not None else node

        scalar = Scalar(replace_top_down(resolved, replace_known))
        allowed = set(keys.values()) | set(calls.values())
        stray = scope.names_of(scalar.columns - allowed)
        if stray:
            raise QueryParseError(
                f"{stray[0]} is neither grouped nor aggregated",
                position=position(part, self.query.text),
                hint="add it to GROUP BY",
            )
        return scalar

    # ---------------------------------------------------------------- helpers

    def typed(self, node: Node) -> Node:
        """The operator with Spark's types for what it computes."""
        match node:
            case Project(input=source, outputs=outputs):
                if all(output.scalar.as_column for output in outputs):
                    kept = tuple(
                        replace(output, type=_type_in(source, output.scalar.as_column or "")) for output in outputs
                    )
                    return Project(source, kept)
                found = self.typing(node)
                return Project(source, tuple(replace(o, type=c.type) for o, c in zip(outputs, found, strict=True)))
            case Aggregate(input=source, keys=keys, aggregations=made):
                if not made:
                    return node
                found = self.typing(node)[len(keys) :]
                return Aggregate(source, keys, tuple(replace(a, type=c.type) for a, c in zip(made, found, strict=True)))
            case _:
                raise InternalError(f"{type(node).__name__} needs no typing")


@dataclass(frozen=True)
class _Item:
    name: str
    tree: exp.Expr


class _Bound:
    """A CTE together with those it can see."""

    @staticmethod
    def to(cte: exp.CTE, visible: dict[str, exp.CTE]) -> exp.CTE:
        bound = cte.copy()
        bound.meta["ctes"] = dict(visible)
        return bound


def _aliased(visible: list[Visible], tree: exp.Expr) -> list[Visible]:
    """What is visible of a relation behind its alias `t` or `t(a, b)`."""
    alias = tree.args.get("alias")
    if alias is None:
        return visible
    columns = [each.name for each in alias.args.get("columns") or []]
    if not columns:
        return [replace(each, table=alias.name) for each in visible]
    return [Visible(alias.name, name, each.own) for each, name in zip(visible, columns, strict=False)] + [
        replace(each, table=alias.name) for each in visible[len(columns) :]
    ]


def _flatten(members: Iterable[Node], conditions: Iterable[Scalar]) -> tuple[tuple[Node, ...], tuple[Scalar, ...]]:
    flat: list[Node] = []
    found = list(conditions)
    for member in members:
        if isinstance(member, InnerJoin):
            flat.extend(member.members)
            found.extend(member.conditions)
        else:
            flat.append(member)
    return tuple(flat), tuple(found)


def _type_in(node: Node, name: str) -> str:
    return next(column.type for column in node.columns if column.name == name)


def _argument_type(call: Aggregation, types: dict[str, str]) -> str:
    return "" if call.argument is None else types[call.argument.as_column or ""]


def rename_outputs(root: Node, names: Sequence[str], types: Sequence[str]) -> Node:
    """The last step: outputs under the names and types that Spark gives the query."""
    renamed = tuple(
        Output(name, col(column.name), type_) for column, name, type_ in zip(root.columns, names, types, strict=True)
    )
    if isinstance(root, Project):
        by_name = {output.name: output.scalar for output in root.outputs}
        return Project(root.input, tuple(replace(each, scalar=each.scalar.substitute(by_name)) for each in renamed))
    return Project(root, renamed)
