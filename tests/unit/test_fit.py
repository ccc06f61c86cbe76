"""Options that must fit the query and each other, and the statement that says all of them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.compile.statements import CreateStreamTable, parse_statement
from engine.errors import InvalidArgument
from engine.records import Column, RefreshMode, SqlDialect, Written
from engine.refresh import fit
from engine.refresh.export import statement
from tests.unit.fake_engine import stream_table

COLUMNS = (
    Column("Day", "date"),
    Column("region", "string"),
    Column("x", "double"),
    Column("d", "decimal(10,2)"),
    Column("at", "timestamp"),
    Column("c", "string collate UNICODE_CI"),
)


def test_partition_columns_are_spelled_as_the_query_spells_them() -> None:
    assert fit.partition_columns(["day", "REGION"], COLUMNS) == ("Day", "region")
    assert fit.partition_columns([], COLUMNS) == ()


@pytest.mark.parametrize(
    ("asked", "said", "hint"),
    [
        (["dya"], "does not put out", "did you mean Day?"),
        (["zzz"], "does not put out", "name columns of the result"),
        (["x"], "is a double", "CAST(x AS DATE)"),
        (["d"], "is a decimal(10,2)", "coarser"),
        (["at"], "is a timestamp", "CAST(at AS DATE)"),
        (["c"], "collate", "coarser"),
        (["day", "Day"], "twice", "once"),
    ],
)
def test_partition_columns_that_cannot_be(asked: list[str], said: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        fit.partition_columns(asked, COLUMNS)
    assert said in refused.value.message
    assert hint in (refused.value.hint or "")


def test_not_by_all_columns() -> None:
    with pytest.raises(InvalidArgument) as refused:
        fit.partition_columns(["day", "region"], COLUMNS[:2])
    assert "leave one" in (refused.value.hint or "")


def test_a_promise_to_grow_and_to_replace_all() -> None:
    fit.refuse_together(RefreshMode.AUTO, append_only=True)
    fit.refuse_together(RefreshMode.FULL, append_only=False)
    with pytest.raises(InvalidArgument) as refused:
        fit.refuse_together(RefreshMode.FULL, append_only=True)
    assert refused.value.detail
    assert refused.value.hint


@pytest.mark.parametrize("name", ["revenue", "order", "select", "table", "stream", "_a1"])
@pytest.mark.parametrize(
    "comment", ["", "it's", "a\\b\\\\", "two\nlines", "'" * 3, '"quoted" -- no', "\\'", "\\n", "ends\\"]
)
def test_the_statement_says_it_all_again(name: str, comment: str) -> None:
    table = replace(
        stream_table(name),
        comment=comment,
        append_only=True,
        partition_by=("a b", "c`d"),
        query="SELECT 1 AS a",
    )
    said = parse_statement(statement(table))
    assert isinstance(said, CreateStreamTable)
    assert (said.name, said.query) == (name, "SELECT 1 AS a")
    wanted = {
        "schedule": "30s",
        "refresh_mode": "AUTO",
        "append_only": True,
        "dialect": "spark",
        "partition_by": ("a b", "c`d"),
    }
    assert said.options == ({**wanted, "comment": comment} if comment else wanted)


def test_the_statement_has_the_query_as_its_author_wrote_it() -> None:
    table = replace(stream_table("t"), written=Written(SqlDialect.POSTGRES, "SELECT 1::text AS a"))
    said = parse_statement(statement(table))
    assert isinstance(said, CreateStreamTable)
    assert (said.query, said.options["dialect"]) == ("SELECT 1::text AS a", "postgres")
