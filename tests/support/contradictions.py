"""Stored rows that are gone although a change takes them away, or speaks of them: the refresh must say so."""

from __future__ import annotations

from engine.errors import NegativeMultiplicity
from tests.support.fake_lake import STORED, FakeLake, FakeStreamTable, quoted
from tests.support.multisets import hashable_row
from tests.support.view_runner import Variant, planned
from tests.support.view_test import Row, ViewTest

#: these trust what is stored; the others compare it with what they compute, and mend it
TRUSTING = ("by row", "by group, stored sums")


class PassedOver(AssertionError):
    """A row that is not there was taken away."""


def contradict(test: ViewTest) -> int:
    """Takes away a row before each step that would; how many steps there were."""
    if test.kept not in TRUSTING:
        return 0
    # one lake at a time
    changed, first_to_go = _looked_through(test)
    for number, gone in first_to_go.items():
        _must_be_refused(test, number, gone)
    if not _only_row(test):
        return len(first_to_go)
    for number, before in changed.items():
        _must_be_refused(test, number, before)
    return len(first_to_go) + len(changed)


def _only_row(test: ViewTest) -> bool:
    """Is it one row, of all that there is, which never goes?"""
    groups = planned(test, Variant.OPTIMIZED).kept.groups  # type: ignore[union-attr]
    return groups is not None and not groups.keys


def _looked_through(test: ViewTest) -> tuple[dict[int, Row], dict[int, Row]]:
    """By the number of the step: a row that was there when it changed something, and one that it takes away.

    That one is meant with all of its copies.
    """
    view, found = _made(test), {}
    changed: dict[int, Row] = {}
    for number, step in enumerate(test.steps):
        before = view.stored()
        view.lake.run(step.dml)
        view.refresh()
        if before and view.last_ops:
            changed[number] = before[0]
        after = set(_keys(view, view.stored()))
        gone = [row for row, key in zip(before, _keys(view, before), strict=True) if key not in after]
        if gone:
            found[number] = gone[0]
    return changed, found


def _keys(view: FakeStreamTable, rows: list[Row]) -> list[Row]:
    """What tells rows apart: of rows with an id of their own, all else. Ids are others in each lake."""
    names = [column.name for column in view.kept.full.columns]
    places = [names.index(name) for name in view.kept.identity if name in names] or range(len(names))
    return [hashable_row(tuple(row[place] for place in places)) for row in rows]


def _made(test: ViewTest) -> FakeStreamTable:
    lake = FakeLake(test.relations)
    for table in test.tables:
        lake.insert(table.name, table.rows)
    view = FakeStreamTable(lake, planned(test, Variant.OPTIMIZED))
    view.populate()
    return view


def _must_be_refused(test: ViewTest, number: int, gone: Row) -> None:
    view = _made(test)
    for step in test.steps[:number]:
        view.lake.run(step.dml)
        view.refresh()
    same = " AND ".join(f"{quoted(column.name)} IS NOT DISTINCT FROM ?" for column in view.kept.full.columns)
    view.lake.db.execute(f"DELETE FROM {quoted(STORED)} WHERE {same}", gone)
    view.lake.run(test.steps[number].dml)
    try:
        view.refresh()
    except NegativeMultiplicity:
        return
    raise PassedOver(f"{test.path.name}: {test.steps[number].title!r} takes {gone} away, which was not there")
