"""Queries inside expressions: IN, EXISTS, scalar subqueries, LATERAL; alone or looking at the row around them."""

from __future__ import annotations

from dataclasses import replace

from tests.properties.generator.dice import Around
from tests.properties.generator.expressions import Fields
from tests.properties.generator.relations import DEPTH_MAX, Relations
from tests.properties.tree import Call, Grouping, Item, Order, Query, Ref, Scalar, Select
from tests.properties.types import NUMBERS, PLAIN, is_comparable

PREDICATES = {
    "in_subquery": 3, "not_in_subquery": 2, "exists": 2.5, "not_exists": 2, "scalar_subquery": 2.5, "in_pair": 0.5,
    "not_in_pair": 0.7,
}  # fmt: skip


class Subqueries(Relations):
    # ---------------------------------------------------------------- conditions

    def subquery_predicate(self, around: Around, fields: Fields) -> Scalar | None:
        """A condition with a query in it; None where there is no place for one."""
        if around.depth >= DEPTH_MAX or self.relations_left <= -2:
            return None
        kind = self.pick(PREDICATES)
        made = self._predicate(kind, around, fields) if kind else None
        if made is not None and self.wants("subquery_under_or", 0.15):
            return Call("({} OR {})", "boolean", (made, self.predicate(fields)), "subquery_under_or")
        return made

    def _predicate(self, kind: str, around: Around, fields: Fields) -> Scalar | None:
        outer = tuple(field for field in fields if field.table)
        usable = [field for field in fields if field.type in PLAIN]
        if kind in ("exists", "not_exists"):
            word = "EXISTS {}" if kind == "exists" else "NOT EXISTS {}"
            return Call(f"({word})", "boolean", (self.looked_for(around, outer),), kind)
        if not usable:
            return None
        value = self.choice(usable)
        match kind:
            case "in_pair" | "not_in_pair":
                other = self.choice(usable)
                query = self.column_query(around, outer, (value.type, other.type))
                word = "IN" if kind == "in_pair" else "NOT IN"
                return Call(f"(({{}}, {{}}) {word} {{}})", "boolean", (value, other, query), kind)
            case "in_subquery" | "not_in_subquery":
                query = self.column_query(around, outer, (value.type,))
                return Call(
                    "({} IN {})" if kind == "in_subquery" else "({} NOT IN {})", "boolean", (value, query), kind
                )
            case _:
                numbers = [field for field in usable if field.type in NUMBERS]
                if not numbers:
                    return None
                scalar = self.one_number(around, outer)
                operator = self.choice(("=", "<", ">", "<=", "<>"))
                return Call(f"({{}} {operator} {{}})", "boolean", (self.choice(numbers), scalar), kind)

    def subquery_value(self, around: Around, fields: Fields) -> Scalar | None:
        """A subquery in a SELECT list: as it is, or in an expression."""
        if self.relations_left <= -2 or not self.wants("subquery_in_select", 1):
            return None
        feature = "subquery_in_select"
        if self.wants("scalar_subquery", 0.5):
            outer = tuple(field for field in fields if field.table)
            return Call("{}", "wide", (self.one_number(around, outer),), feature)
        condition = self.subquery_predicate(around, fields)
        if condition is None:
            return None
        if self.wants("case", 0.6):
            return Call("CASE WHEN {} THEN 1 ELSE 0 END", "int", (condition,), feature)
        return Call("{}", "boolean", (condition,), feature)

    # ---------------------------------------------------------------- the queries

    def column_query(self, around: Around, outer: Fields, types: tuple[str, ...]) -> Query:
        """For IN: any query that has such columns, or one that looks outside."""
        if not self.is_correlated(outer):
            return self.query(around.deeper(), types)
        source, fields = self.source(around.deeper(correlated=True))
        where = self.correlation(outer, fields) + self.conditions(around.deeper(), fields, 0, 0, 1)
        return Select(tuple(Item(self.scalar(t, fields), self.fresh("c")) for t in types), source, where)

    def looked_for(self, around: Around, outer: Fields) -> Query:
        """For EXISTS, where only the number of rows matters."""
        correlated = self.is_correlated(outer)
        source, fields = self.source(around.deeper(correlated=correlated))
        where = self.correlation(outer, fields) if correlated else ()
        where += self.conditions(around.deeper(), fields, 0, 0, 1)
        item = Item(self.choice((Call("1", "int"), *fields[:2])), self.fresh("c"))
        if self.wants("having", 0.08) and self.wants("group_by", 1):
            key = next((field for field in fields if is_comparable(field.type)), None)
            if key is not None:
                condition = Call("(COUNT(*) > 1)", "boolean")
                return Select((Item(key, item.name),), source, where, Grouping((key,)), (condition,))
        return Select((item,), source, where)

    def one_number(self, around: Around, outer: Fields) -> Query:
        """A query that gives one row with a number, whatever the tables hold."""
        correlated = self.is_correlated(outer)
        source, fields = self.source(around.deeper(correlated=correlated))
        where = self.correlation(outer, fields) if correlated else ()
        where += self.conditions(around.deeper(), fields, 0, 0, 1)
        integers = [field for field in fields if field.type in ("int", "bigint")]
        if integers and not correlated and self.wants("top_k", 0.2):
            item = Item(self.choice(integers), self.fresh("c"))
            order = (Order(Ref("", item.name, item.value.type), self.choice(("", "DESC"))),)
            return Select((item,), source, where, order=order, limit=1)
        made = next((m for m in (self.aggregate(fields, False) for _ in range(5)) if m.type in NUMBERS), None)
        made = made or Call("COUNT(*)", "bigint", (), "count")
        return Select((Item(made, self.fresh("c")),), source, where, Grouping(()))

    def correlated_query(self, around: Around, outer: Fields) -> Select:
        """For LATERAL: rows, groups or the first few rows that belong to the row outside; or an expression of it."""
        if outer and self.wants("no_from", 0.25):
            values = [self.expression(outer) for _ in range(self.few(1, 2))]
            return Select(tuple(Item(value, self.fresh("c")) for value in values))
        inner = around.deeper()
        source, fields = self.source(around.deeper(correlated=True))
        where = self.correlation(outer, fields) + self.conditions(inner, fields, 0, 0, 1)
        if self.wants("group_by", 0.4) and self.wants("global_aggregate", 1):
            items = tuple(Item(self.aggregate(fields, False), self.fresh("c")) for _ in range(self.few(1, 2)))
            return Select(items, source, where, Grouping(()))
        items = tuple(Item(self.expression(fields), self.fresh("c")) for _ in range(self.few(1, 2)))
        made = Select(items, source, where)
        if self.wants("top_k", 0.2) and all(is_comparable(item.value.type) for item in items):
            columns = tuple(Ref("", item.name, item.value.type) for item in items)
            return replace(made, order=self.total(columns), limit=self.few(1, 2))
        return made

    # ---------------------------------------------------------------- looking outside

    def is_correlated(self, outer: Fields) -> bool:
        return bool(outer) and self.wants("correlated", 0.6)

    def correlation(self, outer: Fields, fields: Fields) -> tuple[Scalar, ...]:
        """What ties the rows inside to the row outside."""
        if self.wants("correlated_inequality", 0.25):
            made = self.equality(fields, outer, ("<", "<>", ">="))
            feature = "correlated_inequality"
        else:
            made, feature = self.equality(fields, outer, ("=", "=", "=", "<=>")), "correlated"
        if not isinstance(made, Call):
            return ()
        return (replace(made, feature=feature),)
