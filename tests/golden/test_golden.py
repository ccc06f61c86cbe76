"""Pictures of the compiler at work, kept as text: a change of any stage is seen, and looked at, before it is kept.

`compile/*.golden` show a query at each stage, and what is left to run for each set of changed sources, as tree and as
Spark's SQL. `rules/*.golden` show one rule of the optimizer, before and after, `rules/<rule>-<case>.golden` the same
rule on more operators. The upper part of each file is written by hand, in the format of tests/views; the lower one by
`pytest --update-golden`.

`large/*.golden` show a statement over large sources that have all changed: what is computed first, and what is left.

Every rule's before and after are also run on DuckDB, in every file: they must give the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from engine.algebra.display import show
from engine.algebra.nodes import Node
from engine.compile.bind import Change, Statements, bind
from engine.compile.optimize import PLAN_RULES, STATEMENT_RULES
from engine.compile.pipeline import Request, compile_query
from engine.compile.plan import MaintenancePlan
from engine.compile.render import render
from engine.compile.steps import in_steps
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import same_rows, written
from tests.support.view_test import ViewTest, parse_view_test

HERE = Path(__file__).parent
CUT = "======== below: written by pytest --update-golden ========\n"
COMPILE = sorted((HERE / "compile").glob("*.golden"))
RULES = sorted((HERE / "rules").glob("*.golden"))
LARGE = sorted((HERE / "large").glob("*.golden"))


@pytest.mark.parametrize("path", COMPILE, ids=lambda path: path.stem)
def test_stages(path: Path) -> None:
    test, given = read(path)
    compare(path, given, "\n".join(stages(test)))


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rule(path: Path) -> None:
    test, given = read(path)
    compare(path, given, "\n".join(before_and_after(test, rule_of(path))))


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_large_sources(path: Path) -> None:
    test, given = read(path)
    compare(path, given, "\n".join(steps(test)))


@pytest.mark.parametrize("path", COMPILE + RULES + LARGE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rules_keep_the_rows(path: Path) -> None:
    test, _ = read(path)
    lake, view = populated(test)
    for step in test.steps:
        lake.run(step.dml)
    statements = bind(view.kept, lake.kinds)
    if statements.first is not None:
        view.materialize_net(statements.first)
    pictures = [(picture.name, picture.given, picture.left) for picture in (*view.plan.pictures, *statements.pictures)]
    large = frozenset(view.plan.sources)
    narrowed = [("large", tree, in_steps(tree, large=large).whole) for tree in statements.trees]
    for name, given, left in (*pictures, *narrowed):
        if isinstance(given, Node) and isinstance(left, Node):
            before, after = lake.evaluate(given), lake.evaluate(left)
            assert same_rows(before, after), (
                f"{name} changed the rows\n  before\n{written(before)}\n  after\n{written(after)}"
            )


def test_each_rule_is_shown() -> None:
    names = {rule.__name__ for rule in (*PLAN_RULES, *STATEMENT_RULES)}
    assert {rule_of(path) for path in RULES} == names


def rule_of(path: Path) -> str:
    """`rule.golden` shows the rule as simply as can be, `rule-case.golden` a case more."""
    return path.stem.partition("-")[0]


def read(path: Path) -> tuple[ViewTest, str]:
    """The case above the cut, and its text."""
    given = path.read_text(encoding="utf-8").partition(CUT)[0]
    return parse_view_test(given, path), given


def planned(test: ViewTest) -> MaintenancePlan:
    plan = compile_query(Request(test.query, test.relations), DuckAnalyzer(test.relations))
    assert plan.kept is not None, plan.full_reason
    assert plan.kept.rule.name == test.kept
    return plan


def populated(test: ViewTest) -> tuple[FakeLake, FakeStreamTable]:
    lake = FakeLake(test.relations)
    for table in test.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, planned(test))
    view.populate()
    return lake, view


def stages(test: ViewTest) -> Iterator[str]:
    plan = planned(test)
    for stage in plan.stages:
        unchanged = "" if stage.changed or stage.name == "parse" else " (changes nothing)"
        yield f"---- {stage.name}{unchanged}"
        if not unchanged:
            yield stage.text + "\n"
    yield "==== full refresh\n" + render(plan.kept.full, pretty=True) + "\n" if plan.kept else ""
    for changes in change_sets(plan):
        told = ", ".join(f"{name} {kind.value}" for name, kind in changes.items())
        yield from bound(f"==== changed: {told}", bind_statements(plan, changes))


def change_sets(plan: MaintenancePlan) -> Iterator[dict[str, Change]]:
    for size in range(1, len(plan.sources) + 1):
        for names in combinations(plan.sources, size):
            yield dict.fromkeys(names, Change.MIXED)
    yield dict.fromkeys(plan.sources, Change.APPEND)


def bind_statements(plan: MaintenancePlan, changes: dict[str, Change]) -> Statements:
    assert plan.kept is not None
    return bind(plan.kept, changes)


def bound(title: str, statements: Statements) -> Iterator[str]:
    yield title
    named = (("shortcut", statements.shortcut), ("first", statements.first), ("change", statements.change))
    for name, tree in named:
        if tree is not None:
            yield f"---- {name}\n{show(tree)}\n\n{render(tree, pretty=True)}\n"


def before_and_after(test: ViewTest, rule: str) -> Iterator[str]:
    plan = planned(test)
    statements = bind_statements(plan, dict.fromkeys((step.title for step in test.steps), Change.MIXED))
    shown = 0
    for picture in (*plan.pictures, *statements.pictures):
        if picture.name.split(": ")[-1] == rule and picture.changed:
            assert isinstance(picture.given, Node)
            assert isinstance(picture.left, Node)
            shown += 1
            yield f"---- {picture.name}: before\n{show(picture.given)}\n"
            yield f"---- {picture.name}: after\n{show(picture.left)}\n"
    assert shown, f"{rule} changes nothing here"


def steps(test: ViewTest) -> Iterator[str]:
    plan = planned(test)
    statements = bind_statements(plan, dict.fromkeys(plan.sources, Change.MIXED))
    cut = in_steps(statements.usual.trees[0], large=frozenset(plan.sources))
    for step in cut.before:
        yield f"---- {step.leaf}{', few rows' if step.is_few else ''}\n{show(step.tree)}\n"
    yield f"---- what is left\n{show(cut.last)}\n"


def compare(path: Path, given: str, made: str) -> None:
    text = given.rstrip() + "\n\n" + CUT + made.rstrip() + "\n"
    if os.environ.get("TRICKLE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, (
        f"{path.name} differs: look at the difference, then --update-golden"
    )
