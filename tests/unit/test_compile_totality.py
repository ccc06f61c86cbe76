"""Every operator has an answer to every question that the compiler asks of operators."""

from __future__ import annotations

import pytest
from sqlglot import exp

from engine.algebra import nodes
from engine.algebra.aggregates import sum_of
from engine.algebra.display import describe, show
from engine.algebra.nodes import (
    Aggregate,
    Aggregation,
    Empty,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Output,
    Project,
    Recursion,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
    Windowed,
    keep,
)
from engine.algebra.scalars import Scalar, col, eq, gt, lit
from engine.compile.differentiate import delta, rule_of
from engine.compile.optimize.prune_columns import asked, prune_columns
from engine.compile.render import render
from engine.errors import InternalError, UnsupportedOperator
from engine.records import Column

T = Scan(Leaf(Role.NEW, "t"), (("k", "k", "int"), ("v", "v", "bigint")))
U = Scan(Leaf(Role.NEW, "u"), (("uk", "k", "int"), ("w", "w", "bigint")))

PLACE = Scalar(
    exp.Window(
        this=exp.RowNumber(),
        partition_by=[col("k").tree],
        order=exp.Order(expressions=[exp.Ordered(this=col("v").tree)]),
        over="OVER",
    )
)

#: one tree for each operator, with that operator on top
EXAMPLES: dict[type[Node], Node] = {
    Scan: T,
    Filter: Filter(T, gt(col("v"), lit(1))),
    Project: Project(T, (Output("double", col("v"), "bigint"),)),
    InnerJoin: InnerJoin((T, U), (eq(col("k"), col("uk")),)),
    Aggregate: Aggregate(T, keep((Column("k", "int"),)), (Aggregation("s", sum_of(col("v")), "bigint"),)),
    Values: Values((Column("one", "int"),), ((lit(1),), (lit(2),))),
    OuterJoin: OuterJoin(T, U, (eq(col("k"), col("uk")),), full=True),
    Exists: Exists(T, U, (eq(col("k"), col("uk")),), negated=True),
    Window: Window(T, ("k",), (Windowed("place", PLACE, "int"),)),
    Explode: Explode(T, Scalar(exp.Explode(this=exp.Array(expressions=[col("v").tree]))), (Column("e", "bigint"),)),
    Recursion: Recursion("r", T, Scan(Leaf(Role.ITSELF, "r"), (("a", "x", "int"), ("b", "y", "bigint"))), ("x", "y")),
    Empty: Empty(T.columns),
    UnionAll: UnionAll((T, U)),
    SemiJoin: SemiJoin(T, U, ((col("k"), "uk"),)),
    Repeat: Repeat(T, "v"),
}

#: what users' queries are made of: each must have a rule and a change, or be refused by name
IN_QUERIES = tuple(each for each in EXAMPLES if each not in (Empty, SemiJoin))

OPERATORS = [each for each in vars(nodes).values() if isinstance(each, type) and issubclass(each, Node)]
OPERATORS.remove(Node)


def named(operator: type[Node]) -> str:
    return operator.__name__


def test_there_is_an_example_of_each_operator() -> None:
    assert set(EXAMPLES) == set(OPERATORS)
    assert all(type(example) is operator for operator, example in EXAMPLES.items())


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_it_can_be_shown_and_rendered(operator: type[Node]) -> None:
    example = EXAMPLES[operator]
    label, _ = describe(example)
    assert show(example).startswith(label)
    for dialect in ("spark", "duckdb"):
        sql = render(example, dialect=dialect)
        assert sql.startswith(("SELECT", "WITH"))
        assert all(column.name in sql for column in example.columns)


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_it_can_be_pruned(operator: type[Node]) -> None:
    example = EXAMPLES[operator]
    needed = asked(example, frozenset())
    assert len(needed) == len(example.inputs)
    assert prune_columns(example).columns == example.columns


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_it_is_maintained_or_refused(operator: type[Node]) -> None:
    example = EXAMPLES[operator]
    if operator in IN_QUERIES:
        assert rule_of(example).why
        change = delta(example)
        assert change.weighted
        assert change.names == example.names | {nodes.WEIGHT}
    elif operator is not Empty:
        with pytest.raises(UnsupportedOperator, match=operator.__name__):
            delta(example)
        with pytest.raises(UnsupportedOperator):
            rule_of(example)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Filter(T, gt(col("w"), lit(1))),
        lambda: Project(T, (Output("x", col("w"), "bigint"),)),
        lambda: InnerJoin((T, U), (eq(col("k"), col("other")),)),
        lambda: InnerJoin((T, T), ()),
        lambda: Aggregate(T, keep((Column("w", "bigint"),)), ()),
        lambda: UnionAll((T, Project(U, keep((Column("w", "bigint"),))))),
    ],
)
def test_a_tree_that_makes_no_sense_cannot_be_made(make) -> None:
    with pytest.raises(InternalError):
        make()
