"""Python's garbage collector, told how programs of tests live."""

from __future__ import annotations

import gc

#: new objects before it looks: a query of many operators makes as many, all of which are needed for a while
SELDOM = 20_000


def collect_seldom() -> None:
    """Syntax trees know their parents: each part of one is looked at again and again, a tenth of all time."""
    gc.freeze()
    gc.set_threshold(SELDOM, 20, 20)
