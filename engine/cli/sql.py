"""sql: our statements, queries and DML, one or a whole script."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any

from engine.cli.cdc import print_buffers, print_changes
from engine.cli.explain import exit_code, print_explained
from engine.cli.looking import print_statuses
from engine.cli.output import Column, Output, cell_text
from engine.cli.session import open_engine, text_of
from engine.cli.sources import print_sources
from engine.cli.stream_tables import print_altered, print_verdict
from engine.cli.upkeep import print_maintained
from engine.cli.views import print_made, print_views
from engine.cli.wording import refresh_line
from engine.cli.workspace import print_repairs
from engine.errors import QueryParseError, TrickleError
from engine.records import RefreshRecord, SourceStatus, StreamTable, StreamTableStatus, View
from engine.results import (
    AlterResult,
    CdcStatus,
    ChangeBuffer,
    CreateResult,
    DropResult,
    Maintenance,
    RepairResult,
    SqlResult,
    Validation,
    VerifyResult,
    ViewResult,
    WriteResult,
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
    sql.add_argument(
        "--refresh", metavar="NAME", help="this stream table follows the DML, with all between, before it is done"
    )
    sql.set_defaults(run=run_sql)


def run_sql(args: Namespace, out: Output) -> int:
    from engine.compile.statements import parse_statement, split_script
    from engine.compile.tokens import within
    from engine.sql import write_and_refresh

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
                result = engine.sql(part) if args.refresh is None else write_and_refresh(engine, part, args.refresh)
            except TrickleError as error:
                error.position = within(error.position, start)
                if out.as_json:
                    out.json(results)
                raise
            results.append(result)
            code = max(code, _code(result.value))
            for notice in result.notices:
                out.notice(notice)
            if not out.as_json:
                print_result(result, out)
    if out.as_json:
        out.json(results)
    return code


def _code(value: object) -> int:
    match value:
        case VerifyResult(equal=False):
            return BAD
        case Validation() as found:
            return exit_code(found)
        case _:
            return 0


def _needs_spark(statement: Statement) -> bool:
    from engine.compile import statements as kinds
    from engine.compile import upkeep_statements as upkeep_kinds

    without = (
        kinds.ShowStreamTables,
        kinds.ShowSources,
        kinds.ShowCdcStatus,
        kinds.ShowChangeBuffers,
        kinds.PauseStreamTable,
        kinds.ResumeStreamTable,
        kinds.DropStreamTable,
        kinds.DropSource,
        kinds.DropView,
        kinds.ShowViews,
        kinds.CreateSource,
        upkeep_kinds.RenameStreamTable,
        upkeep_kinds.RepairStreamTable,
        upkeep_kinds.ShowCreate,
    )
    return not isinstance(statement, without)


def print_result(result: SqlResult, out: Output) -> None:
    if result.rows is not None:
        _print_rows(result.rows, out)
        return
    match result.kind, result.value:
        case _, WriteResult() as written:
            out.line(f"changed; {written.source} is at version {written.version}")
            for record in written.refreshes:
                out.line(refresh_line(record))
        case "ddl", int() as version:
            out.line(f"changed; the table is at version {version}")
        case _, bool() as dropped:
            out.line("dropped" if dropped else "nothing to drop")
        case _, CreateResult() as created:
            out.line(f"{'created' if created.created else 'exists already:'} {created.table.name}")
            if created.refresh is not None:
                out.line(refresh_line(created.refresh))
        case _, AlterResult() as altered:
            print_altered(altered, out)
        case _, DropResult() as gone:
            out.line(f"dropped {', '.join(gone.dropped)}" if gone.dropped else "nothing to drop")
        case _, RefreshRecord() as record:
            out.line(refresh_line(record))
        case "refresh", tuple() as records:
            for record in records:
                out.line(refresh_line(record))
        case "refresh", None:
            pass  # its notice has said why
        case _, Maintenance() as done:
            print_maintained(done, out)
        case _, RepairResult() as mended:
            print_repairs(mended.repairs, out)
        case _, StreamTable() as table:
            out.line(f"it is named {table.name} from now on; its rows stay at {table.path}")
        case _, VerifyResult() as verdict:
            print_verdict(verdict, out)
        case "explain" | "validate" | "preview", explained:
            print_explained(explained, out)
        case _, StreamTableStatus() as status:
            out.line(f"{status.name}: {status.state.value}")
        case _, SourceStatus() as status:
            out.line(f"source {status.source.name}: {status.source.path}")
        case _, ViewResult() as made:
            print_made(made, out)
        case _, (View(), *_) as views:
            print_views(views, out)
        case _, (SourceStatus(), *_) as sources:
            print_sources(sources, out)
        case _, (CdcStatus(), *_) as statuses:
            print_changes(statuses, out)
        case _, (ChangeBuffer(), *_) as buffers:
            print_buffers(buffers, out)
        case _, (StreamTableStatus(), *_) as statuses:
            print_statuses(statuses, out)
        case "show", ():
            out.line("none yet")
        case _, value:
            out.line("done" if value is None else str(value))


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
