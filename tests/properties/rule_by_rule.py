"""Each rule of the optimizer by itself: a tree as it was derived and what one rule makes of it give the same rows."""

from __future__ import annotations

from collections.abc import Iterator

from engine.algebra.nodes import Node
from engine.compile.bind import bind
from engine.compile.optimize import PLAN_RULES, STATEMENT_RULES, Rule
from engine.compile.pipeline import Analyzer, Request, compile_query
from tests.properties.case import Case
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import same_rows, written

RULES: tuple[Rule, ...] = tuple(dict.fromkeys((*PLAN_RULES, *STATEMENT_RULES)))


class RuleChangesRows(AssertionError):
    """A rule of the optimizer is not one."""


def check_each_rule(case: Case, analyzer: Analyzer, lake: FakeLake) -> set[str]:
    """Through all steps; the names of the rules that changed a tree anywhere."""
    plan = compile_query(Request(case.query.sql(), case.relations, rules=()), analyzer)
    if plan.kept is None:
        return set()
    for table in case.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, plan)
    view.populate()
    applied: set[str] = set()
    for number, step in enumerate(case.steps, start=1):
        step.run(lake)
        for name, tree in trees(view):
            applied |= _compared(lake, tree, f"{name}, step {number}")
        view.refresh(())
    return applied


def trees(view: FakeStreamTable) -> Iterator[tuple[str, Node]]:
    """What there is to compute at this moment, as derived."""
    statements = bind(view.kept, view.lake.kinds, ())
    if view.plan.root is not None:
        yield "the query", view.plan.root
    yield "the whole result", view.kept.full
    if statements.is_empty:
        return
    if statements.shortcut is not None:
        yield "the shortcut", statements.shortcut
    if statements.first is not None:
        view.materialize_net(statements.first)
        yield "the first statement", statements.first
    yield "the change", statements.change


def _compared(lake: FakeLake, tree: Node, where: str) -> set[str]:
    before, applied = lake.evaluate(tree), set()
    for rule in RULES:
        made = rule(tree)
        if made is tree:
            continue
        applied.add(rule.__name__)
        after = lake.evaluate(made)
        if not same_rows(before, after):
            raise RuleChangesRows(
                f"{rule.__name__} changes the rows of {where}\n  before\n{written(before)}\n  after\n{written(after)}"
            )
    return applied
