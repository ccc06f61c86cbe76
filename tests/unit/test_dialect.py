"""Spark's SQL, read and written."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot

from engine.algebra.dialect import Spark4, refuse_compiled
from engine.algebra.scalars import Scalar
from tests.support.view_runner import Variant, planned, refusal_of
from tests.support.view_test import read_view_test

VIEWS = Path(__file__).parents[1] / "views"


def test_the_compiled_sqlglot_is_refused_with_a_way_out() -> None:
    with pytest.raises(ImportError, match="pip uninstall sqlglotc"):
        refuse_compiled("/somewhere/sqlglot/parsers/spark.cpython-311-x86_64-linux-gnu.so")


def test_people_read_what_stands_in_the_query() -> None:
    assert str(Scalar(sqlglot.parse_one("max_by(x, y, 3)", dialect=Spark4))) == "max_by(x, y, 3)"


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What sqlglot says when it cannot write something."""
    heard: list[str] = []

    class _Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "non-window functions" not in record.getMessage():  # DuckDB's, in Spark's place
                heard.append(record.getMessage())

    ear = _Ear()
    logging.getLogger("sqlglot").addHandler(ear)
    yield heard
    logging.getLogger("sqlglot").removeHandler(ear)


def test_nothing_is_lost_in_writing(warnings: list[str]) -> None:
    for file in sorted(VIEWS.rglob("*.test")):
        test = read_view_test(file)
        if test.refusal is None:
            planned(test, Variant.OPTIMIZED)
        else:
            refusal_of(test)
    assert warnings == []
