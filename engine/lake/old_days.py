"""Dates and timestamps as Spark once wrote them, which delta-rs reads as others and does not say a word.

Timestamps of 96 bits, still the default of a Spark that nobody told otherwise: delta-rs reads the years before 1677 and
after 2262 as others. And days counted by the calendar that was in use until 1582, as all of Spark did before version 3.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from engine.lake import files, log

_OLD_CALENDAR, _WRITTEN_BY = b"org.apache.spark.legacyDateTime", b"org.apache.spark.version"
#: of so many files it is remembered; they never change
_REMEMBERED = 20_000


def are_possible(types: Iterable[Any]) -> bool:
    """Of columns with these types, as a Delta schema tells them."""
    said = json.dumps(list(types))
    return '"timestamp"' in said or '"date"' in said


def in_table(path: str, version: int) -> bool:
    """May one of the files that together are this version have such?"""
    fields = log.definition(path, version).schema["fields"]
    return are_possible(item["type"] for item in fields) and in_files(path, files.of(path, version).sizes)


def in_files(path: str, names: Collection[str]) -> bool:
    """Files that are not at hand may."""
    folder = log.local_path(path)
    try:
        return folder is None or any(_in_file(folder / unquote(name)) for name in names)
    except OSError:
        return True


@functools.lru_cache(_REMEMBERED)
def _in_file(file: Path) -> bool:
    import pyarrow.parquet as pq

    footer = pq.read_metadata(file)
    said = footer.metadata or {}
    if _OLD_CALENDAR in said or said.get(_WRITTEN_BY, b"3").partition(b".")[0] in (b"1", b"2"):
        return True
    return any(footer.schema.column(index).physical_type == "INT96" for index in range(footer.num_columns))
