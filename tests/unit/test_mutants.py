"""What a run of mutants keeps for the next one, and who is asked first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import record
from tests.mutants.__main__ import all_mutants, who_can_tell
from tests.mutants.operators import Mutant
from tests.mutants.victim import Seen

MUTANTS = all_mutants()
JOIN = [each for each in MUTANTS if each.path.endswith("differentiate/join.py")]


def verdicts(mutants: list[Mutant], noticed: bool = True) -> dict[tuple[str, int], record.Verdict]:
    made = [record.verdict(each, noticed, "by a view", "abc") for each in mutants]
    return {each.key: each for each in made}


def test_verdicts_are_read_again(tmp_path: Path) -> None:
    known = verdicts(JOIN)
    record.write(known, MUTANTS, tmp_path)
    assert record.read(tmp_path) == known
    assert record.current(record.read(tmp_path), MUTANTS) == known


def test_of_a_file_that_changed_nothing_is_known(tmp_path: Path) -> None:
    known = {key: replace(each, source="another") for key, each in verdicts(JOIN).items()}
    assert record.current(known, MUTANTS) == {}
    record.write(known, MUTANTS, tmp_path)
    assert json.loads((tmp_path / "verdicts.json").read_text()) == []


def test_the_share_is_counted_over_the_mutants_that_there_are() -> None:
    gone = replace(JOIN[0], number=9_999)
    known = {**verdicts(JOIN[:-1]), **verdicts(JOIN[-1:], noticed=False)}
    held = record.current({**known, **verdicts([gone], noticed=False)}, MUTANTS)
    noticed = len(JOIN) - 1
    page = record.page(held, MUTANTS)
    share = f"{noticed / len(JOIN):.1%}"
    assert f"| all | {len(MUTANTS)} | {len(JOIN)} | {noticed} | {share} |" in page
    assert record.line_of(JOIN[-1]) in page.partition("Not noticed")[2]


def test_every_mutant_has_a_key_of_its_own() -> None:
    assert len({(each.path, each.number) for each in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("statement", [(5, 6), None])
def test_who_is_about_little_else_is_asked_first(statement: tuple[int, int] | None) -> None:
    mutant = Mutant("a.py", 5, 0, "wrong sign", statement)
    seen = {
        "broad": Seen(1.0, {"a.py": list(range(1, 20))}),
        "slow": Seen(9.0, {"a.py": [5, 6]}),
        "narrow": Seen(1.0, {"a.py": [5]}),
        "elsewhere": Seen(0.1, {"a.py": [1, 2, 3], "b.py": [5]}),
    }
    who = ["narrow", "broad", "slow"]
    assert who_can_tell(mutant, seen) == (who if statement else ["elsewhere", *who])
