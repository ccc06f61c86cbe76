"""Differential or full, decided over real Delta logs, and told beforehand as it then happens. DuckDB computes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from engine.alternatives import Way
from engine.asked import Alteration
from engine.codec import dumps, loads
from engine.errors import InvalidArgument
from engine.explain_text import text_of
from engine.records import Column, Outcome, ReasonCode, RefreshRecord, View
from engine.refresh import costs
from engine.refresh.costs import Costs, Sample, Work
from engine.refresh.foresee import Foresight
from engine.results import RefreshModeExplanation
from tests.faults.simulation import FIRST, Process, Setup, World

SALES = (Column("id", "bigint"), Column("customer", "bigint"), Column("amount", "bigint"))
PEOPLE = (Column("cid", "bigint"), Column("region", "string"))
SUMS = "SELECT customer, SUM(amount) AS amount, COUNT(*) AS n FROM sales GROUP BY customer"
BY_REGION = "SELECT region, SUM(amount) AS amount FROM sales JOIN people ON customer = cid GROUP BY region"


class Shop(World):
    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder,
            Setup(
                "two sources",
                {"sales": SALES, "people": PEOPLE},
                {
                    "sales": tuple((n, n % 10, n) for n in range(200)),
                    "people": tuple((n, f"r{n % 3}") for n in range(10)),
                },
                SUMS,
                (),
            ),
        )

    def make(self, name: str, query: str, mode: str = "AUTO", ratio: float | None = None) -> None:
        self.process.definitions.create(
            name,
            query,
            schedule="10s",
            refresh_mode=mode,
            initialize=True,
            append_only=False,
            comment="",
            enable_cdf=None,
            differential_max_change_ratio=ratio,
        )
        for compute in self._computes:
            compute.know(name, self.table(name).columns)

    def foreseen(self, name: str) -> RefreshModeExplanation:
        """By a process that refreshed nothing, and has no plan of anything."""
        other = Process(self.folder, self.process.compute, self.settings, self.clock)
        refresher = other.refresher
        foresight = Foresight(other.catalog, refresher.observer, other.plans, refresher.sizes, self.settings)
        found = foresight.of(other.catalog.get_stream_table(name))
        other.catalog.close()
        return found

    def go(self, name: str) -> RefreshRecord:
        """What was foreseen is what happens, for the reason and at the price that were told."""
        told = self.foreseen(name)
        done = self.process.refresh(name)
        assert (told.outcome, told.reason.code) == (done.outcome, done.reason.code), text_of(told)
        if done.alternatives:
            assert told.alternatives[1:] == done.alternatives
            assert done.estimated_ms == next(each.ms for each in done.alternatives if each.chosen)
        return done

    def overwrite(self, name: str, sql: str) -> None:
        rows = self.lake.db.execute(sql).to_arrow_table()
        handle = DeltaTable(self.sources[name].path)
        write_deltalake(handle, rows, mode="overwrite")

    def costs(self, name: str) -> Costs:
        text = self.process.catalog.get_costs(self.table(name).id)
        assert text is not None
        return loads(Costs, text)

    def teach(self, name: str, **parts: Any) -> None:
        table = self.table(name)
        self.process.catalog.save_costs(table.id, dumps(replace(self.costs(name), **parts)))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


def slow(times: int = 6) -> tuple[Sample, ...]:
    return (Sample(Work(operators=2, read=1, changed=1, written=1), 60_000.0),) * times


# ---------------------------------------------------------------- what is weighed


def test_a_small_change_is_differential_and_says_what_full_would_cost(shop: Shop) -> None:
    shop.make("sums", SUMS)
    assert shop.go("sums").outcome is Outcome.NO_DATA
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5), (901, 2, 6)")
    done = shop.go("sums")
    assert (done.outcome, done.rows_in) == (Outcome.DIFFERENTIAL, 2)
    assert [each.way for each in done.alternatives] == [Way.DIFFERENTIAL, Way.FULL]
    assert [each.chosen for each in done.alternatives] == [True, False]
    assert "sales 1→2; differential ~" in done.reason.text
    assert ", full ~" in done.reason.text
    assert any(part.what == "2 changed rows" for part in done.alternatives[0].parts)
    assert any(part.what.startswith("202 rows of sources") for part in done.alternatives[1].parts)


def test_what_ran_is_booked_and_survives_the_process(shop: Shop) -> None:
    shop.make("sums", SUMS)
    filled = shop.costs("sums")
    assert (len(filled.differential), len(filled.full), filled.stored_rows) == (0, 1, 10)
    assert filled.full[0].work == Work(operators=1, scanned=200, written=10)
    assert filled.full[0].cold
    assert shop.go("sums").outcome is Outcome.NO_DATA
    assert shop.costs("sums") == filled
    for number in range(3):
        shop.restart()
        shop.change_sources(f"INSERT INTO sales VALUES ({900 + number}, {20 + number}, 5)")
        assert shop.go("sums").outcome is Outcome.DIFFERENTIAL
    learned = shop.costs("sums")
    assert (len(learned.differential), len(learned.full), learned.stored_rows) == (3, 1, 13)
    assert learned.differential[-1].work.changed == 1
    shop.process.refresh("sums", full=True)
    asked = shop.costs("sums")
    assert (len(asked.differential), len(asked.full), asked.spent_in_full_ms) == (3, 2, 0.0)
    assert asked.full[-1].work.scanned == 203


def test_another_query_has_other_costs(shop: Shop) -> None:
    shop.make("sums", SUMS)
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5)")
    shop.go("sums")
    shop.process.alterations.alter("sums", Alteration(query=BY_REGION))
    learned = shop.costs("sums")
    assert (len(learned.differential), len(learned.full)) == (0, 1)
    assert learned.shape.fingerprint == shop.table("sums").fingerprint
    assert learned.shape.looks_through == {"sales": ("people",), "people": ("sales",)}


def test_first_rows_are_priced_as_they_are_told_without_looking(shop: Shop) -> None:
    """By those that are stored and those that changed: the rest of the source is read only where these do not tell."""
    shop.make("dearest", "SELECT id, amount FROM sales ORDER BY amount DESC, id LIMIT 3")
    assert shop.costs("dearest").shape.looks_through == {"sales": ()}
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5000)")
    told = shop.foreseen("dearest").alternatives[1]
    assert told.way is Way.DIFFERENTIAL
    assert not any("to look through" in part.what for part in told.parts), told.parts
    done = shop.go("dearest")
    assert (done.outcome, done.rows_inserted) == (Outcome.DIFFERENTIAL, 1)


def test_auto_goes_where_it_is_cheaper_and_comes_back(shop: Shop) -> None:
    shop.make("sums", SUMS)
    shop.teach("sums", differential=slow(), full=(replace(shop.costs("sums").full[0], ms=200.0, cold=False),))
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5)")
    done = shop.go("sums")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.COST)
    assert "1 changed row of sales: differential ~1m" in done.reason.text
    assert shop.costs("sums").spent_in_full_ms > 0
    # what was learned of the other mode is not touched by what ran
    assert shop.costs("sums").differential == slow()
    quick = tuple(replace(each, ms=20.0) for each in slow())
    shop.teach("sums", differential=quick, full=(replace(shop.costs("sums").full[0], ms=900.0),) * 3)
    shop.change_sources("INSERT INTO sales VALUES (901, 1, 5)")
    assert shop.go("sums").outcome is Outcome.DIFFERENTIAL
    assert shop.costs("sums").spent_in_full_ms == 0


def test_the_word_of_the_owner_is_above_all_prices(shop: Shop) -> None:
    shop.make("strict", SUMS, "DIFFERENTIAL", ratio=0.0)
    shop.teach("strict", differential=slow())
    shop.change_sources("DELETE FROM sales WHERE id < 190")
    assert shop.go("strict").outcome is Outcome.DIFFERENTIAL
    shop.overwrite("sales", "SELECT * FROM sales WHERE false")
    assert shop.go("strict").outcome is Outcome.DIFFERENTIAL


def test_a_change_of_more_than_the_share_is_full(shop: Shop) -> None:
    shop.make("sums", SUMS, ratio=0.1)
    shop.change_sources("DELETE FROM sales WHERE id < 15")
    assert shop.go("sums").outcome is Outcome.DIFFERENTIAL
    shop.change_sources("DELETE FROM sales WHERE id < 60")
    done = shop.go("sums")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.CHANGE_RATIO)
    assert done.reason.text == "45 changed rows of sales are 32 % of it, limit 10 %"
    altered = shop.process.alterations.alter("sums", Alteration(differential_max_change_ratio=1.0))
    assert altered.text == "differential_max_change_ratio 1.0"
    shop.change_sources("DELETE FROM sales WHERE id < 150")
    assert shop.go("sums").outcome is Outcome.DIFFERENTIAL
    altered = shop.process.alterations.alter("sums", Alteration(differential_max_change_ratio="default"))
    assert (altered.text, altered.table.differential_max_change_ratio) == (
        "differential_max_change_ratio default",
        None,
    )
    with pytest.raises(InvalidArgument, match="cannot be 2"):
        shop.process.alterations.alter("sums", Alteration(differential_max_change_ratio=2))
    with pytest.raises(InvalidArgument, match=r"cannot be -0\.5"):
        shop.make("other", SUMS, ratio=-0.5)


# ---------------------------------------------------------------- overwrites


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL"])
def test_after_a_full_refresh_upstream_only_what_differs_is_a_change(shop: Shop, mode: str) -> None:
    shop.make("upstream", "SELECT id, customer, amount FROM sales", "FULL")
    shop.make("downstream", "SELECT customer, SUM(amount) AS amount FROM upstream GROUP BY customer", mode)
    shop.change_sources("UPDATE sales SET amount = amount + 1 WHERE id = 7")
    upstream = shop.go("upstream")
    assert (upstream.outcome, upstream.rows_inserted) == (Outcome.FULL, 200)
    told = shop.foreseen("downstream")
    (change,) = told.changes
    assert (change.kind, change.rows_read, change.is_guess, change.source_rows) == ("overwritten", 400, True, 200)
    done = shop.go("downstream")
    assert (done.outcome, done.rows_in, done.rows_updated) == (Outcome.DIFFERENTIAL, 2, 1)
    # which is worth knowing for the next time
    assert shop.costs("downstream").net_shares == (2 / 400,)
    assert shop.foreseen("downstream").outcome is Outcome.NO_DATA


def test_several_overwrites_are_one_difference(shop: Shop) -> None:
    shop.make("upstream", "SELECT id, customer, amount FROM sales", "FULL")
    shop.make("downstream", "SELECT customer, SUM(amount) AS amount FROM upstream GROUP BY customer")
    for number in range(4):
        shop.change_sources(f"INSERT INTO sales VALUES ({900 + number}, 1, 5)")
        shop.go("upstream")
    (change,) = shop.foreseen("downstream").changes
    assert change.rows_read == 200 + 204
    assert shop.go("downstream").rows_in == 4


def test_once_it_is_read_an_overwrite_of_everything_ends_in_full(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "DIFFERENTIAL", replace(costs.DIFFERENTIAL, changed=200.0))
    shop.make("sums", SUMS)
    dear = (
        Sample(Work(operators=2, read=4), 400.0),
        Sample(Work(operators=2, read=400, changed=400, written=10), 90_000.0),
    ) * 5
    full = (replace(shop.costs("sums").full[0], ms=2_000.0, cold=False),) * 3
    shop.teach("sums", differential=dear, full=full, net_shares=(0.0,) * 5)
    shop.overwrite("sales", "SELECT id + 5000 AS id, customer, amount + 1 AS amount FROM sales")
    assert shop.foreseen("sums").outcome is Outcome.DIFFERENTIAL
    read = shop.process.compute.show_change

    def slowly(*args: Any) -> int | None:
        time.sleep(1)
        return read(*args)

    monkeypatch.setattr(shop.process.compute, "show_change", slowly)
    done = shop.process.refresh("sums")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.COST)
    assert "sales was overwritten, and 400 rows really changed" in done.reason.text
    learned = shop.costs("sums")
    assert learned.net_shares[-1] == 1.0
    assert learned.differential == dear
    # the reading that came to nothing is not the price of a full refresh
    assert done.phases_ms["read change"] > 1_000 > learned.full[-1].ms


def test_the_share_of_an_overwrite_is_what_differs(shop: Shop) -> None:
    """Not what was written, and not what somebody guesses."""
    shop.make("sums", SUMS, ratio=0.05)
    shop.overwrite("sales", "SELECT id, customer, IF(id = 7, 700, amount) AS amount FROM sales")
    assert shop.foreseen("sums").changes[0].rows_changed == 40
    assert (done := shop.go("sums")).outcome is Outcome.DIFFERENTIAL, done.reason
    assert done.rows_in == 2
    shop.overwrite("sales", "SELECT id, customer, IF(id < 30, 800, amount) AS amount FROM sales")
    done = shop.process.refresh("sums")
    assert (done.outcome, done.reason.code) == (Outcome.FULL, ReasonCode.CHANGE_RATIO)
    assert done.reason.text == "60 changed rows of sales are 30 % of it, limit 5 %"
    assert shop.costs("sums").net_shares == (2 / 400, 60 / 400)


def test_an_overwrite_that_nobody_counted_stays_a_guess(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the driver takes are read by Spark, and how many they are is not known."""
    shop.make("sums", SUMS, ratio=0.05)
    read = shop.process.compute.show_change

    def uncounted(*args: Any) -> int | None:
        read(*args)
        return None

    monkeypatch.setattr(shop.process.compute, "show_change", uncounted)
    shop.overwrite("sales", "SELECT id, customer, IF(id = 7, 700, amount) AS amount FROM sales")
    done = shop.process.refresh("sums")
    assert done.outcome is Outcome.DIFFERENTIAL, done.reason
    assert shop.costs("sums").net_shares == ()


