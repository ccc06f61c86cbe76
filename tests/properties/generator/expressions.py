"""Expressions of every scalar kind, from a catalogue of texts by the type that they give."""

from __future__ import annotations

from dataclasses import dataclass

from tests.properties.generator.dice import Around
from tests.properties.generator.tables import DAYS, DECIMALS, HALVES, MOMENTS, WORDS, Tables
from tests.properties.tree import Call, Ref, Scalar
from tests.properties.types import INTEGERS, NUMBERS, PLAIN, is_comparable, spark_type

Fields = tuple[Ref, ...]


@dataclass(frozen=True)
class Form:
    """One way to make a value of a type out of values of other types."""

    feature: str
    text: str
    parts: tuple[str, ...]


#: what works for every plain type; % is the type itself
ANY = (
    Form("case", "CASE WHEN {} THEN {} ELSE {} END", ("boolean", "%", "%")),
    Form("case", "CASE WHEN {} THEN {} END", ("boolean", "%")),
    Form("case", "CASE {} WHEN 1 THEN {} WHEN 2 THEN {} END", ("int", "%", "%")),
    Form("case", "IF({}, {}, {})", ("boolean", "%", "%")),
    Form("coalesce", "COALESCE({}, {})", ("%", "%")),
    Form("coalesce", "NVL({}, {})", ("%", "%")),
    Form("nullif", "NULLIF({}, {})", ("%", "%")),
)
EXTREMES = (Form("case", "GREATEST({}, {})", ("%", "%")), Form("case", "LEAST({}, {})", ("%", "%")))

