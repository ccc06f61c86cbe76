"""What stands in FROM: tables, derived tables, joins of every kind, arrays that are taken apart."""

from __future__ import annotations

from dataclasses import replace

from tests.properties.generator.dice import Around, Known
from tests.properties.generator.expressions import Fields
from tests.properties.generator.windows import Windows
from tests.properties.tree import (
    Call,
    Derived,
    Exploded,
    Item,
    Join,
    Named,
    Pivoted,
    Ref,
    Relation,
    Scalar,
    Select,
    Values,
    outputs,
)

JOINS = {
    "inner_join": 5, "left_join": 3, "right_join": 1.2, "full_join": 1.5, "semi_join": 0.7, "anti_join": 0.7,
    "cross_join": 0.5, "comma_join": 0.5, "using": 1.2, "natural_join": 0.6, "lateral": 0.7,
}  # fmt: skip
WORDS = {
    "inner_join": "JOIN", "left_join": "LEFT JOIN", "right_join": "RIGHT JOIN", "full_join": "FULL JOIN",
    "semi_join": "LEFT SEMI JOIN", "anti_join": "LEFT ANTI JOIN", "cross_join": "CROSS JOIN", "comma_join": ",",
}  # fmt: skip
#: the deeper a query stands, the rarer are further queries in it
DEPTH_MAX = 6


