"""Chance, weighed: what a seed decides, and how often a feature comes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.properties.features import Weights, weights
from tests.properties.tree import Query, Ref, Scalar
from tests.properties.types import MOMENT, PLAIN

T = TypeVar("T")

#: how many tables and queries' results one case joins, unites and looks into, all in all
SIZES = (1, 2, 2, 3, 3, 4, 5, 7)


@dataclass(frozen=True)
class Known:
    """A relation that can be named: a table, or what a WITH made."""

    name: str
    columns: tuple[Ref, ...]
    is_table: bool = True


@dataclass(frozen=True)
class Around:
    """What a query finds where it stands."""

    relations: tuple[Known, ...]
    depth: int = 0
    #: Does it look at a row outside? Then DuckDB has no semi joins and merged columns in its FROM.
    correlated: bool = False

    def deeper(self, *, correlated: bool = False) -> Around:
        return Around(self.relations, self.depth + 1, correlated)


class Dice:
    """What every part of the generator throws; the parts add to it what they make."""

    def __init__(self, seed: int, chosen: Weights | None = None) -> None:
        self.random = random.Random(seed)
        self.weights = weights() if chosen is None else chosen
        self.types = tuple(type_ for type_ in PLAIN if type_ != MOMENT or self.weights["moments"])
        self.numbers: dict[str, int] = {}
        self.relations_left = self.choice(SIZES)
        #: how many relations may still be multiplied with others
        self.products_left = 1
        #: names of what was made by recursion
        self.recursions: set[str] = set()
        #: are rows of equal rank left in whatever order?
        self.ties = False

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choice(self, from_: Sequence[T]) -> T:
        return from_[int(self.random.random() * len(from_))]

    def wants(self, feature: str, probability: float) -> bool:
        weight = self.weights[feature]
        return weight > 0 and self.random.random() < probability * weight

    def pick(self, shares: Mapping[str, float], otherwise: str = "") -> str:
        """One of several features by their shares; a name that is no feature always has its share."""
        found = [(name, share * self.weights.get(name, 1.0)) for name, share in shares.items()]
        total = sum(share for _, share in found)
        if total <= 0:
            return otherwise
        point = self.random.random() * total
        for name, share in found:
            point -= share
            if point < 0:
                return name
        return next(name for name, share in reversed(found) if share > 0)

    def few(self, *numbers: int) -> int:
        return self.choice(numbers)

    def fresh(self, letter: str) -> str:
        number = self.numbers[letter] = self.numbers.get(letter, -1) + 1
        return f"{letter}{number}"

    # what other parts of the generator provide

    def query(self, around: Around, want: tuple[str, ...] | None = None) -> Query:
        raise AssertionError("provided by the part that makes queries")

    def subquery_predicate(self, around: Around, fields: tuple[Ref, ...]) -> Scalar | None:
        raise AssertionError("provided by the part that makes subqueries")
