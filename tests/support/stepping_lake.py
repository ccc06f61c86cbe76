"""The lake of tests where statements run in steps, as they do where sources are large."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from engine.algebra.display import show
from engine.algebra.nodes import Node
from engine.compile.steps import OPERATORS_MAX, Step, Steps, in_steps
from engine.lake.by_hand import by_hand, rows
from engine.records import Column
from tests.support.fake_lake import FakeLake, quoted, table_of


@dataclass(frozen=True)
class Cut:
    """How statements are cut into steps."""

    operators_max: int
    large: frozenset[str] = frozenset()
    looked_up: frozenset[str] = frozenset()

    @staticmethod
    def finest(tables: Iterable[str]) -> Cut:
        """As many steps as there can be; keys can be looked up in some of the sources, and in others not."""
        return Cut(1, frozenset(tables), frozenset(sorted(tables)[::2]))

    @staticmethod
    def by_chance(tables: Iterable[str], seed: int) -> Cut:
        chance = random.Random(seed)
        large = [name for name in sorted(tables) if chance.random() < 0.7]
        looked_up = [name for name in large if chance.random() < 0.5]
        return Cut(chance.choice((1, 1, 6, 20, OPERATORS_MAX)), frozenset(large), frozenset(looked_up))

    def steps(self, tree: Node) -> Steps:
        return in_steps(tree, self.operators_max, self.large, self.looked_up)


class SteppingLake(FakeLake):
    """Runs statements in steps."""

    def __init__(self, tables: Mapping[str, tuple[Column, ...]], cut: Cut | None = None) -> None:
        super().__init__(tables)
        self._how = cut or Cut.finest(tables)
        self._cut: dict[int, tuple[Node, Steps]] = {}

    def sql(self, tree: Node) -> str:
        left, done = self._steps(tree), set[str]()
        while (step := next((each for each in left.before if each.leaf.name not in done), None)) is not None:
            table = quoted(table_of(step.leaf))
            self.db.execute(f"CREATE OR REPLACE TABLE {table} AS {super().sql(step.tree)}")
            done.add(step.leaf.name)
            self._compare_by_hand(step, table)
            if not self._count(f"SELECT count(*) FROM {table}"):
                left = left.given_empty(step.leaf.name)
        return super().sql(left.last)

    def _compare_by_hand(self, step: Step, made: str) -> None:
        """What the driver may do without Spark gives the same rows."""
        asked = by_hand(step.tree, lambda leaf: quoted(table_of(leaf)))
        if asked is None:
            return
        found = rows(asked, lambda table: self.db.execute(f"SELECT * FROM {table}").to_arrow_table())
        assert found is not None
        expected = self.db.execute(f"SELECT * FROM {made}").to_arrow_table()
        assert found.column_names == expected.column_names
        # DuckDB sums to numbers of other types
        assert _counted(found) == _counted(expected.cast(found.schema)), show(step.tree)

    def _steps(self, tree: Node) -> Steps:
        """Remembered, so that what they are made of can be."""
        known = self._cut.get(id(tree))
        if known is None or known[0] is not tree:
            known = self._cut[id(tree)] = (tree, self._how.steps(tree))
        return known[1]


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())
