"""The cost model on histories whose right answer is known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from engine.codec import dumps, loads
from engine.refresh.costs import (
    DIFFERENTIAL,
    FULL,
    LEAST_GAIN_MS,
    MARGIN,
    Costs,
    Sample,
    Shape,
    Work,
    after_differential,
    after_full,
    cheaper,
    estimate_differential,
    estimate_full,
    median_error,
    net_share,
    with_net_share,
)

EMPTY = Costs(Shape("f", operators=2), stored_rows=1_000)


def change(rows: int, operators: int = 2) -> Work:
    return Work(operators=operators, read=rows, changed=rows, written=min(rows, 1_000))


def whole(rows: int) -> Work:
    return Work(operators=2, scanned=rows, written=1_000)


def taught(
    costs: Costs, real_ms: Callable[[Work], float], works: list[Work], *, full: bool = False, noise: float = 0.0
) -> Costs:
    chance = random.Random(7)
    for work in works:
        sample = Sample(work, real_ms(work) * (1 + noise * chance.uniform(-1, 1)))
        if full:
            costs = after_full(costs, sample, None, stored_rows=1_000, for_its_price=False)
        else:
            costs = after_differential(costs, sample, None, stored_rows=1_000)
    return costs


def linear(fixed: float, per_row: float) -> Callable[[Work], float]:
    return lambda work: fixed + per_row * work.changed


# ---------------------------------------------------------------- what it believes


def test_before_anything_ran_the_prior_speaks() -> None:
    found = estimate_differential(EMPTY, change(1_000))
    assert found.ms == pytest.approx(DIFFERENTIAL.fixed(change(0)) + DIFFERENTIAL.rows(change(1_000)))
    assert found.refreshes == 0
    assert "nowhere" in found.basis
    assert [part.what.split(" ")[0] for part in found.parts] == ["any", "1,000", "1,000", "1,000"]
    assert estimate_full(EMPTY, whole(10**6)).ms == pytest.approx(FULL.fixed(whole(0)) + FULL.rows(whole(10**6)))


@pytest.mark.parametrize(("fixed", "per_row"), [(100, 0.02), (1_500, 0.001), (40, 0.3), (5_000, 0.05)])
def test_linear_costs_are_found_through_noise(fixed: float, per_row: float) -> None:
    works = [change(rows) for rows in (100, 40_000, 3_000, 150_000, 500, 9_000, 80_000, 20_000) * 3]
    costs = taught(EMPTY, linear(fixed, per_row), works, noise=0.15)
    for rows in (200, 5_000, 50_000, 150_000, 400_000):
        expected = linear(fixed, per_row)(change(rows))
        assert estimate_differential(costs, change(rows)).ms == pytest.approx(expected, rel=0.25), rows


def test_a_few_refreshes_are_enough() -> None:
    costs = taught(EMPTY, linear(1_600, 0.08), [change(100), change(20_000), change(300)])
    assert estimate_differential(costs, change(100)).ms == pytest.approx(1_608, rel=0.15)
    assert estimate_differential(costs, change(20_000)).ms == pytest.approx(3_200, rel=0.3)


@pytest.mark.parametrize("known", [True, False])
def test_a_cold_start_poisons_nothing(known: bool) -> None:
    """Also when nobody knew that it was cold."""
    cold = Sample(change(100), 9_000, cold=known)
    costs = after_differential(EMPTY, cold, None, stored_rows=1_000)
    costs = taught(costs, linear(200, 0.02), [change(100), change(120)])
    assert estimate_differential(costs, change(100)).ms < 350
    later = taught(costs, linear(200, 0.02), [change(100)] * 5)
    assert estimate_differential(later, change(100)).ms == pytest.approx(202, rel=0.15)


def test_the_first_of_all_refreshes_says_little_when_it_is_cold() -> None:
    costs = after_full(EMPTY, Sample(whole(1_000), 20_000, cold=True), None, stored_rows=10, for_its_price=False)
    assert estimate_full(costs, whole(1_000)).ms < 2_000
    # nor does it say anything of the machine
    assert estimate_differential(costs, change(10)).ms == pytest.approx(estimate_differential(EMPTY, change(10)).ms)


@pytest.mark.parametrize("outlier_ms", [15.0, 60_000.0])
def test_an_odd_one_among_many_says_nothing(outlier_ms: float) -> None:
    costs = taught(EMPTY, linear(300, 0.02), [change(1_000)] * 10, noise=0.1)
    before = estimate_differential(costs, change(1_000)).ms
    costs = after_differential(costs, Sample(change(1_000), outlier_ms), None, stored_rows=1_000)
    assert estimate_differential(costs, change(1_000)).ms == pytest.approx(before, rel=0.15)


def test_what_lasts_is_believed_soon() -> None:
    costs = taught(EMPTY, linear(300, 0.02), [change(1_000)] * 20)
    costs = taught(costs, linear(1_200, 0.02), [change(1_000)] * 8)
    assert estimate_differential(costs, change(1_000)).ms == pytest.approx(1_220, rel=0.2)


def test_small_changes_say_nothing_of_large_ones() -> None:
    """The noise of a hundred rows is no price of a million."""
    works = [change(rows) for rows in range(50, 150, 5)]
    costs = taught(EMPTY, linear(400, 0.02), works, noise=0.2)
    large = estimate_differential(costs, change(1_000_000)).ms
    assert 0.5 * DIFFERENTIAL.rows(change(1_000_000)) < large < 2 * DIFFERENTIAL.rows(change(1_000_000))


def test_nothing_is_ever_below_nothing() -> None:
    falling = [(10, 5_000.0), (100_000, 100.0), (50_000, 1_000.0)] * 8
    costs = EMPTY
    for rows, ms in falling:
        costs = after_differential(costs, Sample(change(rows), ms), None, stored_rows=1_000)
    for rows in (0, 10, 1_000_000, 10**9):
        found = estimate_differential(costs, change(rows))
        assert all(part.ms >= 0 for part in found.parts)
        assert found.ms > 0


def test_full_grows_with_its_sources() -> None:
    def real(work: Work) -> float:
        return 400 + 0.002 * work.scanned

    costs = taught(EMPTY, real, [whole(rows) for rows in (500_000, 1_000_000, 2_000_000)], full=True, noise=0.05)
    assert estimate_full(costs, whole(8_000_000)).ms == pytest.approx(16_400, rel=0.2)
    assert estimate_full(costs, whole(100_000)).ms == pytest.approx(600, rel=0.4)


def test_a_slow_machine_is_slow_in_both_ways() -> None:
    costs = taught(EMPTY, lambda work: 4 * (FULL.fixed(work) + FULL.rows(work)), [whole(1_000_000)] * 3, full=True)
    assert estimate_differential(costs, change(100)).ms == pytest.approx(
        4 * estimate_differential(EMPTY, change(100)).ms, rel=0.1
    )


def test_groups_that_are_touched_are_no_more_than_there_are() -> None:
    few, many = estimate_differential(EMPTY, change(1_000)), estimate_differential(EMPTY, change(1_000_000))
    written = {part.what: part.ms for part in few.parts}["1,000 rows to write"]
    assert {part.what: part.ms for part in many.parts}["1,000 rows to write"] == written


def test_only_what_ran_is_booked() -> None:
    costs = taught(EMPTY, linear(300, 0.02), [change(100)] * 5)
    after = taught(costs, lambda _: 90_000.0, [whole(10**6)] * 3, full=True)
    assert after.differential == costs.differential
    before = estimate_differential(costs, change(100)).ms
    assert estimate_differential(after, change(100)).ms == pytest.approx(before, rel=0.05)
    again = taught(after, linear(300, 0.02), [change(100)])
    assert again.full == after.full


def test_shares_of_overwrites_and_errors_are_remembered() -> None:
    assert net_share(EMPTY) == 0.1
    costs = EMPTY
    for share in (0.5, 0.001, 0.002, 0.001, 0.003, 0.002):
        costs = with_net_share(costs, share)
    assert net_share(costs) == 0.002
    assert median_error(costs) is None
    for estimated in (100.0, 150.0, 300.0):
        costs = after_differential(costs, Sample(change(1), 200.0), estimated, stored_rows=1)
    assert median_error(costs) == 0.5
    ignored = after_differential(costs, Sample(change(1), 9_000.0, cold=True), 100.0, stored_rows=1)
    assert ignored.errors == costs.errors


# ---------------------------------------------------------------- how it chooses


def test_a_small_change_is_not_doubted_before_it_was_measured() -> None:
    verdict = cheaper(EMPTY, change(9_999), 50_000, 1_000)
    assert not verdict.full
    assert cheaper(EMPTY, change(10_000), 50_000, 1_000).full
    measured = taught(EMPTY, linear(50_000, 0), [change(10)] * 2)
    assert cheaper(measured, change(10), 50_000, 1_000).full
    cold = replace(measured, differential=tuple(replace(each, cold=True) for each in measured.differential))
    assert not cheaper(cold, change(10), 50_000, 1_000).full


def test_full_must_be_clearly_better() -> None:
    large = change(1_000_000)
    assert not cheaper(EMPTY, large, 10_000 * MARGIN, 10_000).full
    assert cheaper(EMPTY, large, 10_000 * MARGIN + 1, 10_000).full
    assert not cheaper(EMPTY, large, LEAST_GAIN_MS + 99, 100).full
    assert cheaper(EMPTY, large, LEAST_GAIN_MS + 100, 100).full


def test_near_the_crossover_it_stays_where_it_is() -> None:
    """Estimates that waver by 10 % around each other: at most one change of mode in a hundred refreshes."""
    chance = random.Random(1)
    costs, modes = EMPTY, []
    for _ in range(100):
        differential_ms, full_ms = 10_000 * chance.uniform(0.95, 1.05), 10_000 * chance.uniform(0.95, 1.05)
        full = cheaper(costs, change(100_000), differential_ms, full_ms).full
        modes.append(full)
        costs = _booked(costs, full, change(100_000), 10_000)
    assert sum(one is not other for one, other in pairwise(modes)) <= 1


def _booked(costs: Costs, full: bool, work: Work, ms: float, estimated_ms: float | None = None) -> Costs:
    if full:
        return after_full(costs, Sample(work, ms), estimated_ms, stored_rows=1_000, for_its_price=True)
    return after_differential(costs, Sample(work, ms), estimated_ms, stored_rows=1_000)


def test_a_full_refresh_by_hand_says_nothing_of_the_mode() -> None:
    costs = after_full(EMPTY, Sample(whole(10), 5_000), None, stored_rows=1, for_its_price=False)
    assert costs.spent_in_full_ms == 0
    assert not cheaper(costs, change(1_000_000), 9_000, 8_000).full


# ---------------------------------------------------------------- lives


@dataclass
class Life:
    """Refreshes whose true costs are known, chosen by the model alone."""

    differential_ms: Callable[[Work], float]
    full_ms: Callable[[Work], float]
    noise: float = 0.1
    seed: int = 0
    costs: Costs = EMPTY
    spent_ms: float = 0.0
    best_ms: float = 0.0
    modes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.refresh(None, 1_000_000)

    def refresh(self, changed: int | None, source_rows: int) -> None:
        every = whole(source_rows)
        if changed is None:
            sample = Sample(every, 3 * self._real(self.full_ms(every)), cold=True)
            self.costs = after_full(self.costs, sample, None, stored_rows=1_000, for_its_price=False)
            return
        some = change(changed)
        differential, full = estimate_differential(self.costs, some), estimate_full(self.costs, every)
        chosen = cheaper(self.costs, some, differential.ms, full.ms).full
        weather = self._real(1.0)
        real = {False: weather * self.differential_ms(some), True: weather * self.full_ms(every)}
        self.spent_ms += real[chosen]
        self.best_ms += min(real.values())
        self.modes.append("full" if chosen else "differential")
        estimated = (full if chosen else differential).ms
        self.costs = _booked(self.costs, chosen, every if chosen else some, real[chosen], estimated)
        if len(self.modes) % 50 == 0:  # another process takes over
            self.costs = loads(Costs, dumps(self.costs))

    def _real(self, ms: float) -> float:
        odd = self.chance.random() < 0.02
        return ms * self.chance.uniform(1 - self.noise, 1 + self.noise) * (5 if odd else 1)

    @property
    def wasted(self) -> float:
        return self.spent_ms / self.best_ms - 1


WORLDS = {
    "as the prior says": (linear(440, 0.03), lambda work: 700 + 0.0006 * work.scanned),
    "a fast machine": (linear(90, 0.004), lambda work: 150 + 0.0001 * work.scanned),
    "a slow machine": (linear(3_000, 0.2), lambda work: 4_000 + 0.006 * work.scanned),
    "dear changes": (linear(400, 0.5), lambda work: 700 + 0.002 * work.scanned),
    "cheap changes": (linear(200, 0.002), lambda work: 700 + 0.004 * work.scanned),
    "a statement that is never worth it": (linear(12_000, 0.02), lambda work: 1_500 + 0.001 * work.scanned),
    "a query that is dear to compute": (linear(2_000, 0.05), lambda work: 5_000 + 0.05 * work.scanned),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_life_of_all_sizes_costs_little_more_than_the_best(world: str, seed: int) -> None:
    """Changes of 10 to 3,000,000 rows, sources that grow from one million rows to five, odd ones in between."""
    life = Life(*WORLDS[world], seed=seed)
    chance = random.Random(seed)
    for number in range(400):
        life.refresh(int(10 ** chance.uniform(1, 6.5)), 1_000_000 + 10_000 * number)
    assert life.wasted < 0.10, life.wasted
    error = median_error(life.costs)
    assert error is not None
    assert error < 0.25


@pytest.mark.parametrize("seed", range(5))
def test_at_the_crossover_nothing_flaps(seed: int) -> None:
    life = Life(linear(500, 0.02), lambda work: 2_500, seed=seed)
    for _ in range(200):
        life.refresh(100_000, 1_000_000)
    changes = sum(one != other for one, other in pairwise(life.modes))
    assert changes <= 8
    assert life.wasted < 0.10


def test_the_full_refresh_gets_dearer_as_the_source_grows() -> None:
    """From one million rows to fifty, with changes of 200,000: full at first, differential in the end."""
    life = Life(linear(500, 0.03), lambda work: 600 + 0.001 * work.scanned)
    for number in range(300):
        life.refresh(200_000, 1_000_000 + 160_000 * number)
    assert life.modes[5:15].count("full") >= 8
    assert life.modes[-100:].count("differential") == 100
    assert life.wasted < 0.10


def test_after_long_in_full_a_small_change_returns_by_itself() -> None:
    life = Life(linear(400, 0.05), lambda work: 2_000)
    for _ in range(50):
        life.refresh(500_000, 1_000_000)
    assert set(life.modes[3:]) == {"full"}
    life.refresh(100, 1_000_000)
    assert life.modes[-1] == "differential"


def test_a_wrong_estimate_does_not_last_for_ever() -> None:
    """Measured while the machine had other work; nobody measures again as long as full is chosen."""
    life = Life(linear(30_000, 0.0), lambda work: 6_000)
    for _ in range(20):
        life.refresh(1_000, 1_000_000)
    assert life.modes[-1] == "full"
    life.differential_ms = linear(500, 0.0)
    for _ in range(300):
        life.refresh(1_000, 1_000_000)
    assert life.modes[-1] == "differential"


def test_trying_again_costs_little() -> None:
    life = Life(linear(30_000, 0.0), lambda work: 6_000, noise=0.0)
    for _ in range(1_000):
        life.refresh(1_000, 1_000_000)
    late = life.modes[100:]
    assert 1 <= late.count("differential") <= 10
    assert life.wasted < 0.15


def test_asking_takes_well_under_a_millisecond() -> None:
    costs = taught(EMPTY, linear(300, 0.02), [change(rows) for rows in range(100, 4_000, 100)], noise=0.2)
    costs = taught(costs, lambda work: 700, [whole(10**6)] * 10, full=True, noise=0.2)
    text, took = dumps(costs), []
    for _ in range(50):
        began = time.perf_counter()
        known = loads(Costs, text)
        cheaper(
            known,
            change(500),
            estimate_differential(known, change(500)).ms,
            estimate_full(known, whole(10**6)).ms,
        )
        took.append((time.perf_counter() - began) * 1000)
    assert min(took) < 1.0, min(took)