def test_a_truncated_source_is_certain_to_have_changed(shop: Shop) -> None:
    shop.make("sums", SUMS)
    shop.overwrite("sales", "SELECT * FROM sales WHERE false")
    (change,) = shop.foreseen("sums").changes
    assert (change.rows_read, change.rows_changed, change.source_rows) == (200, 200, 0)
    done = shop.go("sums")
    assert (done.rows_in, done.rows_deleted) == ((200, 10) if done.outcome is Outcome.DIFFERENTIAL else (0, 10))


# ---------------------------------------------------------------- what is told


def test_a_query_that_is_only_recomputed_says_where_and_why(shop: Shop) -> None:
    query = "SELECT customer FROM sales\nGROUP BY customer HAVING SUM(CAST(amount AS DOUBLE)) > 1"
    shop.make("floats", query)
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5)")
    told = shop.foreseen("floats")
    assert told.outcome is Outcome.FULL
    assert told.reason.position is not None
    assert (told.reason.position.line, told.reason.fragment) == (2, "SUM(CAST(amount AS DOUBLE)) > 1")
    by_way = {each.way: each for each in told.alternatives}
    assert (by_way[Way.DIFFERENTIAL].ms, by_way[Way.DIFFERENTIAL].basis) == (None, told.reason.text)
    text = text_of(told)
    assert "at            line 2, column 26: SUM(CAST(amount AS DOUBLE)) > 1" in text
    assert "  differential  not possible" in text


