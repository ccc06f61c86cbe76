"""Scalar expressions: an immutable wrapper around sqlglot trees.

Inside the algebra a column has one name in the whole query, so a scalar needs no table qualifiers and can be
moved through operators by substitution alone. Trees are shared and must never be mutated: whatever changes one
copies it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from sqlglot import exp
from sqlglot.dialects.dialect import DialectType

from engine.algebra.copies import copied, copied_with
from engine.algebra.dialect import Spark4


@dataclass(frozen=True)
class Scalar:
    tree: exp.Expr

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns it reads."""
        return frozenset(self.column_uses)

    @property
    def column_uses(self) -> tuple[str, ...]:
        """The same, each as often as it occurs."""
        return tuple(column.name for column in self.tree.find_all(exp.Column))

    @property
    def as_column(self) -> str | None:
        """The name, when this is nothing but a column."""
        return self.tree.name if isinstance(self.tree, exp.Column) else None

    @property
    def partition(self) -> frozenset[str]:
        """Of a function over a window of plain columns: those within whose values it stays."""
        return frozenset(column.name for column in self.tree.args.get("partition_by") or ())

    def substitute(self, values: Mapping[str, Scalar]) -> Scalar:
        """This scalar with columns replaced by other scalars."""
        if not self.columns & values.keys():
            return self

        def value_of(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.name in values:
                return _atom(copied(values[node.name].tree))
            return None

        return Scalar(copied_with(self.tree, value_of))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return self.sql()

    def sql(self, dialect: DialectType = Spark4) -> str:
        """For people: without quotes around plain names."""
        plain = copied(self.tree)
        for identifier in plain.find_all(exp.Identifier):
            if identifier.name.replace("_", "a").isalnum():
                identifier.set("quoted", False)
        return plain.sql(dialect=dialect, normalize_functions="lower", copy=False)


def _atom(tree: exp.Expr) -> exp.Expr:
    """In parentheses where precedence could bite."""
    needed = isinstance(tree, exp.Binary | exp.Unary | exp.Predicate) and not isinstance(tree, exp.Paren)
    return exp.paren(tree, copy=False) if needed else tree


def col(name: str) -> Scalar:
    return Scalar(exp.Column(this=exp.Identifier(this=name, quoted=True)))


def lit(value: int | str) -> Scalar:
    return Scalar(exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(value))


def null() -> Scalar:
    return Scalar(exp.null())


def true() -> Scalar:
    return Scalar(exp.true())


def false() -> Scalar:
    return Scalar(exp.false())


def raise_error(message: str) -> Scalar:
    """Never has a value: whoever asks for it fails."""
    return Scalar(exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(message)]))


def cast(value: Scalar, to_type: str) -> Scalar:
    """Without a type, which is so while nothing is asked of Spark, it is what it is."""
    if not to_type:
        return value
    return Scalar(exp.Cast(this=copied(value.tree), to=data_type(to_type)))


def data_type(spelled: str) -> exp.DataType:
    """A type as Spark spells it, as a tree of its own."""
    return copied(_parsed_type(spelled))


@cache
def _parsed_type(spelled: str) -> exp.DataType:
    if spelled == "void":
        return exp.DataType(this=exp.DType.NULL)  # of a NULL that nothing gives a type
    return exp.DataType.build(spelled, dialect="spark")


def field(struct: Scalar, name: str) -> Scalar:
    return Scalar(exp.Dot(this=copied(struct.tree), expression=exp.to_identifier(name, quoted=True)))


def struct(fields: Mapping[str, Scalar]) -> Scalar:
    named = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=copied(each.tree)) for name, each in fields.items()
    ]
    return Scalar(exp.Struct(expressions=named))


def eq(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.EQ, left, right)


def null_safe_eq(left: Scalar, right: Scalar) -> Scalar:
    """Equality for keys: NULL equals NULL."""
    return _binary(exp.NullSafeEQ, left, right)


def ne(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.NEQ, left, right)


def lt(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.LT, left, right)


def le(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.LTE, left, right)


def gt(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.GT, left, right)


def add(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.Add, left, right)


def subtract(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.Sub, left, right)


def multiply(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.Mul, left, right)


def least(one: Scalar, other: Scalar) -> Scalar:
    return Scalar(exp.Least(this=copied(one.tree), expressions=[copied(other.tree)]))


def divide(left: Scalar, right: Scalar) -> Scalar:
    return _binary(exp.Div, left, right)


def neg(value: Scalar) -> Scalar:
    return Scalar(exp.Neg(this=_atom(copied(value.tree))))


def is_null(value: Scalar) -> Scalar:
    return Scalar(exp.Is(this=_atom(copied(value.tree)), expression=exp.null()))


def not_null(value: Scalar) -> Scalar:
    return Scalar(exp.Not(this=is_null(value).tree))


def negation(value: Scalar) -> Scalar:
    return Scalar(exp.Not(this=exp.paren(copied(value.tree), copy=False)))


def coalesce(value: Scalar, otherwise: Scalar) -> Scalar:
    return Scalar(exp.Coalesce(this=copied(value.tree), expressions=[copied(otherwise.tree)]))


def all_of(conditions: Iterable[Scalar]) -> Scalar:
    trees = [copied(condition.tree) for condition in conditions]
    return Scalar(exp.and_(*trees, copy=False)) if trees else Scalar(exp.true())


def any_of(conditions: Iterable[Scalar]) -> Scalar:
    trees = [copied(condition.tree) for condition in conditions]
    return Scalar(exp.or_(*trees, copy=False)) if trees else Scalar(exp.false())


def case(*branches: tuple[Scalar, Scalar], otherwise: Scalar | None = None) -> Scalar:
    ifs = [exp.If(this=copied(when.tree), true=copied(then.tree)) for when, then in branches]
    return Scalar(exp.Case(ifs=ifs, default=copied(otherwise.tree) if otherwise else None))


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """The parts of an AND, however nested."""
    tree = condition.tree
    while isinstance(tree, exp.Paren):  # a query in parentheses is a value, and keeps them
        tree = tree.this
    if isinstance(tree, exp.And):
        return conjuncts(Scalar(tree.left)) + conjuncts(Scalar(tree.right))
    return (Scalar(tree),)


def _binary(kind: type[exp.Binary], left: Scalar, right: Scalar) -> Scalar:
    return Scalar(kind(this=_atom(copied(left.tree)), expression=_atom(copied(right.tree))))
