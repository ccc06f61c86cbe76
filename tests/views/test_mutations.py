"""A rule that is wrong must be noticed: each mutation breaks one rule, and a view of this folder has to fail.

A view that passes with every mutation would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.algebra import scalars
from engine.algebra.aggregates import AggregateKind
from engine.algebra.nodes import Node, UnionAll
from engine.algebra.trees import rewrite
from engine.compile.differentiate import aggregate, join, recursive
from engine.compile.keep import accumulators, by_row, group_sums, replace_groups
from engine.compile.optimize import STATEMENT_RULES
from engine.errors import TrickleError
from tests.support.view_runner import Variant, run_view_test
from tests.support.view_test import read_view_test

Patch = pytest.MonkeyPatch
HERE = Path(__file__).parent


def both_sides_new(patch: Patch) -> None:
    """A row and its partner that change together are counted twice."""
    patch.setattr(join, "at_frontier", lambda node: node)


def one_term_missing(patch: Patch) -> None:
    real = join.UnionAll
    patch.setattr(join, "UnionAll", lambda members: real(members[:-1]) if len(members) > 2 else members[0])


def groups_never_were(patch: Patch) -> None:
    """What a touched group was before is not taken back."""
    patch.setattr(aggregate, "at_frontier", lambda node: node)


def keys_compared_without_null(patch: Patch) -> None:
    for module in (by_row, group_sums, replace_groups):
        patch.setattr(module, "null_safe_eq", scalars.eq)


def sums_only_grow(patch: Patch) -> None:
    patch.setattr(accumulators, "neg", lambda value: value)


def nulls_are_counted(patch: Patch) -> None:
    real = accumulators.Accumulator.change

    def change(self: accumulators.Accumulator) -> object:
        rows = replace(self.part, argument=None)
        counted = replace(self, part=rows) if self.kind is AggregateKind.COUNT else self
        return real(counted)

    patch.setattr(accumulators.Accumulator, "change", change)


def the_change_is_all_there_is(patch: Patch) -> None:
    """Of an extreme, what is stored is forgotten."""
    patch.setattr(accumulators, "merged", lambda kind, stored, change: change)


def new_ways_are_not_followed(patch: Patch) -> None:
    """A recursion goes on from new starts only, and not from what was found before."""
    patch.setattr(recursive, "UnionAll", lambda members: members[0])


def empty_groups_stay(patch: Patch) -> None:
    patch.setattr(group_sums, "eq", lambda left, right: scalars.lt(left, scalars.lit(0)))


def appends_only_insert(patch: Patch) -> None:
    patch.setattr(by_row, "only_grows", lambda root: True)


def changes_are_not_netted(patch: Patch) -> None:
    patch.setattr(by_row, "consolidate", lambda changes: changes)


def what_was_comes_again(patch: Patch) -> None:
    """What a touched group was before is added instead of taken away."""
    real = aggregate.weighted
    patch.setattr(aggregate, "weighted", lambda tree, weight: real(tree, 1))


def a_union_is_its_first_input(patch: Patch) -> None:
    """The optimizer takes the first input of a union for all of it."""

    def first_only(node: Node) -> Node:
        return node.members[0] if isinstance(node, UnionAll) else node

    rules = (lambda root: rewrite(root, first_only), *STATEMENT_RULES)
    patch.setattr("tests.support.view_runner.STATEMENT_RULES", rules)


@pytest.mark.parametrize(
    ("mutate", "view"),
    [
        (both_sides_new, "joins/both_sides_change_everything"),
        (one_term_missing, "joins/three_way"),
        (groups_never_were, "nested/join_with_aggregate"),
        (keys_compared_without_null, "groups/null_keys"),
        (keys_compared_without_null, "rows/all_null_rows"),
        (keys_compared_without_null, "groups/doubles"),
        (sums_only_grow, "groups/sums"),
        (nulls_are_counted, "groups/sums"),
        (the_change_is_all_there_is, "groups/extremes"),
        (the_change_is_all_there_is, "groups/bits"),
        (new_ways_are_not_followed, "recursive/paths"),
        (empty_groups_stay, "groups/sums"),
        (appends_only_insert, "nested/sources_that_only_grow"),
        (changes_are_not_netted, "rows/nothing_net"),
        (what_was_comes_again, "nested/aggregate_of_aggregate"),
        (a_union_is_its_first_input, "joins/both_sides_change_everything"),
    ],
    ids=lambda value: value.__name__ if callable(value) else value,
)
def test_a_mutation_is_caught(mutate: Callable[[Patch], None], view: str, monkeypatch: Patch) -> None:
    test = read_view_test(HERE / f"{view}.test")
    run_view_test(test, Variant.OPTIMIZED)
    mutate(monkeypatch)
    with pytest.raises((AssertionError, TrickleError)):
        run_view_test(test, Variant.OPTIMIZED)
