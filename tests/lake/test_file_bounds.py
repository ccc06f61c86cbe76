"""The bounds that a commit tells of its files: never narrower than the rows are."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.lake import data_files, file_bounds
from engine.lake.file_bounds import LAST_CHARACTER, MAX_TEXT

EPOCH = datetime(2024, 3, 1, tzinfo=UTC)


def everything(_: int, __: file_bounds.Path) -> bool:
    return True


def told(folder: Path, table: pa.Table, *, rows_a_group: int = 2, indexed: Any = everything) -> dict[str, Any]:
    pq.write_table(table, folder / "file.parquet", row_group_size=rows_a_group)
    text = file_bounds.statistics(pq.read_metadata(folder / "file.parquet"), indexed)
    return json.loads(text, parse_float=Decimal)


def test_each_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([3, None, -7, 5], pa.int64()),
            "d": pa.array([Decimal("99999999999999999999.25"), Decimal("-0.50"), None, None], pa.decimal128(38, 2)),
            "day": pa.array([date(2024, 2, 29), date(1600, 1, 1), None, None]),
            "at": pa.array([EPOCH + timedelta(microseconds=1), EPOCH, None, None], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2024, 3, 1, 1, 2, 3, 4567)] * 4, pa.timestamp("us")),
            "text": pa.array(["b", "a" * 40, None, "ü"]),
            "flag": pa.array([True, False, None, None]),
            "float": pa.array([1.0, float("nan"), None, None]),
            "bytes": pa.array([b"a", None, None, None]),
            "list": pa.array([[1], [2], None, []], pa.list_(pa.int64())),
            "nothing": pa.array([None] * 4, pa.int32()),
            "s": pa.array([{"x": 1, "t": {"y": "q"}}, None, {"x": None, "t": None}, {"x": 9, "t": {"y": "r"}}]),
            "a.b": pa.array([1, 2, 3, 4]),
        }
    )
    found = told(tmp_path, table)
    assert found["numRecords"] == 4
    assert found["nullCount"] == {
        **{"n": 1, "d": 2, "day": 2, "at": 2, "local": 0, "text": 1, "flag": 2, "float": 2, "bytes": 3, "nothing": 4},
        "s": {"x": 2, "t": {"y": 2}},
    }
    assert found["minValues"] == {
        "n": -7,
        "d": Decimal("-0.50"),
        "day": "1600-01-01",
        "at": "2024-03-01T00:00:00.000Z",
        "local": "2024-03-01T01:02:03.004",
        "text": "a" * MAX_TEXT,
        "s": {"x": 1, "t": {"y": "q"}},
    }
    assert found["maxValues"] == {
        "n": 5,
        "d": Decimal("99999999999999999999.25"),
        "day": "2024-02-29",
        "at": "2024-03-01T00:00:00.001Z",
        "local": "2024-03-01T01:02:03.005",
        "text": "ü",
        "s": {"x": 9, "t": {"y": "r"}},
    }


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
        ("x" * MAX_TEXT + "y", "x" * MAX_TEXT + LAST_CHARACTER),
        ("x" * MAX_TEXT + LAST_CHARACTER, None),
    ],
)
def test_a_long_text_is_bounded_by_its_beginning(tmp_path: Path, text: str, bound: str | None) -> None:
    found = told(tmp_path, pa.table({"t": [text]}))
    assert found["maxValues"].get("t") == bound
    assert ("t" in found["minValues"]) == (bound is not None)
    assert bound is None or bound >= text


def test_days_that_python_does_not_know_have_no_bounds(tmp_path: Path) -> None:
    far = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    moments = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = told(tmp_path, pa.table({"day": far, "at": moments}))
    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"day": 0, "at": 0}


def test_every_value_is_within_the_bounds(tmp_path: Path) -> None:
    random.seed(7)
    alphabet = "aé\U0001f600" + LAST_CHARACTER
    for _ in range(50):
        texts = ["".join(random.choices(alphabet, k=random.choice([1, 31, 32, 33, 40]))) for _ in range(9)]
        moments = [EPOCH + timedelta(microseconds=random.randint(-(10**12), 10**12)) for _ in range(9)]
        found = told(tmp_path, pa.table({"t": texts, "at": pa.array(moments, pa.timestamp("us", "UTC"))}))
        for name, values in {"t": texts, "at": moments}.items():
            if name in found["minValues"]:
                least, greatest = found["minValues"][name], found["maxValues"][name]
                if name == "at":
                    least, greatest = (datetime.fromisoformat(bound) for bound in (least, greatest))
                assert all(least <= value <= greatest for value in values)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {"a", "b", "c"}),
        ({"delta.dataSkippingNumIndexedCols": "2"}, {"a", "b"}),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"a", "b", "c"}),
        ({"delta.dataSkippingNumIndexedCols": "0"}, set()),
        ({"delta.dataSkippingStatsColumns": "c, `a`"}, {"a", "c"}),
    ],
)
def test_the_table_says_of_which_columns(tmp_path: Path, properties: dict[str, str], expected: set[str]) -> None:
    found = told(tmp_path, pa.table({"a": [1], "b": [2], "c": [3]}), indexed=data_files._indexed(properties))
    assert set(found["minValues"]) == expected
