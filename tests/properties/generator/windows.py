"""Window functions, whose answers do not depend on the order in which equal rows happen to stand.

Where a function looks at places of rows (ROW_NUMBER, LAG, ROWS frames), its order goes through every column, so that
only rows that are the same have the same rank; and all such functions of one SELECT share their window, because two
orders could tell twins apart in two ways.
"""

from __future__ import annotations

from tests.properties.generator.aggregates import Aggregates
from tests.properties.generator.expressions import Fields
from tests.properties.tree import Call, Order, Ref, Scalar, Window
from tests.properties.types import avg_type, is_comparable, sum_type

HOW = ("", "", "", "DESC", "NULLS LAST", "DESC NULLS FIRST")
ROWS = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
RANGES = (
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
#: over an order of one number
RANGES_OF_NUMBERS = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
)
#: a total order through more columns than this is no query that anybody would read
ORDERED_MAX = 12

KINDS = {
    "ranking": 3,
    "window_aggregates": 4,
    "row_number": 2,
    "ntile": 0.5,
    "lag_lead": 2,
    "value_functions": 2,
    "within_group": 0.7,
}
BY_PLACE = ("row_number", "ntile", "lag_lead", "value_functions")


class Windows(Aggregates):
    def windows(self, fields: Fields, *counts: int) -> list[Window]:
        """Window functions over the rows of one SELECT."""
        places = self.places(fields)
        shares = {kind: share for kind, share in KINDS.items() if places is not None or kind not in BY_PLACE}
        found = []
        for _ in range(self.few(*counts)):
            kind = self.pick(shares)
            if kind:
                found.append(self.window(kind, fields, places))
        return found

    def window(self, kind: str, fields: Fields, places: tuple[tuple[Scalar, ...], tuple[Order, ...]] | None) -> Window:
        if kind in BY_PLACE and places is not None:
            function = self.by_place(kind, fields)
            frame = self.choice(ROWS) if kind == "value_functions" and self.wants("rows_frame", 0.6) else ""
            return Window(function, *places, frame)
        if kind == "within_group":
            return Window(self.percentile(fields, kind), self.partition(fields), ())
        if kind == "ranking":
            names = ("RANK()", "DENSE_RANK()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()")
            name = self.choice(names)
            type_ = "ratio" if name in names[4:] else "int"
            order = self.peers(fields)
            if order:
                return Window(Call(name, type_, (), "ranking"), self.partition(fields), order)
        function = self.over_rows(fields)
        if places is not None and self.wants("rows_frame", 0.25):
            return Window(function, *places, self.choice(ROWS))
        order = self.peers(fields) if self.chance(0.5) else ()
        frame = ""
        if order and self.wants("range_frame", 0.35):
            by_number = len(order) == 1 and order[0].by.type in ("int", "bigint")
            frame = self.choice((*RANGES, *RANGES_OF_NUMBERS) if by_number else RANGES)
        return Window(function, self.partition(fields), order, frame)

    def by_place(self, kind: str, fields: Fields) -> Call:
        value = self.choice([field for field in fields if is_comparable(field.type)])
        match kind:
            case "row_number":
                return Call("ROW_NUMBER()", "int", (), kind)
            case "ntile":
                return Call(f"NTILE({self.few(1, 2, 3)})", "int", (), kind)
            case "lag_lead":
                name = self.choice(("LAG", "LEAD"))
                match self.few(0, 1, 2):
                    case 0:
                        return Call(f"{name}({{}})", value.type, (value,), kind)
                    case 1:
                        return Call(f"{name}({{}}, 2)", value.type, (value,), kind)
                    case _:
                        return Call(f"{name}({{}}, 1, {{}})", value.type, (value, self.literal(value.type)), kind)
            case _:
                texts = ("FIRST_VALUE({})", "LAST_VALUE({})", "NTH_VALUE({}, 2)", "FIRST_VALUE({}) IGNORE NULLS")
                return Call(self.choice(texts), value.type, (value,), kind)

    def over_rows(self, fields: Fields) -> Call:
        """An aggregate as a window function."""
        feature = "window_aggregates"
        match self.few(0, 1, 2, 3, 3):
            case 0:
                return Call("COUNT(*)", "bigint", (), feature)
            case 1:
                value = self.some(fields)
                if self.chance(0.4):
                    return Call("COUNT({})", "bigint", (value,), feature)
                return Call(self.choice(("MIN({})", "MAX({})")), value.type, (value,), feature)
            case 2:
                number = self.number(fields)
                return Call("AVG({})", avg_type(number.type), (number,), feature)
            case _:
                number = self.number(fields)
                return Call("SUM({})", sum_type(number.type), (number,), feature)

    def partition(self, fields: Fields) -> tuple[Scalar, ...]:
        usable = [field for field in fields if is_comparable(field.type)]
        if not usable:
            return ()
        return tuple(dict.fromkeys(self.choice(usable) for _ in range(self.few(0, 1, 1, 1, 2))))

    def peers(self, fields: Fields) -> tuple[Order, ...]:
        """An order in which rows may be equal."""
        usable = [field for field in fields if is_comparable(field.type)]
        if not usable:
            return ()
        chosen = dict.fromkeys(self.choice(usable) for _ in range(self.few(1, 1, 2)))
        return tuple(Order(field, self.choice(HOW)) for field in chosen)

    def places(self, fields: Fields) -> tuple[tuple[Scalar, ...], tuple[Order, ...]] | None:
        """A partition, and an order in which every row has its place; None where there is none."""
        if not fields or len(fields) > ORDERED_MAX or not all(is_comparable(field.type) for field in fields):
            return None
        partition = self.partition(fields)
        return partition, self.total(tuple(field for field in fields if field not in partition) or fields)

    def total(self, fields: Fields) -> tuple[Order, ...]:
        """An order through every column, unless ties are what is wanted."""
        mixed: list[Ref] = list(fields)
        self.random.shuffle(mixed)
        if self.ties and self.chance(0.7):
            mixed = mixed[: self.few(1, 1, 2)]
        return tuple(Order(field, self.choice(HOW)) for field in mixed)
