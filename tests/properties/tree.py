"""Generated queries as values: scalars, relations and queries that can be written as SQL, walked and cut.

A scalar is a piece of text with a place for each of its parts, so that one class is every function and operator.
Types are Spark's, but for a few words of the generator's own that say more (see `types.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.properties.walk import rebuilt


@dataclass(frozen=True)
class Ref:
    """A column by its name; `table` is empty for what a join merged, and for outputs of the same SELECT."""

    table: str
    name: str
    type: str

    def sql(self) -> str:
        return f"{self.table}.{self.name}" if self.table else self.name


@dataclass(frozen=True)
class Call:
    """Any expression: its text with {} for each part."""

    text: str
    type: str
    parts: tuple[Scalar | Query, ...] = ()
    feature: str = ""

    def sql(self) -> str:
        return self.text.format(*map(written, self.parts)) if self.parts else self.text


@dataclass(frozen=True)
class Order:
    by: Scalar
    #: DESC, NULLS LAST and the like
    how: str = ""

    def sql(self) -> str:
        return f"{self.by.sql()} {self.how}".rstrip()


@dataclass(frozen=True)
class Window:
    function: Call
    partition: tuple[Scalar, ...] = ()
    order: tuple[Order, ...] = ()
    frame: str = ""

    @property
    def type(self) -> str:
        return self.function.type

    @property
    def feature(self) -> str:
        if self.frame:
            return "rows_frame" if self.frame.startswith("ROWS") else "range_frame"
        return ""

    def specification(self) -> str:
        parts = [f"PARTITION BY {listed(self.partition)}"] if self.partition else []
        parts += [f"ORDER BY {listed(self.order)}"] if self.order else []
        return " ".join([*parts, self.frame]).rstrip()

    def sql(self) -> str:
        return f"{self.function.sql()} OVER ({self.specification()})"


Scalar = Ref | Call | Window


# ---------------------------------------------------------------- relations


@dataclass(frozen=True)
class Named:
    """A table, or what a WITH made, under an alias."""

    name: str
    alias: str

    def sql(self) -> str:
        return f"{self.name} AS {self.alias}"


@dataclass(frozen=True)
class Derived:
    query: Query
    alias: str
    lateral: bool = False
    feature: str = "derived_table"

    def sql(self) -> str:
        return f"{'LATERAL ' if self.lateral else ''}({self.query.sql()}) AS {self.alias}"


@dataclass(frozen=True)
class Values:
    columns: tuple[Ref, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    alias: str
    feature: str = "values"

    def sql(self) -> str:
        rows = ", ".join(f"({listed(row)})" for row in self.rows)
        return f"(VALUES {rows}) AS {self.alias}({', '.join(column.name for column in self.columns)})"


JOIN_FEATURES = {
    "JOIN": "inner_join",
    "LEFT JOIN": "left_join",
    "RIGHT JOIN": "right_join",
    "FULL JOIN": "full_join",
    "CROSS JOIN": "cross_join",
    ",": "comma_join",
    "LEFT SEMI JOIN": "semi_join",
    "LEFT ANTI JOIN": "anti_join",
}


@dataclass(frozen=True)
class Join:
    left: Relation
    right: Relation
    how: str
    on: tuple[Scalar, ...] = ()
    using: tuple[str, ...] = ()
    natural: bool = False
    #: is there an equality between the sides?
    equal: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        # A comma before LATERAL joins nothing: the row itself says what belongs to it.
        lateral = isinstance(self.right, Derived) and self.right.lateral and self.how == ","
        found = [] if lateral else [JOIN_FEATURES[self.how]]
        found += ["using"] if self.using and not self.natural else []
        found += ["natural_join"] if self.natural else []
        found += ["non_equi_join"] if self.on and not self.equal else []
        found += ["nested_join"] if isinstance(self.right, Join) else []
        return tuple(found)

    def sql(self) -> str:
        right = f"({self.right.sql()})" if isinstance(self.right, Join) else self.right.sql()
        if self.how == ",":
            return f"{self.left.sql()}, {right}"
        text = f"{self.left.sql()} {'NATURAL ' if self.natural else ''}{self.how} {right}"
        if self.using and not self.natural:
            return f"{text} USING ({', '.join(self.using)})"
        if self.on:
            return f"{text} ON {' AND '.join(each.sql() for each in self.on)}"
        return text if self.natural or "CROSS" in self.how else f"{text} ON TRUE"


@dataclass(frozen=True)
class Exploded:
    """Each row of a relation once for each element of an array. Stands at the end of FROM."""

    input: Relation
    array: Scalar
    column: Ref
    outer: bool = False

    @property
    def feature(self) -> str:
        return "outer_explode" if self.outer else "explode"

    def sql(self) -> str:
        word = "LATERAL VIEW OUTER" if self.outer else "LATERAL VIEW"
        return f"{self.input.sql()} {word} explode({self.array.sql()}) {self.column.table} AS {self.column.name}"


@dataclass(frozen=True)
class Pivoted:
    """A row for each group of all other columns, with an aggregate for each value of one of them."""

    query: Query
    alias: str
    #: SUM, MIN or MAX
    aggregate: str
    of: Ref
    by: Ref
    #: a value, and the name of its column
    choices: tuple[Item, ...]
    type: str
    feature: str = "pivot"

    @property
    def columns(self) -> tuple[Ref, ...]:
        others = [each for each in outputs(self.query) if each.name not in (self.of.name, self.by.name)]
        made = [Ref(self.alias, choice.name, self.type) for choice in self.choices]
        return (*(Ref(self.alias, each.name, each.type) for each in others), *made)

    def sql(self) -> str:
        made = f"{self.aggregate}({self.of.name}) FOR {self.by.name} IN ({listed(self.choices)})"
        return f"(SELECT * FROM ({self.query.sql()}) PIVOT ({made})) AS {self.alias}"


Relation = Named | Derived | Values | Join | Exploded | Pivoted


# ---------------------------------------------------------------- queries


@dataclass(frozen=True)
class Item:
    value: Scalar
    name: str

    def sql(self) -> str:
        return f"{self.value.sql()} AS {self.name}"


@dataclass(frozen=True)
class Grouping:
    keys: tuple[Scalar, ...]
    #: ROLLUP, CUBE, GROUPING SETS or nothing
    how: str = ""
    #: of GROUPING SETS, by the numbers of the keys
    sets: tuple[tuple[int, ...], ...] = ()
    #: how many keys stand before ROLLUP or CUBE, and are grouped by in any case
    before: int = 0
    #: how a key that is also shown is spelled: as it is, by its ordinal or by its alias
    spelled: str = ""

    @property
    def features(self) -> tuple[str, ...]:
        kind = self.how.lower().replace(" ", "_") or ("group_by" if self.keys else "global_aggregate")
        return (kind, f"group_by_{self.spelled}") if self.spelled else (kind,)

    def sql(self, items: tuple[Item, ...]) -> str:
        keys = [self._key(key, items) for key in self.keys]
        match self.how:
            case "":
                return ", ".join(keys)
            case "GROUPING SETS":
                sets = ", ".join(f"({', '.join(keys[number] for number in each)})" for each in self.sets)
                return f"GROUPING SETS ({sets})"
            case how:
                return ", ".join([*keys[: self.before], f"{how} ({', '.join(keys[self.before :])})"])

    def _key(self, key: Scalar, items: tuple[Item, ...]) -> str:
        place = next((number for number, item in enumerate(items) if item.value == key), None)
        if place is None or not self.spelled or self.how:
            return key.sql()
        return str(place + 1) if self.spelled == "ordinal" else items[place].name


@dataclass(frozen=True)
class Select:
    items: tuple[Item, ...]
    source: Relation | None = None
    where: tuple[Scalar, ...] = ()
    #: None where nothing is grouped
    grouping: Grouping | None = None
    having: tuple[Scalar, ...] = ()
    qualify: tuple[Scalar, ...] = ()
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    #: is a window given a name where it can be?
    named_window: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        found = [("filter", self.where), ("having", self.having), ("qualify", self.qualify)]
        found += [("distinct", self.distinct), ("offset", self.offset), ("top_k", self.limit is not None)]
        found += [("no_from", self.source is None), ("named_window", self.named_window)]
        return tuple(name for name, is_there in found if is_there)

    def sql(self) -> str:
        parts = ["SELECT DISTINCT" if self.distinct else "SELECT", listed(self.items)]
        if self.source is not None:
            parts += ["FROM", self.source.sql()]
        if self.where:
            parts += ["WHERE", _all(self.where)]
        if self.grouping is not None and self.grouping.keys:
            parts += ["GROUP BY", self.grouping.sql(self.items)]
        if self.having:
            parts += ["HAVING", _all(self.having)]
        if self.named_window and (window := self._first_window()):
            # Of its own name, because DuckDB keeps one list of them for all queries of a WITH.
            name = f"w_{self.items[0].name}"
            parts = [part.replace(f"OVER ({window})", f"OVER {name}") for part in parts]
            parts += [f"WINDOW {name} AS ({window})"]
        if self.qualify:
            parts += ["QUALIFY", _all(self.qualify)]
        if self.order:
            parts += ["ORDER BY", listed(self.order)]
        if self.limit is not None:
            parts += [f"LIMIT {self.limit}"]
        if self.offset:
            parts += [f"OFFSET {self.offset}"]
        return " ".join(parts)

    def _first_window(self) -> str:
        """Of this SELECT: those inside of an item may be of a subquery."""
        found = (item.value for item in self.items if isinstance(item.value, Window))
        return next((window.specification() for window in found), "")


@dataclass(frozen=True)
class SetOperation:
    left: Query
    right: Query
    #: UNION, UNION ALL, INTERSECT, …
    how: str

    @property
    def feature(self) -> str:
        return self.how.lower().replace(" ", "_")

    def sql(self) -> str:
        return f"{_arm(self.left)} {self.how} {_arm(self.right)}"


@dataclass(frozen=True)
class Cte:
    name: str
    query: Query
    #: has it the name of a table, which nothing behind it can mean any more?
    like_table: bool = False
    feature: str = "cte"

    @property
    def features(self) -> tuple[str, ...]:
        return ("cte_like_table",) if self.like_table else ()

    def sql(self) -> str:
        return f"{self.name} AS ({self.query.sql()})"


@dataclass(frozen=True)
class Recursion:
    """`name(columns)`: the anchor, and what follows from each row that was found in the round before."""

    name: str
    columns: tuple[Ref, ...]
    anchor: Select
    step: Select
    feature: str = "recursive"

    def sql(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"{self.name}({names}) AS ({self.anchor.sql()} UNION ALL {self.step.sql()})"


@dataclass(frozen=True)
class With:
    ctes: tuple[Cte | Recursion, ...]
    body: Query

    def sql(self) -> str:
        if not self.ctes:
            return self.body.sql()
        word = "WITH RECURSIVE" if any(isinstance(cte, Recursion) for cte in self.ctes) else "WITH"
        return f"{word} {listed(self.ctes)} {_arm(self.body) if isinstance(self.body, With) else self.body.sql()}"


Query = Select | SetOperation | With


# ---------------------------------------------------------------- helpers


def outputs(query: Query) -> tuple[Ref, ...]:
    """The columns that a query gives, by their names."""
    match query:
        case Select():
            return tuple(Ref("", item.name, item.value.type) for item in query.items)
        case SetOperation():
            return outputs(query.left)
        case With():
            return outputs(query.body)


def with_names(query: Query, names: tuple[str, ...]) -> Query:
    """The same query with other names for its outputs."""
    match query:
        case Select():
            renamed = dict(zip((item.name for item in query.items), names, strict=True))

            def change(node: Any) -> Any:
                hit = isinstance(node, Ref) and not node.table and node.name in renamed
                return replace(node, name=renamed[node.name]) if hit else node

            items = tuple(Item(item.value, name) for item, name in zip(query.items, names, strict=True))
            return replace(
                query,
                items=items,
                order=rebuilt(query.order, change),
                having=rebuilt(query.having, change),
            )
        case SetOperation():
            return replace(query, left=with_names(query.left, names))
        case With():
            return replace(query, body=with_names(query.body, names))


def written(part: Scalar | Query) -> str:
    return f"({part.sql()})" if isinstance(part, Select | SetOperation | With) else part.sql()


def listed(parts: tuple[Any, ...]) -> str:
    return ", ".join(part.sql() for part in parts)


def _all(conditions: tuple[Scalar, ...]) -> str:
    return " AND ".join(each.sql() for each in conditions)


def _arm(query: Query) -> str:
    plain = isinstance(query, Select) and not query.order and query.limit is None
    return query.sql() if plain else f"({query.sql()})"