class Relations(Windows):
    def source(self, around: Around) -> tuple[Relation, Fields]:
        """The whole FROM of a SELECT."""
        count = self.few(1, 1, 1, 1, 2, 2, 2, 3, 3, 4) if around.depth == 0 else self.few(1, 1, 1, 2, 2)
        relation, fields = self.member(around)
        for number in range(1, count):
            if self.relations_left <= 0:
                break
            relation, fields = self.joined(around, relation, fields, is_last=number == count - 1)
        if self.wants("explode", 0.06) or self.wants("outer_explode", 0.06):
            return self.exploded(relation, fields)
        return relation, fields

    def member(self, around: Around, outer: Fields = ()) -> tuple[Relation, Fields]:
        """One relation under an alias of its own."""
        alias = self.fresh("m")
        self.relations_left -= 1
        shares = {"table": 10.0, "values": 0.3, "no_from": 0.2}
        if around.depth < DEPTH_MAX and self.relations_left > 0:
            shares["derived_table"] = 4.5 / (1 + around.depth)
            if not around.correlated:
                shares["pivot"] = 0.4 / (1 + around.depth)
        match self.pick(shares):
            case "derived_table":
                query = self.query(around.deeper())
                return Derived(query, alias), _under(alias, outputs(query))
            case "pivot":
                return self.pivoted(around, alias)
            case "values":
                return self.values(alias)
            case "no_from":
                types = [self.choice(self.types) for _ in range(self.few(1, 2))]
                query = Select(tuple(Item(self.literal(type_), self.fresh("c")) for type_ in types))
                return Derived(query, alias), _under(alias, outputs(query))
            case _:
                known = self.known(around)
                return Named(known.name, alias), _under(alias, known.columns)

    def known(self, around: Around) -> Known:
        made = [known for known in around.relations if not known.is_table]
        if made and self.chance(0.6):
            return self.choice(made)
        return self.choice(around.relations)

    def values(self, alias: str) -> tuple[Values, Fields]:
        columns = tuple(Ref(alias, self.fresh("x"), self.choice(self.types)) for _ in range(self.few(1, 2, 2)))
        rows = [tuple(self.literal(column.type) for column in columns) for _ in range(self.few(1, 2, 3))]
        return Values(columns, tuple(rows), alias), columns

    def pivoted(self, around: Around, alias: str) -> tuple[Relation, Fields]:
        source, fields = self.source(around.deeper())
        others = tuple(Item(self.choice(fields), self.fresh("c")) for _ in range(self.few(1, 1, 2)))
        by = Item(self.scalar(self.choice(("int", "string")), fields), self.fresh("c"))
        of = Item(self.scalar(self.choice(("int", "string")), fields), self.fresh("c"))
        aggregate = self.choice(("SUM", "MIN", "MAX") if of.value.type == "int" else ("MIN", "MAX"))
        drawn = dict.fromkeys(self.literal(by.value.type) for _ in range(self.few(1, 2, 3)))
        values = [value for value in drawn if "NULL" not in value.text]
        values = values or [Call("1" if by.value.type == "int" else "'a'", by.value.type)]
        choices = tuple(Item(value, self.fresh("x")) for value in values)
        type_ = "bigint" if aggregate == "SUM" else of.value.type
        turned, shown = Ref("", by.name, by.value.type), Ref("", of.name, of.value.type)
        made = Pivoted(Select((*others, by, of), source), alias, aggregate, shown, turned, choices, type_)
        return made, made.columns

    # ---------------------------------------------------------------- joins

    def joined(
        self, around: Around, left: Relation, fields: Fields, is_last: bool, *, in_parentheses: bool = False
    ) -> tuple[Relation, Fields]:
        shares = dict(JOINS)
        if around.correlated:
            for kind in ("semi_join", "anti_join", "using", "natural_join"):
                del shares[kind]
        if self.products_left <= 0:
            del shares["cross_join"]
            del shares["comma_join"]
        elif in_parentheses:
            del shares["comma_join"]  # Spark has none there
        kind = self.pick(shares)
        if not kind:
            return left, fields
        if kind in ("cross_join", "comma_join"):
            self.products_left -= 1
        if kind == "lateral":
            return self.lateral(around, left, fields, is_last)
        right, added = self.member(around)
        if self.relations_left > 0 and self.wants("nested_join", 0.1):
            right, added = self.joined(around, right, added, is_last=False, in_parentheses=True)
        if kind in ("using", "natural_join"):
            merged = self.merged(kind, left, fields, right, added)
            if merged is not None:
                return merged
            kind = self.pick({"inner_join": 1, "left_join": 1})
        right, added = self.apart(fields, right, added)
        if _bare_twice(fields, added):
            return left, fields
        if kind in ("cross_join", "comma_join"):
            return Join(left, right, WORDS[kind]), fields + added
        conditions, equal = self.on(fields, added)
        if not kind or not conditions:
            # Nothing that the two have in common.
            return (Join(left, right, "CROSS JOIN"), fields + added) if self.weights["cross_join"] else (left, fields)
        shown = fields if kind in ("semi_join", "anti_join") else fields + added
        return Join(left, right, WORDS[kind], conditions, equal=equal), shown

    def on(self, left: Fields, right: Fields) -> tuple[tuple[Scalar, ...], bool]:
        """Conjuncts of ON, and whether one of them is an equality."""
        if self.products_left > 0 and self.wants("non_equi_join", 0.18):
            self.products_left -= 1
            made = self.equality(left, right, ("<", "<>", ">="))
            if made is not None:
                return (made,), False
        found = [self.equality(left, right, ("=", "=", "=", "=", "<=>")) for _ in range(self.few(1, 1, 1, 2))]
        conditions = [each for each in dict.fromkeys(found) if each is not None]
        if not conditions:
            return (), False
        if self.wants("logic", 0.08):
            other = self.equality(left, right, ("=", "<"))
            if other is not None:
                return (Call("({} OR {})", "boolean", (conditions[0], other), "logic"),), False
        if self.chance(0.2):
            # A condition on one side, which an outer join must not mistake for a filter.
            conditions.append(self.predicate(self.choice((left, right, left + right))))
        return tuple(conditions), True

    def merged(
        self, kind: str, left: Relation, fields: Fields, right: Relation, added: Fields
    ) -> tuple[Relation, Fields] | None:
        """A join whose equal names become one column; None where no names, or other names, are shared."""
        mine = {field.name: field for field in fields}
        if len(mine) != len(fields) or not all(field.table for field in fields) or isinstance(right, Join):
            return None
        shared = [field.name for field in added if field.name in mine]
        if not shared or any(mine[field.name].type != field.type for field in added if field.name in shared):
            return None
        if kind == "using":
            shared = shared[: self.few(1, 1, 2)]
        shares = {"inner_join": 3, "left_join": 2, "full_join": 1, "right_join": 0.5}
        if kind == "using":
            # sqlglot writes no NATURAL SEMI JOIN that DuckDB understands
            shares |= {"semi_join": 0.5, "anti_join": 0.5}
        how = self.pick(shares)
        if not how:
            return None
        if how in ("semi_join", "anti_join"):
            return Join(left, right, WORDS[how], using=tuple(shared)), fields
        common = tuple(replace(mine[name], table="") for name in shared)
        rest = tuple(field for field in (*fields, *added) if field.name not in shared)
        join = Join(left, right, WORDS[how], using=tuple(shared), natural=kind == "natural_join")
        return join, common + rest

    def apart(self, fields: Fields, right: Relation, added: Fields) -> tuple[Relation, Fields]:
        """A name that stands for two merged columns must not be a name of the other side as well."""
        apart = not _bare_twice(fields, added) or not self.weights["derived_table"]
        return (right, added) if apart else self.renamed(right, added)

    def renamed(self, relation: Relation, fields: Fields) -> tuple[Relation, Fields]:
        """The relation as a derived table, each column under a new name."""
        alias = self.fresh("m")
        query = Select(tuple(Item(field, self.fresh("c")) for field in fields), relation)
        return Derived(query, alias), _under(alias, outputs(query))

    def lateral(self, around: Around, left: Relation, fields: Fields, is_last: bool) -> tuple[Relation, Fields]:
        """A derived table that looks at the row beside which it stands."""
        outer = tuple(field for field in fields if field.table)
        query = self.correlated_query(around, outer)
        alias = self.fresh("m")
        derived = Derived(query, alias, lateral=True, feature="lateral")
        how = self.pick({"cross_join": 1, "left_join": 1, "inner_join": 1})
        if not how and not is_last:
            return left, fields
        added = _under(alias, outputs(query))
        # Without any of them it is a comma, which must be the last.
        always = () if how in ("", "cross_join") else (Call("TRUE", "boolean"),)
        return Join(left, derived, WORDS[how or "comma_join"], always), fields + added

    def correlated_query(self, around: Around, outer: Fields) -> Select:
        raise AssertionError("provided by the part that makes subqueries")

    # ---------------------------------------------------------------- arrays

    def exploded(self, relation: Relation, fields: Fields) -> tuple[Relation, Fields]:
        alias = self.fresh("e")
        strings = [field for field in fields if field.type == "string"]
        if strings and self.chance(0.5):
            array: Scalar = Call("SPLIT({}, ',')", "array", (self.choice(strings),))
            column = Ref(alias, self.fresh("x"), "string")
        elif self.chance(0.3):
            array = Call(f"SEQUENCE(1, {self.few(1, 2, 3)})", "array")
            column = Ref(alias, self.fresh("x"), "int")
        else:
            parts = (self.scalar("int", fields), self.scalar("int", fields))
            array, column = Call("ARRAY({}, {})", "array", parts), Ref(alias, self.fresh("x"), "int")
        outer = self.wants("outer_explode", 0.5)
        return Exploded(relation, array, column, outer or not self.weights["explode"]), (*fields, column)


def _under(alias: str, columns: Fields) -> Fields:
    return tuple(replace(column, table=alias) for column in columns)


def _bare_twice(fields: Fields, added: Fields) -> bool:
    """Is there a name that two merged columns share, and that is one of the other side as well?"""
    both = {field.name for field in fields} & {field.name for field in added}
    return any(field.name in both and not field.table for field in (*fields, *added))
