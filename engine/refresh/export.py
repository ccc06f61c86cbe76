"""A stream table as the statement that makes it again."""

from __future__ import annotations

from engine.records import SqlDialect, StreamTable


def statement(table: StreamTable) -> str:
    """With every option that its meaning depends on, also where a workspace has it by default: others have others."""
    dialect, query = (table.written.dialect, table.written.text) if table.written else (SqlDialect.SPARK, table.query)
    options = {
        "schedule": _text(table.schedule),
        "refresh_mode": _text(table.refresh_mode.value),
        "dialect": _text(dialect.value),
    }
    if table.differential_max_change_ratio is not None:
        options["differential_max_change_ratio"] = str(table.differential_max_change_ratio)
    if table.comment:
        options["comment"] = _text(table.comment)
    listed = ",\n  ".join(f"{name} = {value}" for name, value in options.items())
    clauses = ["APPEND ONLY"] if table.append_only else []
    if table.partition_by:
        clauses.append(f"PARTITION BY ({', '.join(map(_name, table.partition_by))})")
    between = "".join(f"{clause}\n" for clause in clauses)
    return f"CREATE STREAM TABLE {table.name}\nWITH (\n  {listed}\n)\n{between}AS\n{query}"


def _name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
