"""sql: our statements, queries and DML, one or a whole script."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any

from engine.cli.output import Column, Output, cell_text
from engine.cli.session import open_engine, text_of
from engine.cli.wording import refresh_line
from engine.errors import QueryParseError, TrickleError
from engine.records import (
    CreateResult,
    DropResult,
    Explanation,
    RefreshRecord,
    Source,
    SourceStatus,
    SqlResult,
    StreamTableStatus,
    VerifyResult,
)

if TYPE_CHECKING:
    from engine.compile.statements import Statement

BAD = 1


def add_commands(commands: _SubParsersAction[Any]) -> None:
    sql = commands.add_parser(
        "sql",
        help="run SQL statements",
        description="Runs SQL: CREATE STREAM TABLE and its kin, SELECT, and DML on sources. Stops at an error.",
    )
    sql.add_argument("text", nargs="?", help="the statements, separated by semicolons, or - for standard input")
    sql.add_argument("-f", "--file", help="a file that holds them")
    sql.set_defaults(run=run_sql)


def run_sql(args: Namespace, out: Output) -> int:
    from engine.compile.statements import parse_statement, split_script
    from engine.compile.tokens import within

    args.sql_text = text = text_of(args, args.text)
    parts = split_script(text)
    if not parts:
        raise QueryParseError("there is no statement", hint="for example: trickle sql 'SHOW STREAM TABLES'")
    # All of it is read before anything runs, and before Spark has to be waited for.
    statements = [parse_statement(part, start) for part, start in parts]
    results: list[SqlResult] = []
    code = 0
    with open_engine(args, out, spark=any(_needs_spark(each) for each in statements)) as engine:
        for part, start in parts:
            try:
                result = engine.sql(part)
            except TrickleError as error:
                error.position = within(error.position, start)
                if out.as_json:
                    out.json(results)
                raise
            results.append(result)
            code = max(code, BAD if isinstance(result.value, VerifyResult) and not result.value.equal else 0)
            for notice in result.notices:
                out.notice(notice)
            if not out.as_json:
                print_result(result, out)
    if out.as_json:
        out.json(results)
    return code


def _needs_spark(statement: Statement) -> bool:
    from engine.compile import statements as kinds

    without = (
        kinds.ShowStreamTables,
        kinds.ShowSources,
        kinds.PauseStreamTable,
        kinds.ResumeStreamTable,
        kinds.DropStreamTable,
        kinds.DropSource,
        kinds.CreateSource,
    )
    return not isinstance(statement, without)


def print_result(result: SqlResult, out: Output) -> None:
    if result.rows is not None:
        _print_rows(result.rows, out)
    if result.value is not None:
        _print_value(result.value, out)
    elif result.rows is None:
        out.line("done")


def _print_rows(rows: Any, out: Output) -> None:
    import pyarrow.types as types

    columns = [
        Column(
            field.name,
            right=types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type),
        )
        for field in rows.schema
    ]
    if not columns:
        out.line("no columns")
        return
    # By column, for two columns of a result may have one name.
    values = [column.to_pylist() for column in rows.columns]
    out.table(columns, [tuple(cell_text(value) for value in row) for row in zip(*values, strict=True)])
    out.line(out.painted(f"{rows.num_rows:,} row{'' if rows.num_rows == 1 else 's'}", "dim"))


def _print_value(value: Any, out: Output) -> None:
    match value:
        case CreateResult():
            out.line(f"{'created' if value.created else 'exists already:'} {value.table.name}")
            if value.refresh is not None:
                out.line(refresh_line(value.refresh))
        case DropResult():
            out.line(f"dropped {', '.join(value.dropped)}" if value.dropped else "nothing to drop")
        case RefreshRecord():
            out.line(refresh_line(value))
        case VerifyResult():
            verdict = "equal" if value.equal else "differs"
            out.line(f"{verdict}: {value.name}, {value.missing:,} missing, {value.unexpected:,} unexpected")
        case Explanation():
            out.line(value.text())
        case StreamTableStatus():
            out.line(f"{value.name}: {value.state.value}")
        case SourceStatus():
            out.line(f"source {value.source.name}: {value.source.path}")
        case Source():
            out.line(f"source {value.name}: {value.path}")
        case tuple() | list():
            for each in value:
                _print_value(each, out)
        case _:
            out.line(str(value))
