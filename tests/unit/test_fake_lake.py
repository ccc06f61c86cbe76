"""The lake of the tests itself: that a large table's old version follows exactly, duplicates and NULLs included."""

from __future__ import annotations

import pytest

from engine.records import Column
from tests.support import fake_lake
from tests.support.fake_lake import FakeLake

COLUMNS = (Column("id", "int"), Column("name", "string"), Column("amount", "decimal(5,2)"))

DML = """
INSERT INTO t VALUES (1, 'a', 1.00), (1, 'a', 1.00), (NULL, NULL, NULL);
DELETE FROM t WHERE id = 2;
UPDATE t SET name = NULL WHERE id = 3;
UPDATE t SET amount = amount + 1 WHERE id IS NULL;
INSERT INTO t VALUES (9, 'gone again', 1.00);
DELETE FROM t WHERE id = 9
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> FakeLake:
    monkeypatch.setattr(fake_lake, "LARGE", 0)
    lake = FakeLake({"t": COLUMNS})
    lake.load("t", "SELECT range % 5, 'a', 1 FROM range(20) UNION ALL SELECT NULL, NULL, 1.5 FROM range(2)")
    lake.settle()
    return lake


def test_the_old_version_follows_the_present_one(lake: FakeLake) -> None:
    for _ in range(2):
        lake.run(DML)
        assert len(lake.rows('SELECT * FROM "t@delta"')) > 0
        lake.advance()
        present, old = (sorted(lake.rows(f'SELECT * FROM "{name}"'), key=repr) for name in ("t", "t@old"))
        assert old == present
        assert lake.rows('SELECT * FROM "t@delta"') == []


def test_one_of_two_equal_rows_goes(lake: FakeLake) -> None:
    lake.take_out("t")
    lake.advance()
    assert lake.rows('SELECT count(*) FROM "t@old"') == [(21,)]
    assert lake.rows('SELECT count(*) FROM "t@old" WHERE id = 0') == [(3,)]
