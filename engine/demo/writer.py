"""The shop's writer: a process of its own that keeps committing to the sources, as other people's systems do.

    python -m engine.demo.writer FOLDER [--seed N] [--pause S]

It ends when its standard input ends: whoever started it holds the other end, so that it goes when they go,
however they go. Started again it continues where the tables are.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from engine.demo.rows import CUSTOMERS, ORDER_ITEMS, ORDERS, PAYMENTS, PRODUCTS, TABLES
from engine.demo.shop import REMEMBERED_ORDERS, Shop, Size, open_shop, reopen_shop
from engine.lake.demo_tables import DemoTable

SEED = 20_240_229

#: many small commits leave many small files: after so many the writer tidies up, as a careful owner does
COMMITS_BEFORE_MAINTENANCE = 60


def make_sources(lake: Path, seed: int, size: Size, now: datetime) -> bool:
    """Creates the sources that do not exist yet; False when all of them were there."""
    missing = [shape for shape in TABLES if not DemoTable.exists(lake / shape.name)]
    if not missing:
        return False
    _, rows = open_shop(seed, now, size)
    for shape in missing:
        DemoTable.create(lake / shape.name, shape.columns, rows[shape.name])
    return True


class Writer:
    """Commits what happens in the shop to its tables."""

    def __init__(self, lake: Path, seed: int) -> None:
        self._tables = {shape.name: DemoTable(lake / shape.name, shape.columns, shape.key) for shape in TABLES}
        self._commits = dict.fromkeys(self._tables, 0)
        self.shop = self._reopen(seed)

    def _reopen(self, seed: int) -> Shop:
        highest = {shape.name: self._tables[shape.name].highest(shape.key[0]) for shape in TABLES}
        since = ("order_id", max(1, highest[ORDERS.name] - REMEMBERED_ORDERS))
        rows = {
            CUSTOMERS.name: self._tables[CUSTOMERS.name].rows(),
            PRODUCTS.name: self._tables[PRODUCTS.name].rows(),
            **{shape.name: self._tables[shape.name].rows(since) for shape in (ORDERS, ORDER_ITEMS, PAYMENTS)},
        }
        # a deleted test order must not give its number to another: its lines were counted as well
        highest[ORDERS.name] = max(highest[ORDERS.name], highest[ORDER_ITEMS.name])
        return reopen_shop(seed, rows, {name: number + 1 for name, number in highest.items()})

    def step(self, now: datetime) -> str:
        """One business moment, one commit per table that it touches."""
        moment = self.shop.next_moment(now)
        for change in moment.changes:
            table = self._tables[change.table]
            table.commit(change.inserts, change.updates, change.deletes)
            self._commits[change.table] += 1
            if self._commits[change.table] % COMMITS_BEFORE_MAINTENANCE == 0:
                table.maintain()
        return moment.what

    def run(self, pause_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        while True:
            self.step(datetime.now(UTC))
            # between half and twice the pause, as customers come
            sleep(pause_s * self.shop.chance.uniform(0.5, 2.0))


def exit_with_parent() -> None:
    """Ends this process as soon as nobody holds the other end of its standard input any more."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            continue
        os._exit(0)

    threading.Thread(target=wait, name="parent watch", daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.demo.writer", description=__doc__)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two commits, on average")
    given = parser.parse_args(arguments)
    exit_with_parent()
    make_sources(given.lake, given.seed, Size(), datetime.now(UTC))
    # whoever started this waits for the tables, not for the first commit
    print("ready", flush=True)
    Writer(given.lake, given.seed).run(given.pause)


if __name__ == "__main__":
    main()
