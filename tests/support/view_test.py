"""Reads `.test` files: tables, a view over them, and steps of DML with the changes they must bring.

The format is told in tests/views/README.md. Everything that is wrong with a file is said with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.algebra.dialect import Spark4
from engine.errors import Position
from engine.records import Column

Row = tuple[object, ...]

HEADER = re.compile(
    r"^(?:(?P<table>table)\s+(?P<declared>\S.*)|(?P<view>view)|(?P<kept>kept)\s+(?P<way>.+)"
    r"|(?P<refused>refused)\s+(?P<code>\w+)(?:\s+at line (?P<line>\d+), column (?P<column>\d+))?"
    r"|(?P<ties>ties)|(?P<means>means)|(?P<rows>rows)|(?P<step>step)(?:\s+(?P<title>.*))?|(?P<change>change))\s*$"
)


class ViewTestError(Exception):
    """The file itself is wrong."""


@dataclass(frozen=True)
class TableSetup:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Refusal:
    """What the compiler must say of a query that it does not maintain."""

    code: str
    position: Position | None
    message: str


@dataclass(frozen=True)
class Step:
    title: str
    line: int
    dml: str
    #: lines as written; None where the file does not say what changes
    change: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ViewTest:
    path: Path
    about: str
    tables: tuple[TableSetup, ...]
    query: str
    #: the name of the way in which the result is kept; None for a refusal
    kept: str | None
    refusal: Refusal | None
    #: the view's first rows as written; None where the file does not say
    rows: tuple[str, ...] | None
    steps: tuple[Step, ...]
    #: does the text leave open which of several rows it means, so that the canonical query has to be asked?
    ties: bool = False
    #: the same query in words that DuckDB knows too; empty where the text has no others
    means: str = ""

    @property
    def relations(self) -> dict[str, tuple[Column, ...]]:
        return {table.name: table.columns for table in self.tables}


@dataclass
class _Section:
    head: re.Match[str]
    line: int
    body: list[tuple[int, str]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        kinds = ("table", "view", "kept", "refused", "ties", "means", "rows", "step", "change")
        return next(kind for kind in kinds if self.head[kind])

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.body).strip()

    @property
    def filled(self) -> tuple[tuple[int, str], ...]:
        return tuple((number, line) for number, line in self.body if line.strip())


def read_view_test(path: Path) -> ViewTest:
    return parse_view_test(path.read_text(encoding="utf-8"), path)


def parse_view_test(text: str, path: Path) -> ViewTest:
    about, sections = _sections(text, path)
    test = ViewTest(path, about, (), "", None, None, None, ())
    for section in sections:
        test = _with_section(test, section)
    if not test.tables:
        raise ViewTestError(f"{path}: there is no table")
    if not test.query:
        raise ViewTestError(f"{path}: there is no view")
    if (test.kept is None) == (test.refusal is None):
        raise ViewTestError(f"{path}: say either how the view is kept (`kept …`) or that it is refused (`refused …`)")
    if test.refusal is not None and (test.steps or test.rows is not None):
        raise ViewTestError(f"{path}: a view that is refused has no rows and no steps")
    return test


def _sections(text: str, path: Path) -> tuple[str, list[_Section]]:
    about: list[str] = []
    sections: list[_Section] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            about.append(line.removeprefix("#").strip())
        elif head := HEADER.match(line):
            sections.append(_Section(head, number))
        elif sections:
            sections[-1].body.append((number, line.rstrip()))
        elif line.strip():
            raise ViewTestError(f"{path}:{number}: a file starts with `# what it shows` and `table name(…)`")
    if not about:
        raise ViewTestError(f"{path}: the first line says what the file shows, after a #")
    return " ".join(about), sections


def _with_section(test: ViewTest, section: _Section) -> ViewTest:
    place = f"{test.path}:{section.line}"
    match section.kind:
        case "table":
            return replace(test, tables=(*test.tables, _table(section, test.path)))
        case "view":
            return replace(test, query=section.text)
        case "kept":
            return replace(test, kept=section.head["way"].strip())
        case "refused":
            line, column = section.head["line"], section.head["column"]
            where = Position(int(line), int(column)) if line else None
            return replace(test, refusal=Refusal(section.head["code"], where, " ".join(section.text.split())))
        case "ties":
            return replace(test, ties=True)
        case "means":
            return replace(test, means=section.text)
        case "rows":
            return replace(test, rows=tuple(line for _, line in section.filled))
        case "step":
            if not section.text:
                raise ViewTestError(f"{place}: a step needs at least one statement")
            step = Step((section.head["title"] or section.text.splitlines()[0]).strip(), section.line, section.text)
            return replace(test, steps=(*test.steps, step))
        case _:
            if not test.steps or test.steps[-1].change is not None:
                raise ViewTestError(f"{place}: `change` belongs after a step, once")
            changed = replace(test.steps[-1], change=tuple(line for _, line in section.filled))
            return replace(test, steps=(*test.steps[:-1], changed))


def _table(section: _Section, path: Path) -> TableSetup:
    place = f"{path}:{section.line}"
    declared = section.head["declared"]
    try:
        create = sqlglot.parse_one(f"CREATE TABLE {declared}", dialect=Spark4)
    except SqlglotError as error:
        raise ViewTestError(f"{place}: not `table name(column type, …)`: {declared}") from error
    schema = create.this
    if not isinstance(schema, exp.Schema) or not all(isinstance(each, exp.ColumnDef) for each in schema.expressions):
        raise ViewTestError(f"{place}: not `table name(column type, …)`: {declared}")
    columns = tuple(Column(each.name, spark_type(each.kind)) for each in schema.expressions)
    rows = tuple(parse_row(line, columns, f"{path}:{number}") for number, line in section.filled)
    return TableSetup(schema.this.name, columns, rows)


def spark_type(tree: exp.DataType) -> str:
    return tree.sql("spark").lower().replace(", ", ",")


def parse_rows(lines: Sequence[str], columns: tuple[Column, ...], place: str) -> list[Row]:
    return [parse_row(line, columns, place) for line in lines]


def parse_change(lines: Sequence[str], columns: tuple[Column, ...], place: str) -> list[tuple[int, Row]]:
    """`+2 | ann | 5.00`: that row came twice."""
    found = []
    for line in lines:
        weight, _, rest = line.partition("|")
        if not re.fullmatch(r"[+-][1-9]\d*", weight.strip()):
            raise ViewTestError(f"{place}: a change starts with +1 or -1, not with {weight.strip()!r}")
        found.append((int(weight), parse_row(rest, columns, place)))
    return found


def parse_row(line: str, columns: tuple[Column, ...], place: str) -> Row:
    cells = list(_cells(line))
    if len(cells) != len(columns):
        raise ViewTestError(f"{place}: {len(cells)} values for {len(columns)} columns: {line.strip()}")
    return tuple(_value(cell, column, place) for cell, column in zip(cells, columns, strict=True))


def _cells(line: str) -> Iterator[str]:
    """Split at |, but not inside quotes."""
    for match in re.finditer(r"\s*('(?:[^']|'')*'|[^|]*?)\s*(?:\||$)", line):
        if match.start() == len(line) and not line.rstrip().endswith("|"):
            return
        yield match[1]
        if match.end() == len(line) and not match[0].endswith("|"):
            return


def _value(cell: str, column: Column, place: str) -> object:
    if cell == "NULL":
        return None
    base = column.type.partition("(")[0]
    try:
        match base:
            case "tinyint" | "smallint" | "int" | "bigint":
                return int(cell)
            case "decimal":
                return Decimal(cell)
            case "double" | "float":
                return float(cell)
            case "boolean":
                return {"true": True, "false": False}[cell]
            case "date":
                return date.fromisoformat(cell)
            case "timestamp_ntz" | "timestamp":
                return datetime.fromisoformat(cell)
            case "string":
                return cell[1:-1].replace("''", "'") if cell.startswith("'") else cell
            case _:
                raise ViewTestError(f"{place}: values of type {column.type} cannot be written in a test")
    except (ValueError, KeyError, InvalidOperation) as error:
        raise ViewTestError(f"{place}: {cell!r} is no {column.type}") from error


def write_row(row: Row) -> str:
    """As it would stand in a file."""
    return " | ".join(map(_written, row))


def _written(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str() if value != value.strip() or "|" in value or "'" in value or value in ("", "NULL"):
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)
