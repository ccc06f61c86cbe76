"""Whole queries and whole cases from a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.properties.case import Case, Table
from tests.properties.features import Weights
from tests.properties.generator.dice import Around, Known
from tests.properties.generator.expressions import Fields
from tests.properties.generator.recursion import Recursions
from tests.properties.generator.relations import DEPTH_MAX
from tests.properties.tree import (
    Call,
    Cte,
    Item,
    Named,
    Order,
    Query,
    Recursion,
    Ref,
    Scalar,
    Select,
    SetOperation,
    With,
    outputs,
    with_names,
)
from tests.properties.types import is_comparable
from tests.properties.walk import rebuilt, walk

SETS = {"union": 1, "union_all": 3, "intersect": 0.7, "intersect_all": 0.7, "except": 0.7, "except_all": 0.7}
#: rows of these meet often
FEW_VALUES = ("int", "int", "string", "string", "boolean", "date")
GROUPED = ("group_by", "global_aggregate")


class Generator(Recursions):
    """One seed, one case."""

    def __init__(self, seed: int, chosen: Weights | None = None) -> None:
        super().__init__(seed, chosen)
        self.ties = self.wants("ties", 0.06)

    def case(self) -> Case:
        tables = self.tables()
        query, left = self.query(Around(self.known_tables(tables))), self.relations_left
        while not reads_a_table(query):
            self.relations_left = max(left, 1)
            query = self.select(Around(self.known_tables(tables)), None)
        query = self.with_names_of_tables(query, tables)
        used = tuple(table for table in tables if table.name in names_in(query))
        steps = tuple(self.step(used if self.chance(0.9) else tables) for _ in range(self.few(1, 2, 2, 3)))
        return Case(tables, query, steps, self.ties)

    def known_tables(self, tables: tuple[Table, ...]) -> tuple[Known, ...]:
        """Doubles whose sums differ by rounding are told from those whose sums do not."""
        noisy = 0.1 in self.doubles
        return tuple(
            Known(
                t.name, tuple(Ref("", c.name, "ratio" if noisy and c.type == "double" else c.type) for c in t.columns)
            )
            for t in tables
        )

    # ---------------------------------------------------------------- queries

    def with_names_of_tables(self, query: Query, tables: tuple[Table, ...]) -> Query:
        """A WITH may be named like a table, also like the one that it reads, if nobody means the table behind it."""
        for made in [node for node in walk(query) if isinstance(node, With)]:
            recursive = any(isinstance(cte, Recursion) for cte in made.ctes)
            if recursive or not made.ctes or not self.wants("cte_like_table", 0.3):
                continue
            place = self.few(*range(len(made.ctes)))
            behind = (*made.ctes[place + 1 :], made.body)
            free = [table.name for table in tables if table.name not in names_in(behind) | ctes_in(query)]
            if free:
                own, name = made.ctes[place].name, self.choice(free)
                named = replace(made.ctes[place], name=name, like_table=True)
                others = rebuilt(behind, lambda node, own=own, name=name: _called(node, own, name))
                shadowed = With((*made.ctes[:place], named, *others[:-1]), others[-1])
                query = rebuilt(query, lambda node, made=made, shadowed=shadowed: shadowed if node == made else node)
        return query

    def query(self, around: Around, want: tuple[str, ...] | None = None) -> Query:
        rest = 1 / (1 + around.depth)
        if around.depth < DEPTH_MAX and self.relations_left > 1:
            if self.wants("cte", 0.15 * rest) or self.wants("recursive", 0.05 * rest):
                return self.with_(around, want)
            sets = {name: share for name, share in SETS.items() if self.weights[name]}
            if sets and self.chance(0.22 * rest):
                return self.set_operation(around, want, self.pick(sets))
        return self.select(around, want)

    def set_operation(self, around: Around, want: tuple[str, ...] | None, kind: str) -> Query:
        types = want or tuple(self.choice((*FEW_VALUES, *self.types)) for _ in range(self.few(1, 1, 2, 3)))
        left = self.query(around.deeper(), types)
        if isinstance(left, Select) and left.limit is None and self.chance(0.4):
            # Two looks at the same rows, so that there is something in common.
            others = tuple(self.fresh("c") for _ in left.items)
            right: Query = with_names(replace(left, where=(), qualify=()), others)
        else:
            right = self.query(around.deeper(), types)
        arms = (left, right) if self.chance(0.7) else (right, left)
        return SetOperation(*arms, kind.upper().replace("_", " "))

    def with_(self, around: Around, want: tuple[str, ...] | None) -> With:
        """One or more named queries; a later one may use those before it, and the body each of them several times."""
        relations = around.relations
        ctes: list[Cte | Recursion] = []
        for _ in range(self.few(1, 1, 2)):
            inner = Around(relations, around.depth + 1)
            if self.wants("recursive", 0.25) or not self.weights["cte"]:
                made: Cte | Recursion | None = self.recursion(inner)
            else:
                name = self.fresh("r")
                made = Cte(name, self.query(inner))
            if made is None:
                continue
            columns = made.columns if isinstance(made, Recursion) else outputs(made.query)
            relations = (Known(made.name, columns, is_table=False), *relations)
            ctes.append(made)
        # What was named shall be used, also where there is not much left to be used.
        self.relations_left = max(self.relations_left, 2)
        body = self.select(Around(relations, around.depth), want)
        return With(tuple(ctes), body) if ctes else With((), body)

    def select(self, around: Around, want: tuple[str, ...] | None) -> Select:
        source, fields = self.source(around)
        where = (
            self.conditions(around, fields, 0, 0, 0, 1, 1, 2)
            if around.depth == 0
            else self.conditions(around, fields, 0, 0, 1)
        )
        grouped = any(self.weights[name] for name in GROUPED)
        if grouped and self.chance(0.38):
            made = self.grouped(around, source, fields, where, want)
            made = self.with_windows_over_groups(made) if want is None else made
        else:
            made = self.plain(around, Select((), source, where), fields, want)
        return self.finished(made)

    def plain(self, around: Around, made: Select, fields: Fields, want: tuple[str, ...] | None) -> Select:
        """Without groups: expressions, window functions and subqueries."""
        values: list[Scalar]
        if want is not None:
            values = [self.scalar(type_, fields) for type_ in want]
        else:
            values = [self.expression(fields) for _ in range(self.few(1, 2, 2, 3))]
            if self.chance(0.15) and (nested := self.subquery_value(around, fields)) is not None:
                values.append(nested)
        windows = self.windows(fields, 1, 1, 2, 3) if self.chance(0.2) else []
        for window in windows:
            if want is None:
                values.append(self.in_expression(window))
            elif window.type in want:
                values[want.index(window.type)] = window
        qualify: tuple[Scalar, ...] = ()
        if windows and self.wants("qualify", 0.3):
            number = next((window for window in windows if window.type in ("int", "bigint")), None)
            if number is not None:
                qualify = (Call(f"({{}} {self.choice(('<=', '=', '<'))} {self.few(1, 2)})", "boolean", (number,)),)
        items = tuple(Item(value, self.fresh("c")) for value in values)
        named = bool(windows) and self.wants("named_window", 0.1)
        named = named and bool(windows[0].specification()) and any(item.value == windows[0] for item in items)
        return Select(items, made.source, made.where, qualify=qualify, named_window=named)

    def in_expression(self, window: Scalar) -> Scalar:
        if window.type in ("int", "bigint") and self.wants("arithmetic", 0.2):
            return Call("({} + 1)", window.type, (window,), "arithmetic")
        if self.wants("case", 0.1):
            return Call("CASE WHEN ({} IS NULL) THEN 'none' ELSE 'some' END", "string", (window,), "case")
        return window

    def with_windows_over_groups(self, made: Select) -> Select:
        """Ranks of groups, and sums of sums."""
        grouping = made.grouping
        if grouping is None or not grouping.keys or grouping.how or not self.wants("window_over_groups", 0.2):
            return made
        keys, number = grouping.keys, next((i.value for i in made.items if i.value.type in ("bigint", "int")), None)
        if number is None or not all(is_comparable(key.type) for key in keys):
            return made
        made_of_groups = self.choice(
            (
                ("RANK() OVER (ORDER BY {0} DESC)", "int"),
                (
                    "ROW_NUMBER() OVER (ORDER BY {0}, " + ", ".join(f"{{{n}}}" for n in range(1, len(keys) + 1)) + ")",
                    "int",
                ),
                ("SUM({0}) OVER (PARTITION BY {1})", "bigint"),
                ("SUM(COUNT(*)) OVER (ORDER BY {1})", "bigint"),
            )
        )
        value = Call(made_of_groups[0], made_of_groups[1], (number, *keys), "window_over_groups")
        return replace(made, items=(*made.items, Item(value, self.fresh("c"))))

    def finished(self, made: Select) -> Select:
        """DISTINCT, and ORDER BY with LIMIT through every output."""
        if not all(is_comparable(item.value.type) for item in made.items):
            return made
        distinct = self.wants("distinct", 0.1)
        columns = tuple(Ref("", item.name, item.value.type) for item in made.items)
        if not self.wants("top_k", 0.1):
            return replace(made, distinct=distinct)
        order: tuple[Order, ...] = self.total(columns)
        offset = self.few(0, 1, 2) if self.wants("offset", 0.35) else 0
        return replace(made, distinct=distinct, order=order, limit=self.few(1, 2, 3, 3, 5), offset=offset)


def reads_a_table(query: Query) -> bool:
    """What reads none would never change."""
    return bool(names_in(query) - ctes_in(query))


def names_in(part: object) -> set[str]:
    return {node.name for node in walk(part) if isinstance(node, Named)}


def ctes_in(query: Query) -> set[str]:
    return {node.name for node in walk(query) if isinstance(node, Cte | Recursion)}


def _called(node: Any, old: str, new: str) -> Any:
    return replace(node, name=new) if isinstance(node, Named) and node.name == old else node
