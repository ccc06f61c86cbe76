"""A statement is cut into steps only where that makes it smaller, and each step reads what came before it."""

from __future__ import annotations

from engine.algebra.nodes import InnerJoin, Leaf, Node, Output, Project, Role, Scan
from engine.algebra.scalars import col, eq
from engine.algebra.trees import leaves
from engine.compile.steps import in_steps, written_out


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