def test_another_layout_is_foreseen(shop: Shop) -> None:
    shop.make("sums", SUMS)
    sums = shop.table("sums")
    shop.process.catalog.change_stream_table(sums.id, lambda now: replace(now, partition_by=("customer",)))
    done = shop.go("sums")
    assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.LAYOUT_CHANGED)


def test_a_view_with_another_text_is_foreseen(shop: Shop) -> None:
    large = View("large", "SELECT customer, amount FROM sales WHERE amount > 100", shop.clock.now(), "somebody")
    shop.process.catalog.save_view(large, replace=False, readers=())
    shop.make("sums", "SELECT customer, SUM(amount) AS amount FROM large GROUP BY customer")
    larger = replace(large, query="SELECT customer, amount FROM sales WHERE amount > 150")
    shop.process.catalog.save_view(larger, replace=True, readers=())
    told = shop.foreseen("sums")
    done = shop.process.refresh("sums")
    assert (done.outcome, done.reason.code) == (Outcome.REINITIALIZE, ReasonCode.FINGERPRINT_CHANGED)
    assert (told.outcome, told.reason) == (done.outcome, done.reason)
    assert shop.go("sums").outcome is Outcome.NO_DATA


def test_it_is_told_in_words(shop: Shop) -> None:
    shop.make("sums", SUMS, ratio=0.4)
    assert "→ no data       ~5.0ms        no source has changed" in text_of(shop.foreseen("sums"))
    shop.change_sources("INSERT INTO sales VALUES (900, 1, 5)")
    lines = text_of(shop.foreseen("sums")).splitlines()
    assert lines[:3] == ["stream table  sums", "asked for     AUTO", "next refresh  DIFFERENTIAL"]
    assert lines[3].startswith("because       sales 1→2; differential ~")
    assert "limit         40 % of a source's rows" in lines
    assert "source sales 1→2, append: 1 changed row of 201" in lines
    assert "source people" not in "".join(lines)
    assert sum(line.startswith("→ differential") for line in lines) == 1


def test_what_would_fail_is_told_as_an_answer(shop: Shop) -> None:
    shop.make(FIRST, SUMS)
    assert shop.meddle()
    told = shop.foreseen(FIRST)
    assert told.outcome is Outcome.FAILED
    assert told.problem is not None
    assert told.problem.code == "Tampered"
    assert "next refresh  FAILED" in text_of(told)
