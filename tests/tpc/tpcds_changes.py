"""What happens to TPC-DS between refreshes: in every cycle something in every table that a query reads.

`tpcds/changes.txt` has for each table by what its rows are picked and what of them changes: measures, references,
keys, values that get lost. In each cycle two of these changes are made for each table, some rows go, some come twice,
and some come anew, as copies of others with another key. All of it follows from a seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from tests.tpc.changes import Cycle, Cycles, Statement, delete, duplicate, update
from tests.tpc.suite import TPCDS


@dataclass(frozen=True)
class Table:
    name: str
    #: rows are picked by the remainder of this …
    key: str
    #: … divided by that: the larger, the fewer
    spread: int
    #: what a copy of a row has in place of the key; empty where there are to be no copies
    copy: str
    #: what changes, one after the other
    sets: tuple[str, ...]


def cycles(seed: int = 0) -> Cycles:
    """Without end."""
    chance = random.Random(seed)
    number = 0
    while True:
        yield [statement for table in _tables() for statement in _changes(table, number, chance)]
        number += 1


def _changes(table: Table, number: int, chance: random.Random) -> Cycle:
    def some(factor: int = 1) -> str:
        spread = table.spread * factor
        return f"({table.key}) % {spread} = {chance.randrange(spread)}"

    def filled(text: str) -> str:
        return text.replace("{n}", str(chance.randrange(1, 40)))

    sets = (table.sets[number % len(table.sets)], chance.choice(table.sets))
    statements = [update(table.name, filled(each), some()) for each in sets]
    statements.append(delete(table.name, some(2)))
    if table.copy:
        statements.append(duplicate(table.name, some(3)))
        statements.append(_copies(table, filled(table.copy), some()))
    return statements


def _copies(table: Table, changed: str, where: str) -> Statement:
    """Rows like others, under another key."""
    key = changed.split(" ")[0]
    columns = ", ".join(changed if each.name == key else each.name for each in TPCDS.relations[table.name])
    return Statement(table.name, f"INSERT INTO {table.name} SELECT {columns} FROM {table.name} WHERE {where}")


@cache
def _tables() -> tuple[Table, ...]:
    found: list[Table] = []
    sets: list[str] = []
    lines = (TPCDS.folder / "changes.txt").read_text(encoding="utf-8").splitlines()
    for line in reversed([line for line in lines if line and not line.startswith("#")]):
        if line.startswith(" "):
            sets.insert(0, line.strip())
        else:
            name, key, spread, copy = (part.strip() for part in f"{line} | ".split("|")[:4])
            found.insert(0, Table(name, key, int(spread), copy, tuple(sets)))
            sets = []
    return tuple(found)