FORMS: dict[str, tuple[Form, ...]] = {
    "int": (
        Form("arithmetic", "({} + 1)", ("int",)),
        Form("arithmetic", "({} + {})", ("int", "int")),
        Form("arithmetic", "({} - {})", ("int", "int")),
        Form("arithmetic", "({} * 2)", ("int",)),
        Form("arithmetic", "(-{})", ("int",)),
        Form("arithmetic", "({} % 3)", ("int",)),
        Form("arithmetic", "(({} % 10) * ({} % 10))", ("int", "int")),
        Form("arithmetic", "ABS({})", ("int",)),
        Form("casts", "CAST({} AS INT)", ("boolean",)),
        Form("strings", "LENGTH({})", ("string",)),
        Form("strings", "INSTR({}, 'a')", ("string",)),
        Form("dates", "YEAR({})", ("date",)),
        Form("dates", "MONTH({})", ("date",)),
        Form("dates", "DAY({})", ("date",)),
        Form("dates", "DATEDIFF({}, {})", ("date", "date")),
        Form("dates", "HOUR({})", ("timestamp_ntz",)),
        Form("arrays", "ARRAY({}, {})[0]", ("int", "int")),
        Form("arrays", "SIZE(ARRAY({}, {}))", ("int", "int")),
        Form("arrays", "SIZE(SPLIT(COALESCE({}, ''), ','))", ("string",)),
        Form("arrays", "NAMED_STRUCT('x', {}, 'y', {}).x", ("int", "string")),
        *EXTREMES,
    ),
    "bigint": (
        Form("casts", "CAST({} AS BIGINT)", ("int",)),
        Form("arithmetic", "({} + {})", ("bigint", "int")),
        Form("arithmetic", "({} DIV 2)", ("int",)),
        Form("arithmetic", "({} % 3)", ("bigint",)),
        *EXTREMES,
    ),
    "decimal(8,2)": (Form("casts", "CAST(({} % 1000) AS DECIMAL(8,2))", ("int",)), *EXTREMES),
    "wide": (
        Form("arithmetic", "({} + {})", ("decimal(8,2)", "decimal(8,2)")),
        Form("arithmetic", "({} - {})", ("decimal(8,2)", "int")),
        Form("arithmetic", "({} * {})", ("decimal(8,2)", "int")),
        Form("arithmetic", "({} * 2)", ("decimal(8,2)",)),
    ),
    "double": (
        Form("casts", "CAST({} AS DOUBLE)", ("int",)),
        Form("arithmetic", "({} + {})", ("double", "int")),
        Form("arithmetic", "({} - 1)", ("double",)),
        Form("arithmetic", "({} * 2)", ("double",)),
        *EXTREMES,
    ),
    "ratio": (
        Form("division", "({} / 2)", ("int",)),
        Form("division", "({} / NULLIF({}, 0))", ("int", "int")),
        Form("division", "({} / NULLIF({}, 0))", ("double", "int")),
        Form("casts", "CAST({} AS DOUBLE)", ("decimal(8,2)",)),
    ),
    "string": (
        Form("strings", "UPPER({})", ("string",)),
        Form("strings", "LOWER({})", ("string",)),
        Form("strings", "CONCAT({}, 'x')", ("string",)),
        Form("strings", "({} || {})", ("string", "string")),
        Form("strings", "SUBSTRING({}, 1, 1)", ("string",)),
        Form("strings", "LEFT({}, 1)", ("string",)),
        Form("strings", "TRIM({})", ("string",)),
        Form("strings", "REPLACE({}, 'a', 'b')", ("string",)),
        Form("strings", "REVERSE({})", ("string",)),
        Form("strings", "LPAD({}, 2, '-')", ("string",)),
        Form("strings", "CONCAT_WS('-', {}, {})", ("string", "string")),
        Form("casts", "CAST({} AS STRING)", ("int",)),
        Form("casts", "CAST({} AS STRING)", ("decimal(8,2)",)),
        *EXTREMES,
    ),
    "date": (
        Form("dates", "DATE_ADD({}, 1)", ("date",)),
        Form("dates", "DATE_ADD({}, -2)", ("date",)),
        Form("dates", "LAST_DAY({})", ("date",)),
        Form("casts", "CAST({} AS DATE)", ("timestamp_ntz",)),
    ),
    "timestamp_ntz": (
        Form("dates", "({} + INTERVAL '1' HOUR)", ("timestamp_ntz",)),
        Form("casts", "CAST({} AS TIMESTAMP_NTZ)", ("date",)),
    ),
    "boolean": (
        Form("logic", "({} AND {})", ("boolean", "boolean")),
        Form("logic", "({} OR {})", ("boolean", "boolean")),
        Form("logic", "({} OR {})", ("boolean", "boolean")),
        Form("logic", "(NOT {})", ("boolean",)),
        Form("logic", "({} IS TRUE)", ("boolean",)),
        Form("", "({} IS NULL)", ("string",)),
        Form("", "({} IS NOT NULL)", ("int",)),
        Form("", "({} > {})", ("int", "int")),
        Form("", "({} <= {})", ("int", "int")),
        Form("", "({} = {})", ("int", "int")),
        Form("", "({} <> {})", ("string", "string")),
        Form("", "({} >= {})", ("decimal(8,2)", "decimal(8,2)")),
        Form("", "({} < {})", ("double", "double")),
        Form("", "({} < {})", ("date", "date")),
        Form("", "({} >= {})", ("timestamp_ntz", "timestamp_ntz")),
        Form("null_safe", "({} <=> {})", ("int", "int")),
        Form("null_safe", "({} <=> {})", ("string", "string")),
        Form("null_safe", "({} IS DISTINCT FROM {})", ("string", "string")),
        Form("in_list", "({} IN (1, 2))", ("int",)),
        Form("in_list", "({} NOT IN (1, {}))", ("int", "int")),
        Form("in_list", "({} IN ('a', 'B'))", ("string",)),
        Form("between", "({} BETWEEN 1 AND {})", ("int", "int")),
        Form("between", "({} NOT BETWEEN DATE '2024-01-01' AND {})", ("date", "date")),
        Form("like", "({} LIKE 'b%')", ("string",)),
        Form("like", "({} NOT LIKE '%a%')", ("string",)),
    ),
}


