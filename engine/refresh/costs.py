"""What refreshes cost: a small model of each stream table, taught by its own refreshes that really did the work.

    ms = a × (what any such statement costs) + b × (what the rows that it works on cost)

The prior's prices were measured (`python -m bench.costs`, two cores with other work on them) and are right for no
machine and no query in particular: a and b are what the stream table's own refreshes say.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine.alternatives import CostPart

#: so many refreshes of each kind are remembered
DIFFERENTIALS, FULLS, SHARES, ERRORS = 24, 8, 5, 20
#: each refresh counts for so much of the one after it
_FADING = 0.9
#: refreshes of a cold JVM are slow, by which nothing is learned of warm ones
_COLD_WEIGHT = 0.2
#: the prior counts like so much of a refresh
_PRIOR_WEIGHT = 0.5
#: refreshes differ by so much although they do the same
_NOISE = 0.1
#: of what it was thought to be, each part stays at least: nothing is free, and nothing costs less than nothing
_LEAST = 0.02
#: another mode than the last must be better by this factor …
MARGIN = 1.2
#: … and full must save so much: it rewrites the table, which costs those who read it
LEAST_GAIN_MS = 500.0
#: so many differential refreshes of a warm JVM tell more than the prior …
_MEASURED = 2
#: … before that, changes of fewer rows are not weighed at all
_SMALL = 10_000
#: what one kind of refresh says of the machine counts for the other kind within this factor
_MACHINE = 5.0
#: so much of the time spent in full refreshes may be lost by trying whether differential ones became cheaper
_TRIAL_SHARE = 0.03
#: of an overwritten table so many rows are thought to differ, before one was read
_PRIOR_SHARE = 0.1


@dataclass(frozen=True)
class Shape:
    """What of a plan decides about its costs."""

    fingerprint: str
    #: joins, groupings and windows of the query
    operators: int = 0
    #: by source: those of the statements that run when it changes
    statement_operators: dict[str, int] = field(default_factory=dict)
    #: is a stored row a group, so that no more rows are touched than are stored?
    by_group: bool = False
    #: by source: those of which more than the change is read when it changes
    looks_through: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: by source: the columns that the query reads
    used_columns: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What a refresh has to do with."""

    #: joins, groupings and windows that run
    operators: int = 0
    #: of the change as its writers left it
    read: int = 0
    #: of the change when what came and what went again has cancelled
    changed: int = 0
    #: of sources that are looked through
    scanned: int = 0
    #: of those, the ones in groups that are computed anew
    recomputed: int = 0
    #: of the stream table, that are written
    written: int = 0


@dataclass(frozen=True)
class Sample:
    """A refresh that really did this."""

    work: Work
    ms: float
    #: was the JVM so young that it says little?
    cold: bool = False


@dataclass(frozen=True)
class Costs:
    """All that is known of one stream table. Newest last."""

    shape: Shape
    differential: tuple[Sample, ...] = ()
    full: tuple[Sample, ...] = ()
    #: of tables that were overwritten: which share of the rows that had to be read had really changed
    net_shares: tuple[float, ...] = ()
    #: |estimate − actual| / actual
    errors: tuple[float, ...] = ()
    stored_rows: int = 0
    #: in full refreshes that were chosen for their price, one after the other; 0 where a differential one was the last
    spent_in_full_ms: float = 0.0


@dataclass(frozen=True)
class Prices:
    """In ms. The rows of the change that are read count before they cancel, `changed` after that."""

    refresh: float
    operator: float
    read: float
    changed: float
    scanned: float
    recomputed: float
    written: float

    def fixed(self, work: Work) -> float:
        return self.refresh + self.operator * work.operators

    def rows(self, work: Work) -> float:
        return sum(price * count for _, price, count in self.by_rows(work))

    def by_rows(self, work: Work) -> tuple[tuple[str, float, int], ...]:
        return (
            ("rows of changes to read", self.read, work.read),
            ("changed rows", self.changed, work.changed),
            ("rows of sources to look through", self.scanned, work.scanned),
            ("rows in groups to compute anew", self.recomputed, work.recomputed),
            ("rows to write", self.written, work.written),
        )


