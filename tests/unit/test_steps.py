"""A statement is cut into steps only where that makes it smaller, and each step reads what came before it."""

from __future__ import annotations

from engine.algebra.nodes import (
    Aggregate,
    Exists,
    InnerJoin,
    Leaf,
    Node,
    OuterJoin,
    Output,
    Project,
    Repeat,
    Role,
    Scan,
)
from engine.algebra.scalars import col, eq
from engine.algebra.trees import leaves, nodes_of
from engine.compile.bind import Change, bind
from engine.compile.few import follows_change
from engine.compile.pipeline import Request, compile_query
from engine.compile.steps import Steps, in_steps, written_out
from engine.records import Column
from tests.support.duck_analyzer import DuckAnalyzer


def scan(name: str) -> Node:
    return Scan(Leaf(Role.NEW, name), ((f"{name}_k", "k", "int"),))


def doubled(node: Node, number: int) -> Node:
    """Joined with itself: each level is twice as large as the one below, written out."""
    (column,) = node.columns
    other = Project(node, (Output(f"k{number}", col(column.name), "int"),))
    joined = InnerJoin((node, other), (eq(col(column.name), col(f"k{number}")),))
    return Project(joined, (Output(f"l{number}", col(f"k{number}"), "int"),))


def levels(count: int) -> Node:
    root = scan("t")
    for number in range(count):
        root = doubled(root, number)
    return root


def test_a_small_statement_is_one() -> None:
    root = levels(2)
    steps = in_steps(root)
    assert steps.before == ()
    assert steps.last is root


def test_what_would_grow_without_end_stays_small() -> None:
    root = levels(20)
    assert written_out(root) > 1_000_000
    steps = in_steps(root)
    parts = [*(step.tree for step in steps.before), steps.last]
    assert max(map(written_out, parts)) <= 120
    assert len(steps.before) <= 6, "as few as are needed"
    assert steps.last.columns == root.columns


def test_each_step_reads_what_came_before_it() -> None:
    steps = in_steps(levels(20))
    known: set[Leaf] = {Leaf(Role.NEW, "t")}
    for step in steps.before:
        assert {each.leaf for each in leaves(step.tree)} <= known
        known.add(step.leaf)
    assert {each.leaf for each in leaves(steps.last)} <= known


JOIN = "SELECT o.id, c.region, i.amount FROM orders o JOIN customers c ON o.customer = c.id JOIN items i ON i.o = o.id"
RELATIONS = {
    "orders": (Column("id", "int"), Column("customer", "int")),
    "customers": (Column("id", "int"), Column("region", "string")),
    "items": (Column("o", "int"), Column("amount", "int")),
}


def of_change(query: str, *changed: str) -> Node:
    kept = compile_query(Request(query, RELATIONS), DuckAnalyzer(RELATIONS)).kept
    assert kept is not None
    statements = bind(kept, dict.fromkeys(changed, Change.MIXED))
    return statements.first or statements.change


def test_a_join_meets_one_large_relation_at_a_time() -> None:
    statement = of_change(JOIN, "orders")
    assert in_steps(statement).before == ()
    (met,) = in_steps(statement, large=frozenset(("customers", "items"))).before
    assert met.is_few
    assert {scan.leaf.name for scan in leaves(met.tree)} == {"orders", "customers"}


def test_one_large_relation_needs_no_step() -> None:
    assert in_steps(of_change(JOIN, "orders"), large=frozenset(("items",))).before == ()


def test_touched_keys_that_are_joined_from_a_large_relation_are_brought_as_rows() -> None:
    query = "SELECT c.region, max(o.id) AS m FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"
    found = in_steps(of_change(query, "orders"), large=frozenset(("customers",))).before
    assert {"orders", "customers"} <= {scan.leaf.name for scan in leaves(found[0].tree)}
    assert all(step.is_few for step in found)


def test_what_follows_from_a_change() -> None:
    orders = Scan(Leaf(Role.DELTA, "orders"), (("o", "id", "int"),))
    items = Scan(Leaf(Role.NEW, "items"), (("i", "o", "int"),))
    same = (eq(col("o"), col("i")),)
    assert follows_change(InnerJoin((items, orders), same))
    assert follows_change(Exists(items, orders, same))
    assert not follows_change(Exists(items, orders, same, negated=True))
    assert follows_change(OuterJoin(orders, items, same))
    assert not follows_change(OuterJoin(items, orders, same))
    assert not follows_change(OuterJoin(orders, items, same, full=True))
    assert not follows_change(items)


def test_a_source_as_it_was_is_told_by_what_is_asked_of_it() -> None:
    """Somebody else asks for a column that cannot be compared, of the source as it is."""
    relations = {
        "b": (Column("k", "int"), Column("y", "int")),
        "t": (Column("k", "int"), Column("v", "variant"), Column("w", "int")),
    }
    query = (
        "SELECT b.k, b.y, CAST(t.v AS STRING) AS v FROM t JOIN b ON t.k = b.k"
        " WHERE EXISTS (SELECT 1 FROM t t2 WHERE t2.k = b.y)"
    )
    kept = compile_query(Request(query, relations), DuckAnalyzer(relations)).kept
    assert kept is not None
    statements = bind(kept, dict.fromkeys(relations, Change.MIXED))
    all_of_them = frozenset(relations)
    cut = [in_steps(tree, large=all_of_them, looked_up=all_of_them) for tree in statements.trees]
    assert any(isinstance(node, Repeat) for steps in cut for node in nodes_of(steps.whole)), "what it was is told"
    grouped = [node for steps in cut for node in nodes_of(steps.whole) if isinstance(node, Aggregate)]
    assert not any(key.type == "variant" for node in grouped for key in node.keys)


# ---------------------------------------------------------------- steps without rows

KEYED = """
SELECT c.region, sum(i.amount) AS amount FROM orders o JOIN items i ON i.o = o.id
JOIN customers c ON c.id = o.customer GROUP BY c.region
"""


def of_all_looked_up() -> Steps:
    everything = frozenset(RELATIONS)
    return in_steps(of_change(KEYED, "orders", "items"), large=everything, looked_up=everything)


def test_what_follows_from_a_step_without_rows_is_left_out() -> None:
    steps = of_all_looked_up()
    first = steps.before[0]
    readers = [each for each in steps.before if reads(each.tree, first.leaf)]
    assert readers, "nobody reads the first step"
    left = steps.given_empty(first.leaf.name)
    assert first not in left.before
    assert not any(reads(part, first.leaf) for part in left.parts)
    assert len(left.before) < len(steps.before)
    assert [column.name for column in left.last.columns] == [column.name for column in steps.last.columns]


def test_a_step_that_nobody_reads_any_more_is_not_run() -> None:
    """Each step is in the end read by the last part."""
    steps = of_all_looked_up()
    for step in steps.before:
        left = steps.given_empty(step.leaf.name)
        for each in left.before:
            assert any(reads(part, each.leaf) for part in left.parts)


def test_steps_that_have_nothing_to_do_with_it_stay_as_they_are() -> None:
    steps = of_all_looked_up()
    last = steps.before[-1]
    left = steps.given_empty(last.leaf.name)
    assert set(left.before) <= set(steps.before)


def reads(tree: Node, leaf: Leaf) -> bool:
    return any(scan.leaf == leaf for scan in leaves(tree))
