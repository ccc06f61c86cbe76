"""Aggregate functions over the columns of a query, and GROUP BY around them."""

from __future__ import annotations

from collections.abc import Callable

from tests.properties.generator.dice import Around
from tests.properties.generator.expressions import Expressions, Fields
from tests.properties.tree import Call, Grouping, Item, Ref, Relation, Scalar, Select
from tests.properties.types import NUMBERS, SUMMED, avg_type, is_comparable, sum_type

#: how often which aggregate comes
SHARES = {
    "count": 4, "sum": 5, "avg": 2, "min_max": 3, "count_distinct": 1.5, "sum_distinct": 0.7, "bool_aggregates": 0.7,
    "variance": 0.7, "covariance": 0.4, "count_if": 0.5, "max_by": 0.8, "collect_list": 0.5, "string_agg": 0.5,
    "percentile": 0.4,
}  # fmt: skip
#: what gives an empty or a NULL list of nothing, as DuckDB and Spark see it differently
NEEDS_ROWS = ("collect_list",)

STEPS = {"": 10, "rollup": 1, "cube": 0.7, "grouping_sets": 1}


class Aggregates(Expressions):
    # ---------------------------------------------------------------- calls

    def aggregate(self, fields: Fields, grouped: bool) -> Call:
        """One aggregate; `grouped` says that no group is empty."""
        shares = {name: share for name, share in SHARES.items() if grouped or name not in NEEDS_ROWS}
        made = self._aggregate(self.pick(shares, otherwise="count"), fields)
        if self.wants("filter_clause", 0.12) and "ARRAY_JOIN" not in made.text:
            return Call("{} FILTER (WHERE {})", made.type, (made, self.predicate(fields)), "filter_clause")
        return made

    def _aggregate(self, kind: str, fields: Fields) -> Call:
        match kind:
            case "count":
                if self.chance(0.5):
                    return Call("COUNT(*)", "bigint", (), kind)
                return Call("COUNT({})", "bigint", (self.some(fields),), kind)
            case "sum":
                number = self.number(fields)
                return Call("SUM({})", sum_type(number.type), (number,), kind)
            case "avg":
                number = self.number(fields)
                return Call("AVG({})", avg_type(number.type), (number,), kind)
            case "min_max":
                value = self.some(fields)
                return Call(self.choice(("MIN({})", "MAX({})")), value.type, (value,), kind)
            case "count_distinct":
                one, other = self.some(fields), self.some(fields)
                if self.chance(0.15):
                    return Call("COUNT(DISTINCT {}, {})", "bigint", (one, other), kind)
                return Call("COUNT(DISTINCT {})", "bigint", (one,), kind)
            case "sum_distinct":
                number = self.number(fields)
                name = "AVG" if sum_type(number.type) != "wide" and self.chance(0.3) else "SUM"
                type_ = avg_type(number.type) if name == "AVG" else sum_type(number.type)
                return Call(f"{name}(DISTINCT {{}})", type_, (number,), kind)
            case "bool_aggregates":
                return Call(self.choice(("BOOL_AND({})", "BOOL_OR({})")), "boolean", (self.predicate(fields),), kind)
            case "count_if":
                return Call("COUNT_IF({})", "bigint", (self.predicate(fields),), kind)
            case "variance":
                names = ("STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP")
                return Call(f"{self.choice(names)}({{}})", "real", (self.number(fields),), kind)
            case "covariance":
                names = ("COVAR_POP", "COVAR_SAMP", "COVAR_POP", "CORR")
                return Call(
                    f"{self.choice(names)}({{}}, {{}})", "real", (self.number(fields), self.number(fields)), kind
                )
            case "max_by":
                return self._extreme_by(fields)
            case "percentile":
                return self.percentile(fields, kind)
            case "collect_list":
                # In order, and never empty: of that Spark makes an empty list, DuckDB NULL.
                word = self.choice(("LIST", "SET", "LIST"))
                text = f"ARRAY_JOIN(SORT_ARRAY(COLLECT_{word}(COALESCE({{}}, '-'))), ',')"
                return Call(text, "string", (self.scalar("string", fields),), kind)
            case _:
                order = self.choice(("", " DESC"))
                word = self.choice(("LISTAGG", "STRING_AGG"))
                # Not a constant: by those DuckDB orders nothing.
                part = next((field for field in fields if field.type == "string"), None)
                if part is None:
                    return Call("COUNT(*)", "bigint", (), "count")
                return Call(f"{word}({{0}}, '+') WITHIN GROUP (ORDER BY {{0}}{order})", "string", (part,), kind)

    def percentile(self, fields: Fields, feature: str) -> Call:
        """Of whole numbers, between which the middle is exact."""
        word, order = self.choice(("PERCENTILE_CONT", "PERCENTILE_DISC")), self.choice(("", " DESC"))
        return Call(f"{word}(0.5) WITHIN GROUP (ORDER BY {{}}{order})", "real", (self.scalar("int", fields),), feature)

    def _extreme_by(self, fields: Fields) -> Call:
        """MAX_BY where what decides tells also which value is meant, so that there are no ties."""
        word = self.choice(("MAX_BY", "MIN_BY"))
        value = self.scalar("int", fields)
        if self.chance(0.4):
            value = self.scalar("string", fields)
            return Call(
                f"{word}({{0}}, CONCAT({{1}}, '|', COALESCE({{0}}, '~')))",
                "string",
                (value, self.scalar("string", fields)),
                "max_by",
            )
        rank = self.scalar("int", fields)
        return Call(
            f"{word}({{0}}, ({{1}} * 10000 + COALESCE({{0}} % 1000, -5000)))",
            "int",
            (Call("({} % 1000)", "int", (value,)), rank),
            "max_by",
        )

    def some(self, fields: Fields) -> Scalar:
        """A value that can be compared; mostly just a column."""
        usable = [field for field in fields if is_comparable(field.type)]
        if usable and self.chance(0.75):
            return self.choice(usable)
        return self.scalar(self.choice(usable).type if usable else "int", fields)

    def number(self, fields: Fields) -> Scalar:
        usable = [field for field in fields if field.type in NUMBERS]
        if usable and self.chance(0.7):
            return self.choice(usable)
        return self.scalar(self.choice(SUMMED), fields)

    # ---------------------------------------------------------------- groups

    def keys(self, fields: Fields, want: tuple[str, ...] | None) -> tuple[Scalar, ...]:
        if not self.wants("group_by", 0.82):
            return ()
        types = [type_ for type_ in want or () if is_comparable(type_)]
        found: list[Scalar] = []
        for _ in range(self.few(1, 1, 1, 2, 2, 3)):
            wanted = [field for field in fields if field.type in types]
            usable = wanted or [field for field in fields if is_comparable(field.type)]
            if not usable:
                break
            key: Scalar = self.choice(usable)
            if self.chance(0.2):
                made = self.scalar(key.type, fields)
                key = made if not isinstance(made, Call) or made.parts else key
            if key not in found:
                found.append(key)
        return tuple(found)

    def grouped(
        self, around: Around, source: Relation, fields: Fields, where: tuple[Scalar, ...], want: tuple[str, ...] | None
    ) -> Select:
        keys = self.keys(fields, want)
        if keys and want is None and self.wants("subquery_below_groups", 0.06):
            keys += self.flags(around, fields)
        grouping, is_total = self.grouping(keys)
        if not keys and not self.weights["global_aggregate"]:
            grouping = Grouping((Call("'const'", "string"),))
        grouped = bool(grouping.keys) and not is_total
        if want is None:
            values: list[Scalar] = [key for key in keys if self.chance(0.8)]
            values += [self.over_groups(fields, keys, grouping, grouped) for _ in range(self.few(1, 1, 2, 3))]
            if self.wants("subquery_below_groups", 0.08):
                values += [
                    Call(self.choice(("SUM({})", "MAX({})", "COUNT(NULLIF({}, 0))")), "bigint", (flag,))
                    for flag in self.flags(around, fields)
                ]
        else:
            values = [self.of_type(type_, keys, fields, grouped) for type_ in want]
        items = tuple(Item(value, self.fresh("c")) for value in values)
        having = self.having(around, fields, keys, items, grouped)
        if is_total and not self.weights["empty_grand_total"]:
            # Of an empty input Spark makes no grand total and DuckDB one: with this, neither does.
            having = (Call("(COUNT(*) > 0)", "boolean"), *having)
        return Select(items, source, where, grouping, having)

    def flags(self, around: Around, fields: Fields) -> tuple[Scalar, ...]:
        """Whether a subquery says so, as a number; nothing where there is no place for one."""
        found = self.subquery_predicate(around, fields)
        if found is None:
            return ()
        return (Call("CASE WHEN {} THEN 1 ELSE 0 END", "int", (found,), "subquery_below_groups"),)

    def grouping(self, keys: tuple[Scalar, ...]) -> tuple[Grouping, bool]:
        """With ROLLUP and the like; whether there is a grand total."""
        how = self.pick(STEPS) if keys and all(isinstance(key, Ref) for key in keys) else ""
        if how in ("rollup", "cube"):
            before = 1 if len(keys) > 1 and self.chance(0.3) else 0
            return Grouping(keys, how.upper(), before=before), before == 0
        if how == "grouping_sets":
            numbers = range(len(keys))
            sets = [tuple(n for n in numbers if self.chance(0.6)) for _ in range(self.few(1, 2, 3))]
            sets = list(dict.fromkeys([*sets, tuple(numbers)]))
            return Grouping(keys, "GROUPING SETS", tuple(sets)), () in sets
        spelled = self.pick({"": 6, "group_by_ordinal": 1, "group_by_alias": 1})
        return Grouping(keys, spelled=spelled.removeprefix("group_by_")), False

    def over_groups(self, fields: Fields, keys: tuple[Scalar, ...], grouping: Grouping, grouped: bool) -> Scalar:
        """What a grouped SELECT shows besides its keys."""
        if grouping.how and self.wants("grouping_function", 0.4):
            if grouping.before or self.chance(0.5):
                return Call("CAST(GROUPING({}) AS INT)", "int", (self.choice(keys),), "grouping_function")
            # Spark wants them in the order in which they first stand in GROUP BY
            named = tuple(keys[number] for number in dict.fromkeys(n for each in grouping.sets for n in each)) or keys
            places = ", ".join("{}" for _ in named)
            return Call(f"GROUPING_ID({places})", "bigint", named, "grouping_function")
        made = self.aggregate(fields, grouped)
        if not self.wants("over_aggregates", 0.25):
            return made
        return self.computed(made, lambda: self.aggregate(fields, grouped), keys)

    def computed(self, made: Call, another: Callable[[], Call], keys: tuple[Scalar, ...]) -> Call:
        """Something that is computed from aggregates."""
        feature, other = "over_aggregates", another()
        if made.type == "bigint":
            if other.type == "bigint":
                text = self.choice(("({} + {})", "({} - {})"))
                return Call(text, "bigint", (made, other), feature)
            number = next((key for key in keys if key.type == "int"), None)
            if number is not None:
                return Call("({} + {})", "bigint", (made, number), feature)
            return Call("COALESCE({} * 2, -1)", "bigint", (made,), feature)
        if made.type in ("double", "real", "ratio"):
            return Call("({} + 1)", made.type, (made,), feature)
        if made.type == "string":
            return Call("COALESCE({}, 'none')", "string", (made,), feature)
        if made.type == "int":
            return Call("CASE WHEN COUNT(*) > 1 THEN {} ELSE 0 END", "int", (made,), feature)
        return made

    def of_type(self, type_: str, keys: tuple[Scalar, ...], fields: Fields, grouped: bool) -> Scalar:
        """A key or an aggregate that gives this type."""
        matching = [key for key in keys if key.type == type_]
        if matching and self.chance(0.75):
            return self.choice(matching)
        if type_ == "bigint":
            for _ in range(4):
                made = self.aggregate(fields, grouped)
                if made.type == type_:
                    return made
        if type_ == "boolean" and self.weights["bool_aggregates"]:
            return Call("BOOL_OR({})", type_, (self.predicate(fields),), "bool_aggregates")
        if self.weights["min_max"]:
            return Call(self.choice(("MIN({})", "MAX({})")), type_, (self.scalar(type_, fields),), "min_max")
        return self.choice(matching) if matching else self.literal(type_)

    def having(
        self, around: Around, fields: Fields, keys: tuple[Scalar, ...], items: tuple[Item, ...], grouped: bool
    ) -> tuple[Scalar, ...]:
        if not self.wants("having", 0.2):
            return ()
        if self.wants("subquery_in_having", 0.15):
            shown = tuple(key for key in keys if isinstance(key, Ref))
            found = self.subquery_predicate(around, shown) if shown else None
            if found is not None:
                return (Call("{}", "boolean", (found,), "subquery_in_having"),)
        numbers = [item for item in items if item.value.type in NUMBERS and item.value not in keys]
        if numbers and self.chance(0.2):
            item = self.choice(numbers)
            return (Call("({} > 0)", "boolean", (Ref("", item.name, item.value.type),)),)
        for _ in range(4):
            made = self.aggregate(fields, grouped)
            if made.type in NUMBERS:
                return (Call(self.choice(("({} > 0)", "({} < 4)", "({} >= 1)", "({} <> 2)")), "boolean", (made,)),)
        return (Call("(COUNT(*) > 1)", "boolean"),)
