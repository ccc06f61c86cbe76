"""A copy of a syntax tree is what sqlglot's own would be, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from engine.algebra.copies import copied, copied_with
from engine.algebra.dialect import Spark4
from tests.support.view_test import read_view_test

#: what is refused may be no SQL at all
VIEWS = [
    path for path in sorted((Path(__file__).parents[1] / "views").rglob("*.test")) if path.parent.name != "refused"
][::10]


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=Spark4)


def facts(tree: exp.Expr) -> list[tuple[object, ...]]:
    """All that a part knows of itself and of where it stands."""
    return [(type(n), n.arg_key, n.index, n.meta, n.comments, type(n.parent), list(n.args)) for n in tree.walk()]


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.stem)
def test_a_copy_is_as_sqlglot_makes_it(path: Path) -> None:
    tree = parsed(read_view_test(path).query)
    made, theirs = copied(tree), tree.copy()
    assert made == theirs
    assert facts(made) == facts(theirs)
    assert made.sql(Spark4) == tree.sql(Spark4)


def test_nothing_is_shared_with_the_original() -> None:
    tree = parsed("SELECT a + 1 AS b /* why */, COUNT(*) FROM t WHERE c IN (1, 2) GROUP BY a")
    before, facts_before = tree.sql(Spark4), facts(tree)
    made = copied(tree)
    assert not {id(each) for each in made.walk()} & {id(each) for each in tree.walk()}
    for each in made.walk():
        each.meta["seen"] = True
        each.comments = ["seen"]
    for column in list(made.find_all(exp.Column)):
        column.replace(exp.Literal.number(7))
    assert (tree.sql(Spark4), facts(tree)) == (before, facts_before)


def test_parts_are_replaced_where_they_stand() -> None:
    tree = parsed("a + f(b, a)")
    made = copied_with(tree, lambda each: exp.Literal.number(1) if each.name == "a" else None)
    assert made.sql(Spark4) == "1 + F(b, 1)"
    assert tree.sql(Spark4) == "a + F(b, a)"
    assert all(child.parent is not None for child in made.walk() if child is not made)
    assert [each.index for each in made.find(exp.Anonymous).expressions] == [0, 1]


def test_the_whole_may_be_replaced() -> None:
    assert copied_with(parsed("a"), lambda _: exp.Literal.number(1)).sql() == "1"


def test_a_deep_tree_needs_no_stack() -> None:
    tree: exp.Expr = exp.column("a")
    for _ in range(5_000):
        tree = exp.Not(this=tree)
    assert sum(1 for _ in copied(tree).walk()) == sum(1 for _ in tree.walk())
