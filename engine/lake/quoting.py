"""Names and texts inside SQL, as Spark and delta-rs read them."""

from __future__ import annotations

import re

from engine.lake import log

#: what Spark reads as a name without backticks wherever a name may stand
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def name(column: str) -> str:
    """A column's or table's name; backticks mean the same to Spark and to delta-rs."""
    return "`" + column.replace("`", "``") + "`"


def field(of_struct: str) -> str:
    """A field's name inside the spelling of a struct: in backticks where it needs them, as types are compared."""
    return of_struct if _PLAIN.fullmatch(of_struct) else name(of_struct)


def text(value: str) -> str:
    """A string literal of Spark."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def table(path: str) -> str:
    """A Delta table by its path."""
    folder = log.local_path(path)
    return "delta." + name(str(folder.absolute()) if folder is not None else path)


def path(dotted: str) -> str:
    """`schema.function`, each part by itself."""
    return ".".join(map(name, dotted.split(".")))
