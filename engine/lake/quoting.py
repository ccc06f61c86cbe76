"""Names and texts inside SQL, as Spark and delta-rs read them."""

from __future__ import annotations

from engine.lake import log


def name(column: str) -> str:
    """A column's or table's name; backticks mean the same to Spark and to delta-rs."""
    return "`" + column.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal of Spark."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def table(path: str) -> str:
    """A Delta table by its path."""
    folder = log.local_path(path)
    return "delta." + name(str(folder.absolute()) if folder is not None else path)