DIFFERENTIAL = Prices(200, 25, read=0.003, changed=0.016, scanned=0.00005, recomputed=0.0003, written=0.012)
FULL = Prices(300, 60, read=0, changed=0, scanned=0.0004, recomputed=0, written=0.0003)


@dataclass(frozen=True)
class Estimate:
    parts: tuple[CostPart, ...]
    #: how many refreshes it stands on
    refreshes: int

    @property
    def ms(self) -> float:
        return sum(part.ms for part in self.parts)

    @property
    def basis(self) -> str:
        if not self.refreshes:
            return "measured nowhere yet: by the rows and operators alone"
        return f"by its last {'refresh' if self.refreshes == 1 else f'{self.refreshes} refreshes'} of this kind"


@dataclass(frozen=True)
class Fit:
    """What the prior has to be multiplied by."""

    fixed: float
    rows: float


@dataclass(frozen=True)
class Verdict:
    full: bool
    why: str


# ---------------------------------------------------------------- asking


def estimate_differential(costs: Costs, work: Work) -> Estimate:
    return _estimate(DIFFERENTIAL, costs.differential, work, _machine(FULL, costs.full))


def estimate_full(costs: Costs, work: Work) -> Estimate:
    return _estimate(FULL, costs.full, work, _machine(DIFFERENTIAL, costs.differential))


def net_share(costs: Costs) -> float:
    """Which share of an overwritten table's rows is likely to have really changed."""
    return statistics.median(costs.net_shares) if costs.net_shares else _PRIOR_SHARE


def median_error(costs: Costs) -> float | None:
    return statistics.median(costs.errors) if costs.errors else None


def cheaper(costs: Costs, work: Work, differential_ms: float, full_ms: float) -> Verdict:
    """Stays with what ran last unless the other is clearly better: near the crossover both are equally good."""
    if costs.spent_in_full_ms:
        if differential_ms * MARGIN < full_ms:
            return Verdict(False, "differential is clearly cheaper again")
        # an estimate that nobody checks may be wrong for ever
        if differential_ms - full_ms <= _TRIAL_SHARE * costs.spent_in_full_ms:
            return Verdict(False, "differential is tried again after many full ones")
        return Verdict(True, "differential is not clearly cheaper, and full ran last")
    if full_ms * MARGIN >= differential_ms or differential_ms - full_ms < LEAST_GAIN_MS:
        return Verdict(False, "full is not clearly cheaper" if full_ms < differential_ms else "differential is cheaper")
    if max(work.read, work.changed) < _SMALL and sum(not each.cold for each in costs.differential) < _MEASURED:
        return Verdict(False, "a small change, and how long such ones take is not known yet")
    return Verdict(True, "full is clearly cheaper")


# ---------------------------------------------------------------- learning


def after_differential(costs: Costs, sample: Sample, estimated_ms: float | None, *, stored_rows: int) -> Costs:
    return replace(
        costs,
        differential=(*costs.differential, sample)[-DIFFERENTIALS:],
        errors=_with_error(costs, sample, estimated_ms),
        stored_rows=stored_rows,
        spent_in_full_ms=0.0,
    )


def after_full(
    costs: Costs, sample: Sample, estimated_ms: float | None, *, stored_rows: int, for_its_price: bool
) -> Costs:
    """Whoever asks for a full refresh says nothing about which is the better one."""
    spent_ms = costs.spent_in_full_ms + sample.ms if for_its_price else costs.spent_in_full_ms
    return replace(
        costs,
        full=(*costs.full, sample)[-FULLS:],
        errors=_with_error(costs, sample, estimated_ms),
        stored_rows=stored_rows,
        spent_in_full_ms=spent_ms,
    )


def with_net_share(costs: Costs, share: float) -> Costs:
    return replace(costs, net_shares=(*costs.net_shares, share)[-SHARES:])