class Expressions(Tables):
    def literal(self, type_: str) -> Call:
        if self.chance(0.1):
            return Call(f"CAST(NULL AS {spark_type(type_).upper()})", type_)
        match type_:
            case "int":
                return Call(self.choice("0123"), type_)
            case "bigint":
                return Call(f"CAST({self.choice('0123')} AS BIGINT)", type_)
            case "string":
                return Call(f"'{self.choice(WORDS)}'", type_)
            case "double" | "ratio" | "real":
                return Call(f"CAST({self.choice(HALVES)} AS DOUBLE)", type_)
            case "date":
                return Call(f"DATE '{self.choice(DAYS)}'", type_)
            case "timestamp_ntz":
                return Call(f"TIMESTAMP_NTZ '{self.choice(MOMENTS)}'", type_)
            case "boolean":
                return Call(self.choice(("TRUE", "FALSE")), type_)
            case _:
                return Call(f"CAST({self.choice(DECIMALS)} AS DECIMAL(8,2))", type_)

    def scalar(self, type_: str, fields: Fields, depth: int = 0) -> Scalar:
        """A value of this type: mostly a column, or made of columns."""
        named = [field for field in fields if field.type == type_]
        if named and self.chance(0.5 + 0.2 * depth):
            return self.choice(named)
        if depth < 2:
            forms = [form for form in self.forms(type_) if self.reaches(form, type_, fields)]
            if forms and self.chance(0.85):
                form = self.choice(forms)
                parts = tuple(self.scalar(type_ if p == "%" else p, fields, depth + 1) for p in form.parts)
                return Call(form.text, type_, parts, form.feature)
        if named:
            return self.choice(named)
        return self.literal(type_)

    def forms(self, type_: str) -> tuple[Form, ...]:
        every = FORMS.get(type_, ()) + (ANY if type_ in PLAIN else ())
        return tuple(form for form in every if not form.feature or self.wants(form.feature, 0.9))

    @staticmethod
    def reaches(form: Form, type_: str, fields: Fields) -> bool:
        """Would at least one of its parts be a column?"""
        there = {field.type for field in fields}
        return any((type_ if part == "%" else part) in there for part in form.parts)

    def expression(self, fields: Fields) -> Scalar:
        """A value of any type, for a SELECT list."""
        if fields and self.chance(0.55):
            return self.choice(fields)
        there = sorted({field.type for field in fields if field.type in PLAIN}) or ["int"]
        if self.chance(0.7):
            return self.scalar(self.choice(there), fields)
        return self.scalar(self.choice((*self.types, "wide", "ratio")), fields)

    def predicate(self, fields: Fields) -> Scalar:
        """A condition that looks at a column, if there is one."""
        usable = [field for field in fields if is_comparable(field.type)]
        if not usable or self.chance(0.12):
            made = self.scalar("boolean", fields)
            return made if not isinstance(made, Call) or made.parts else Call("({} = {})", "boolean", (made, made))
        field = self.choice(usable)
        if field.type == "boolean":
            return (
                self.choice((field, Call("(NOT {})", "boolean", (field,), "logic"))) if self.weights["logic"] else field
            )
        if field.type == "string":
            texts = {"": self.choice(("({} = 'a')", "({} <> 'a')", "({} >= 'a')", "({} <> '')"))}
            texts |= {"like": "({} LIKE '%a%')", "in_list": "({} IN ('a', 'B', ''))"}
        elif field.type in NUMBERS:
            number = self.few(0, 1, 2, 3)
            texts = {
                "": self.choice(("({} > 0)", f"({{}} <= {number})", f"({{}} <> {number})", "({} >= 1)", "({} = 1)"))
            }
            texts |= {"between": f"({{}} BETWEEN 1 AND {number})", "in_list": f"({{}} IN (1, {number}))"}
        else:
            operator = self.choice((">=", "<=", "<>", "="))
            return Call(f"({{}} {operator} {{}})", "boolean", (field, self.literal(field.type)))
        if self.chance(0.25):
            return Call(self.choice(("({} IS NULL)", "({} IS NOT NULL)", "({} IS NOT NULL)")), "boolean", (field,))
        feature = self.pick({"": 3, **{name: 1 for name in texts if name}})
        return Call(texts[feature], "boolean", (field,), feature)

    def conditions(self, around: Around, fields: Fields, *counts: int) -> tuple[Scalar, ...]:
        """Conjuncts of a WHERE, of which some look into other queries."""
        found: list[Scalar] = []
        for _ in range(self.few(*counts)):
            nested = self.subquery_predicate(around, fields) if self.chance(0.4) else None
            found.append(nested if nested is not None else self.predicate(fields))
        return tuple(found)

    # ---------------------------------------------------------------- of two relations

    def equality(self, left: Fields, right: Fields, operators: tuple[str, ...]) -> Scalar | None:
        """A comparison between a column of one side and one of the other."""
        pairs = [
            (one, other)
            for one in left
            for other in right
            if is_comparable(one.type) and (one.type == other.type or {one.type, other.type} == set(INTEGERS))
        ]
        if not pairs:
            return None
        # Numbers and words meet more often than moments do.
        likely = [pair for pair in pairs if pair[0].type in ("int", "string")]
        one, other = self.choice(likely if likely and self.chance(0.8) else pairs)
        operator = self.choice(operators)
        feature = "null_safe" if operator == "<=>" else ""
        if feature and not self.wants(feature, 1):
            operator, feature = "=", ""
        return Call(f"({{}} {operator} {{}})", "boolean", (one, other), feature)
