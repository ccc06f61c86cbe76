"""What the driver does with rows that it has is what an engine would do, and what might differ is left to Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine.algebra.aggregates import sum_of
from engine.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Aggregation,
    Exists,
    Filter,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Output,
    Project,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
)
from engine.algebra.plain import plain_condition
from engine.algebra.scalars import Scalar, cast, col, eq, gt, lit, neg
from engine.lake import by_hand as hand
from engine.lake.by_hand import by_hand, rows
from tests.support.plain_conditions import NOT_PLAIN, PLAIN, ROWS, TYPES, chosen, condition

ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "decimal(9,2)": pa.decimal128(9, 2),
}


def scan(name: str, *, role: Role = Role.DELTA, **types: str) -> Scan:
    """Columns of the tree are called after the leaf."""
    return Scan(Leaf(role, name), tuple((f"{name}_{column}", column, type_) for column, type_ in types.items()))


def table(types: Mapping[str, str], *values: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*values, strict=True)) or [()] * len(types)
    arrays = [pa.array(column, ARROW[type_]) for column, type_ in zip(columns, types.values(), strict=True)]
    return pa.table(arrays, names=list(types))


def done(node: Node, **shown: pa.Table) -> Counter[tuple[Any, ...]]:
    asked = by_hand(node, lambda leaf: leaf.name)
    assert asked is not None
    found = rows(asked, shown.get)
    assert found is not None
    assert found.column_names == [column.name for column in node.columns]
    assert [field.type for field in found.schema] == [ARROW[column.type] for column in node.columns]
    return Counter(tuple(row.values()) for row in found.to_pylist())


KV = {"k": "int", "v": "string"}
A, B = scan("a", **KV), scan("b", **KV)
A_ROWS = table(KV, (1, "x"), (1, "x"), (2, None), (None, "x"), (None, None), (3, "y"))
B_ROWS = table(KV, (1, "x"), (2, None), (None, None), (None, "z"), (4, "y"))


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_condition_holds_where_duckdb_says_so(text: str) -> None:
    names = ", ".join(TYPES)
    shown = duckdb.sql(f"SELECT * FROM (VALUES {', '.join(ROWS)}) AS rows({names})").to_arrow_table()
    expected = duckdb.sql(f"SELECT id FROM (VALUES {', '.join(ROWS)}) AS rows({names}) WHERE {text}").fetchall()
    assert chosen(text, shown) == sorted(each[0] for each in expected)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_a_condition_that_says_more_is_not_plain(text: str) -> None:
    assert plain_condition(condition(text), TYPES) is None


def test_floating_point_numbers_are_passed_on_and_never_compared() -> None:
    node = scan("a", k="int", f="double")
    shown = table({"k": "int", "f": "double"}, (1, -0.0), (2, 0.0))
    kept = Filter(node, eq(col("a_k"), lit(1)))
    assert str(next(iter(done(kept, a=shown)))) == "(1, -0.0)"
    for refused in (
        Filter(node, eq(col("a_f"), lit(0))),
        Aggregate(node, (Output("f", col("a_f"), "double"),), ()),
        SemiJoin(node, scan("b", f="double"), ((col("a_f"), "b_f"),)),
    ):
        assert by_hand(refused, str) is None


@pytest.mark.parametrize(
    ("role", "is_possible"),
    [(Role.DELTA, True), (Role.STEP, True), (Role.NEW, False), (Role.OLD, False), (Role.STORED, False)],
)
def test_only_what_the_driver_may_have_is_read(role: Role, is_possible: bool) -> None:
    assert (by_hand(scan("a", role=role, k="int"), str) is not None) == is_possible


def test_what_it_lacks_after_all_is_left_to_spark() -> None:
    asked = by_hand(UnionAll((A, B)), lambda leaf: leaf.name)
    assert asked is not None
    assert rows(asked, {"a": A_ROWS}.get) is None


def test_keys_are_among_others_null_like_any_value() -> None:
    by_one = SemiJoin(A, B, ((col("a_k"), "b_k"),))
    assert done(by_one, a=A_ROWS, b=B_ROWS) == Counter({(1, "x"): 2, (2, None): 1, (None, "x"): 1, (None, None): 1})
    by_two = SemiJoin(A, B, ((col("a_k"), "b_k"), (col("a_v"), "b_v")))
    assert done(by_two, a=A_ROWS, b=B_ROWS) == Counter({(1, "x"): 2, (2, None): 1, (None, None): 1})
    nothing = table(KV)
    assert done(by_two, a=A_ROWS, b=nothing) == done(by_two, a=nothing, b=B_ROWS) == Counter()
    nulls = table(KV, (None, None))
    assert done(by_two, a=nulls, b=nulls) == Counter({(None, None): 1})


def test_partners_are_equal_and_null_equals_nothing() -> None:
    by_one, by_two = (eq(col("a_k"), col("b_k")),), (eq(col("b_k"), col("a_k")), eq(col("a_v"), col("b_v")))
    assert done(Exists(A, B, by_one), a=A_ROWS, b=B_ROWS) == Counter({(1, "x"): 2, (2, None): 1})
    assert done(Exists(A, B, by_two), a=A_ROWS, b=B_ROWS) == Counter({(1, "x"): 2})
    lone = Counter({(None, "x"): 1, (None, None): 1, (3, "y"): 1})
    assert done(Exists(A, B, by_one, negated=True), a=A_ROWS, b=B_ROWS) == lone
    assert done(Exists(A, B, by_two, negated=True), a=A_ROWS, b=B_ROWS) == lone + Counter({(2, None): 1})
    assert by_hand(Exists(A, B, (gt(col("a_k"), col("b_k")),)), str) is None
    assert by_hand(Exists(A, B, ()), str) is None


def test_members_of_a_join_meet_in_whatever_order_they_can() -> None:
    c = scan("c", v="string")
    conditions = (eq(col("a_v"), col("c_v")), eq(col("b_v"), col("c_v")), gt(col("b_k"), lit(0)))
    joined = InnerJoin((A, B, c), conditions)
    found = done(joined, a=A_ROWS, b=B_ROWS, c=table({"v": "string"}, ("x",), ("x",), (None,), ("y",)))
    assert found == Counter({(1, "x", 1, "x", "x"): 4, (None, "x", 1, "x", "x"): 2, (3, "y", 4, "y", "y"): 1})
    assert by_hand(InnerJoin((A, B), (gt(col("a_k"), col("b_k")),)), str) is None


def test_a_join_that_would_grow_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = by_hand(InnerJoin((A, B), (eq(col("a_v"), col("b_v")),)), lambda leaf: leaf.name)
    assert asked is not None
    many = table(KV, *[(1, "x")] * 30, *[(2, "y")] * 30)
    monkeypatch.setattr(hand, "ROWS_MAX", 1800)
    assert rows(asked, {"a": many, "b": many}.get).num_rows == 1800  # type: ignore[union-attr]
    monkeypatch.setattr(hand, "ROWS_MAX", 1799)
    assert rows(asked, {"a": many, "b": many}.get) is None


def test_what_rows_were_is_told_by_what_came_and_went() -> None:
    """As `gather` writes it: what there is, without what came and with what went."""
    now = scan("now", role=Role.STEP, k="int", n="decimal(9,2)")
    change = Scan(Leaf(Role.DELTA, "change"), (("k", "k", "int"), ("n", "n", "decimal(9,2)"), (WEIGHT, WEIGHT, "int")))
    kept = (Output("k", col("now_k"), "int"), Output("n", col("now_n"), "decimal(9,2)"))
    there = Project(now, (*kept, Output(WEIGHT, lit(1), "int")))
    back = Project(
        change,
        (
            Output("k", col("k"), "int"),
            Output("n", col("n"), "decimal(9,2)"),
            Output(WEIGHT, neg(col(WEIGHT)), "int"),
        ),
    )
    keys = (Output("k", col("k"), "int"), Output("n", col("n"), "decimal(9,2)"))
    net = Filter(
        Aggregate(UnionAll((there, back)), keys, (Aggregation(WEIGHT, sum_of(col(WEIGHT)), "bigint"),)),
        gt(col(WEIGHT), lit(0)),
    )
    times = Project(
        net,
        (
            Output("k", col("k"), "int"),
            Output("n", col("n"), "decimal(9,2)"),
            Output(WEIGHT, cast(col(WEIGHT), "bigint"), "bigint"),
        ),
    )
    types = {"k": "int", "n": "decimal(9,2)"}
    one, two = Decimal("1.00"), Decimal("2.50")
    rows_now = table(types, (1, one), (1, one), (2, None), (None, two))
    rows_change = table(
        {**types, WEIGHT: "int"}, (1, one, 1), (2, None, 1), (3, two, -1), (3, two, -1), (None, two, -1)
    )
    found = done(Repeat(times, WEIGHT), now=rows_now, change=rows_change)
    assert found == Counter({(1, one): 1, (3, two): 2, (None, two): 2})


@pytest.mark.parametrize(
    "node",
    [
        Project(A, (Output("x", Scalar(condition("upper(a_v)").tree), "string"),)),
        Project(A, (Output("x", cast(col("a_k"), "string"), "string"),)),
        Project(A, ()),
        Aggregate(A, (), (Aggregation("n", sum_of(col("a_k")), "bigint"),)),
        Aggregate(A, (Output("k", col("a_k"), "int"),), (Aggregation("n", condition("max(a_k)"), "int"),)),
        Aggregate(A, (Output("v", col("a_v"), "string"),), (Aggregation("n", sum_of(col("a_k")), "bigint"),)),
        Project(A, (Output("x", neg(col("a_k")), "int"),)),
        UnionAll((A, scan("c", k="bigint", v="string"))),
        OuterJoin(A, B, (eq(col("a_k"), col("b_k")),)),
        SemiJoin(A, scan("c", k="bigint"), ((col("a_k"), "c_k"),)),
        scan("c", k="array<int>"),
        scan("c", k="string collate UTF8_LCASE"),
    ],
    ids=repr,
)
def test_what_is_computed_is_left_to_spark(node: Node) -> None:
    assert by_hand(node, str) is None