def _with_error(costs: Costs, sample: Sample, estimated_ms: float | None) -> tuple[float, ...]:
    if estimated_ms is None or sample.cold or sample.ms <= 0:
        return costs.errors
    return (*costs.errors, round(abs(estimated_ms - sample.ms) / sample.ms, 4))[-ERRORS:]


# ---------------------------------------------------------------- the model


def _estimate(prices: Prices, samples: Sequence[Sample], work: Work, machine: float) -> Estimate:
    fitted = fit(_seen(prices, samples), machine)
    parts = [CostPart(f"any refresh of {work.operators} operators", fitted.fixed * prices.fixed(work))]
    for what, price, rows in prices.by_rows(work):
        if price * rows > 0:
            parts.append(CostPart(f"{rows:,} {what}", fitted.rows * price * rows))
    return Estimate(tuple(parts), len(samples))


def _machine(prices: Prices, samples: Sequence[Sample]) -> float:
    """How much slower than the prior the other kind of refresh is here: what is not measured is likely to be so too."""
    seen = _seen(prices, samples)
    votes = [(ms / (fixed + rows), weight) for (fixed, rows, ms, weight) in seen]
    return min(_MACHINE, max(1 / _MACHINE, _weighted_median([(1.0, _PRIOR_WEIGHT), *votes])))


#: fixed and rows by the prior, ms, weight
_Seen = tuple[float, float, float, float]


def _seen(prices: Prices, samples: Sequence[Sample]) -> list[_Seen]:
    last = len(samples) - 1
    return [
        (
            prices.fixed(each.work),
            prices.rows(each.work),
            each.ms,
            _FADING ** (last - place) * (_COLD_WEIGHT if each.cold else 1.0),
        )
        for place, each in enumerate(samples)
    ]


def fit(seen: Sequence[_Seen], machine: float = 1.0) -> Fit:
    """First a factor for each of the two parts, as the median of what the refreshes say: each has a say in a part by
    the share that this has in it, and the prior has one too, so that a single odd refresh decides nothing. Then a
    regression around that, held to it where the refreshes do not differ enough to tell the parts from each other.
    """
    if not seen:
        return Fit(machine, machine)
    fixed_votes, rows_votes = [(machine, _PRIOR_WEIGHT)], [(machine, _PRIOR_WEIGHT)]
    for fixed, rows, ms, weight in seen:
        share, factor = fixed / (fixed + rows), ms / (fixed + rows)
        fixed_votes.append((factor, weight * share))
        rows_votes.append((factor, weight * (1 - share)))
    return _bent(Fit(_weighted_median(fixed_votes), _weighted_median(rows_votes)), seen)


def _bent(start: Fit, seen: Sequence[_Seen]) -> Fit:
    """Least squares of relative errors, where those that are far off count little, and the start counts too."""
    found = start
    for _ in range(4):
        errors = [ms / (found.fixed * fixed + found.rows * rows) - 1 for fixed, rows, ms, _ in seen]
        typical = _weighted_median([(abs(error), each[3]) for error, each in zip(errors, seen, strict=True)])
        noise = max(_NOISE, 1.5 * typical)
        # unknown are the deviations of both parts from the start, relative to it
        aa = bb = noise**2
        ab = ay = by = 0.0
        for error, (fixed, rows, ms, weight) in zip(errors, seen, strict=True):
            whole = start.fixed * fixed + start.rows * rows
            share, away = start.fixed * fixed / whole, ms / whole - 1
            trust = weight * min(1.0, (2 * noise / abs(error)) ** 2) if error else weight
            aa += trust * share * share
            bb += trust * (1 - share) * (1 - share)
            ab += trust * share * (1 - share)
            ay += trust * share * away
            by += trust * (1 - share) * away
        determinant = aa * bb - ab * ab
        found = Fit(
            start.fixed * max(_LEAST, 1 + (ay * bb - by * ab) / determinant),
            start.rows * max(_LEAST, 1 + (by * aa - ay * ab) / determinant),
        )
    return found


def _weighted_median(votes: Iterable[tuple[float, float]]) -> float:
    ordered = sorted(votes)
    half = sum(weight for _, weight in ordered) / 2
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= half:
            return value
    return ordered[-1][0]
