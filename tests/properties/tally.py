"""What a run of many cases came to, in numbers that can be added up over processes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tests.properties.features import FEATURES
from tests.properties.judge import REFUSED, Outcome

#: names that the generator gave: they tell nothing about why a query is refused
NAMES = re.compile(r"\b[cefmnrqwx]\d+\b(\.\w+)?")


@dataclass
class Tally:
    cases: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    #: features of cases that were maintained
    maintained: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome, features: frozenset[str]) -> None:
        self.cases += 1
        self.ways[outcome.way] += 1
        self.features.update(features)
        self.asked.update(outcome.asked)
        if outcome.way == REFUSED:
            self.reasons[NAMES.sub("…", outcome.reason)] += 1
        else:
            self.maintained.update(features)

    def merge(self, other: Tally) -> None:
        self.cases += other.cases
        self.failures += other.failures
        for name in ("ways", "reasons", "features", "maintained", "asked"):
            getattr(self, name).update(getattr(other, name))

    def line(self, took_s: float) -> str:
        rate = self.cases / took_s if took_s else 0
        ways = ", ".join(f"{count} {way}" for way, count in self.ways.most_common())
        return f"{self.cases} cases in {took_s:.0f} s ({rate:.0f}/s), {len(self.failures)} failures; {ways}"

    def summary(self, took_s: float) -> str:
        parts = [self.line(took_s)]
        if self.asked:
            parts.append("further oracles: " + ", ".join(f"{how} {count}" for how, count in self.asked.most_common()))
        if self.reasons:
            lines = [f"  {count:6d}  {reason}" for reason, count in self.reasons.most_common()]
            parts.append("\n".join(["refused because of", *lines]))
        lines = [
            f"  {name:24s}{self.features[name]:7d}{self.maintained[name]:12d}"
            for name in sorted(FEATURES, key=lambda name: -self.features[name])
            if self.features[name]
        ]
        parts.append("\n".join([f"  {'feature':24s}{'cases':>7s}{'maintained':>12s}", *lines]))
        never = [name for name in FEATURES if not self.features[name]]
        if never:
            parts.append(f"never: {', '.join(never)}")
        return "\n".join(parts)
